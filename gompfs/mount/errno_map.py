"""The one map from exceptions to what a system call returns; it is total."""

from __future__ import annotations

import errno

from gompfs.errors import (
    ArchiveFormatError,
    EngineUnavailableError,
    GompfsError,
    OptionError,
    StatsUnavailableError,
)

# Of errors without a number of their own; the first class that an exception is an instance of counts.
_ERRNOS: tuple[tuple[type[BaseException], int], ...] = (
    (ArchiveFormatError, errno.EIO),
    (StatsUnavailableError, errno.ENODATA),
    (EngineUnavailableError, errno.EIO),
    (OptionError, errno.EINVAL),
    (GompfsError, errno.EIO),
    (MemoryError, errno.ENOMEM),
)


def errno_of(error: BaseException) -> int:
    """The errno that a request ends with; damage is EIO, and so is everything that nobody foresaw."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    for kind, number in _ERRNOS:
        if isinstance(error, kind):
            return number
    return errno.EIO


def is_expected(error: BaseException) -> bool:
    """Whether the error is an ordinary answer that needs no line in the log."""
    return errno_of(error) not in (errno.EIO, errno.ENOMEM)
