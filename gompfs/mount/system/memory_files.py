"""Files in memory, in huge pages if the system permits, which makes creating and reading them faster."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432  # system call numbers, the same on all processors but Alpha
_CLOEXEC = 1
_SET_STRING, _CREATE = 1, 6  # fsconfig commands (linux/mount.h)
_SETTINGS = {"huge": "within_size", "size": "0"}  # of the tmpfs: huge pages up to the end of a file, and no size limit

_libc = ctypes.CDLL(None, use_errno=True)


class MemoryFiles:
    """Creates files that have no name. Thread-safe."""

    def __init__(self) -> None:
        try:
            self._root: int | None = _mount_tmpfs()
        except OSError:
            self._root = None

    @property
    def has_large_pages(self) -> bool:
        """Whether files are in huge pages. That needs a private tmpfs, and so CAP_SYS_ADMIN and Linux 5.2."""
        return self._root is not None

    def close(self) -> None:
        """Create no more files. Open files stay usable."""
        root, self._root = self._root, None
        if root is not None:
            os.close(root)

    @contextmanager
    def create(self, size: int) -> Iterator[int]:
        """Create a file of `size` zero bytes, and yield its descriptor. Raises OSError."""
        if self._root is None:
            descriptor = os.memfd_create("gompfs", os.MFD_CLOEXEC)
        else:
            descriptor = os.open(".", os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600, dir_fd=self._root)
        try:
            os.ftruncate(descriptor, size)
            yield descriptor
        finally:
            os.close(descriptor)


def _mount_tmpfs() -> int:
    """Returns a descriptor of the root of a new tmpfs that is mounted nowhere."""
    context = _call(_FSOPEN, b"tmpfs", _CLOEXEC)
    try:
        for name, value in _SETTINGS.items():
            _call(_FSCONFIG, context, _SET_STRING, name.encode(), value.encode(), 0)
        _call(_FSCONFIG, context, _CREATE, None, None, 0)
        return _call(_FSMOUNT, context, _CLOEXEC, 0)
    finally:
        os.close(context)


def _call(number: int, *arguments: int | bytes | None) -> int:
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in (number, *arguments)]
    result = int(_libc.syscall(*words))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
