"""The lock that a command holds on an archive while it changes or replaces the archive."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gompfs.errors import PackError

_MAX_TRIES = 10


@contextmanager
def locked_archive(archive: Path, *, to_write: bool = True) -> Iterator[int]:
    """Lock the archive at `archive`, and yield its descriptor. The lock is released when the body ends.

    After locking, it checks that `archive` still names the locked file: another command may have replaced it just
    before. Without `to_write`, read permission is enough. Raises PackError, or OSError.
    """
    descriptor = _lock(archive, to_write)
    try:
        yield descriptor
    finally:
        # Closing it is not enough: a duplicate, as a reader of the archive may still have, would keep the lock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _lock(archive: Path, to_write: bool) -> int:
    for _ in range(_MAX_TRIES):
        descriptor = _open(archive, to_write)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise PackError("not a regular file", path=archive)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(status, os.stat(archive)):
                return descriptor
        except FileNotFoundError:
            pass  # the archive was removed, or is being replaced
        except BlockingIOError:
            os.close(descriptor)
            raise PackError("another process is adding to the archive or replacing it", path=archive) from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise PackError("other processes keep replacing the archive", path=archive)


def _open(archive: Path, to_write: bool) -> int:
    flags = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY  # O_NONBLOCK: do not wait at a FIFO
    try:
        return os.open(archive, os.O_RDWR | flags)
    except OSError as error:
        if to_write or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
    return os.open(archive, os.O_RDONLY | flags)
