"""The one map from exceptions to errno values. It covers every exception."""

from __future__ import annotations

import errno

from gompfs.errors import (
    ArchiveFormatError,
    EngineUnavailableError,
    GompfsError,
    OptionError,
    StatsUnavailableError,
)

# For exceptions that carry no errno. The first class in the table that matches an exception decides.
_ERRNOS: tuple[tuple[type[BaseException], int], ...] = (
    (ArchiveFormatError, errno.EIO),
    (StatsUnavailableError, errno.ENODATA),
    (EngineUnavailableError, errno.EIO),
    (OptionError, errno.EINVAL),
    (GompfsError, errno.EIO),
    (MemoryError, errno.ENOMEM),
)


def errno_of(error: BaseException) -> int:
    """Returns the errno to answer a request with. Damaged data and unforeseen exceptions give EIO."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    for kind, number in _ERRNOS:
        if isinstance(error, kind):
            return number
    return errno.EIO


def is_expected(error: BaseException) -> bool:
    """Returns whether an error is an ordinary answer that needs no line in the log."""
    return errno_of(error) not in (errno.EIO, errno.ENOMEM)
