"""The one map from exceptions to what a system call returns; it is total."""

from __future__ import annotations

import errno

from gompfs.errors import (
    ArchiveFormatError,
    CorruptBlockError,
    EngineUnavailableError,
    EntryNotFoundError,
    EntryTypeError,
    GompfsError,
    OptionError,
    StatsUnavailableError,
)

# The first class that an exception is an instance of counts.
_ERRNOS: tuple[tuple[type[BaseException], int], ...] = (
    (CorruptBlockError, errno.EIO),
    (ArchiveFormatError, errno.EIO),
    (EntryNotFoundError, errno.ENOENT),
    (EntryTypeError, errno.ENOTDIR),
    (StatsUnavailableError, errno.ENODATA),
    (EngineUnavailableError, errno.EIO),
    (OptionError, errno.EINVAL),
    (GompfsError, errno.EIO),
    (MemoryError, errno.ENOMEM),
)


def errno_of(error: BaseException) -> int:
    """The errno that a request ends with; damage is EIO, and so is everything that nobody foresaw."""
    for kind, number in _ERRNOS:
        if isinstance(error, kind):
            return number
    if isinstance(error, OSError) and error.errno:
        return error.errno
    return errno.EIO


def is_expected(error: BaseException) -> bool:
    """Whether the error is an ordinary answer that needs no line in the log."""
    return errno_of(error) not in (errno.EIO, errno.ENOMEM)
