"""The binding of `-o api=low` to libfuse 3, which mfusepy loads and describes.

libfuse mounts and unmounts. In between, requests are taken from the device by RequestLoop on Python's own threads.
Passing each through libfuse and ctypes costs four times as much: a file tree is listed at 35,000 entries a second
that way, and at 150,000 this way.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import struct
import threading
from collections.abc import Callable, Sequence
from types import FrameType

import mfusepy

from gompfs.errors import MountError
from gompfs.mount.archive_set import ArchiveSet
from gompfs.mount.joining import join_threads
from gompfs.mount.libfuse_options import libfuse_options
from gompfs.mount.passthrough import start_passthrough
from gompfs.mount.protocol import (
    BUFFER_SIZE,
    REPLY_HEADER,
    REQUEST_HEADER,
    Feature,
    Opcode,
    init_reply,
)
from gompfs.mount.requests import RequestLoop
from gompfs.mount.snapshots import Snapshots
from gompfs.options import MountOptions

log = logging.getLogger(__name__)

_NUM_THREADS = max(3, min(8, len(os.sched_getaffinity(0)) // 2))  # they need the interpreter for misses only
_STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_WAKE_UP = signal.SIGUSR1
_FEATURES = (
    Feature.ASYNC_READ
    | Feature.ASYNC_DIO
    | Feature.AUTO_INVAL_DATA
    | Feature.INIT_EXT
    | Feature.MAX_PAGES
    | Feature.PARALLEL_DIROPS
    | Feature.READDIRPLUS
)

_library = mfusepy._libfuse
_library.fuse_session_new.restype = ctypes.c_void_p


class _Arguments(ctypes.Structure):
    """struct fuse_args."""

    _fields_ = (
        ("count", ctypes.c_int),
        ("values", ctypes.POINTER(ctypes.c_char_p)),
        ("allocated", ctypes.c_int),
    )


class Session:
    """One mount, from mounting to unmounting."""

    def __init__(self, mountpoint: str, source: str, options: MountOptions) -> None:
        """Mount at `mountpoint`, with `source` as what is mounted. Raises MountError."""
        self._mountpoint = mountpoint
        self._passthrough_size = options.passthrough_size
        self._is_stopping = False
        self._stop: Callable[[], None] = lambda: None
        arguments = [b"gompfs", b"-o", _joined(libfuse_options(source, options))]
        values = (ctypes.c_char_p * (len(arguments) + 1))(*arguments, None)
        self._session = ctypes.c_void_p(
            _library.fuse_session_new(
                ctypes.byref(_Arguments(len(arguments), values, 0)),
                None,  # libfuse answers nothing
                ctypes.c_size_t(0),
                None,
            )
        )
        if not self._session:
            raise MountError("libfuse does not take the mount options", path=mountpoint)
        # Already now: a process that ended while it mounts would leave a mount that nobody answers.
        self._handlers = {number: signal.signal(number, self._on_signal) for number in _STOP}
        if _library.fuse_session_mount(self._session, os.fsencode(mountpoint)) != 0:
            self.close()
            raise MountError("libfuse could not mount here", path=mountpoint)

    def serve(self, content: Snapshots | ArchiveSet, on_ready: Callable[[], None]) -> None:
        """Answer requests until the mount is gone; `on_ready` is called when it answers.

        SIGTERM, SIGINT and SIGHUP unmount. Call it in the main thread.
        """
        # libfuse closes its descriptor when it unmounts, while the threads still read from theirs.
        device = os.dup(_library.fuse_session_fd(self._session))
        features = self._negotiate(device)
        only = content.only
        passthrough = (
            None if only is None else start_passthrough(only, device, self._passthrough_size, features)
        )
        loop = RequestLoop(device, content, passthrough)
        threads = [threading.Thread(target=loop.run, name=f"gompfs-request-{n}") for n in range(_NUM_THREADS)]

        def stop() -> None:
            _library.fuse_session_unmount(self._session)
            _end_reading(device, threads)

        signal.signal(_WAKE_UP, lambda _number, _frame: None)
        for thread in threads:
            thread.start()
        self._stop = stop
        if self._is_stopping:
            stop()
        on_ready()
        join_threads(threads)
        loop.close()
        if passthrough is not None:
            passthrough.close()
        os.close(device)

    def _negotiate(self, device: int) -> Feature:
        """Answer the kernel's first request, INIT; the features that both sides have. Raises MountError."""
        wanted = _FEATURES | Feature.PASSTHROUGH if self._passthrough_size else _FEATURES
        try:
            request = memoryview(os.read(device, BUFFER_SIZE))
            _, opcode, unique, *_ = REQUEST_HEADER.unpack_from(request)
            if opcode != Opcode.INIT:
                raise ValueError("the kernel does not begin with INIT")
            reply, features = init_reply(request[REQUEST_HEADER.size :], wanted)
            os.writev(device, [REPLY_HEADER.pack(REPLY_HEADER.size + len(reply), 0, unique), reply])
        except (OSError, ValueError, struct.error) as error:
            raise MountError(f"the mount ended before it began: {error}", path=self._mountpoint) from error
        return features

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._is_stopping = True
        self._stop()

    def close(self) -> None:
        """Unmount, where that has not happened, and free the session."""
        _library.fuse_session_unmount(self._session)
        _library.fuse_session_destroy(self._session)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)


def _end_reading(device: int, threads: Sequence[threading.Thread]) -> None:
    """Let threads that wait for requests return, where open files keep the unmounted file system alive."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, device)
    os.close(null)
    for thread in threads:
        if thread.ident is not None and thread.is_alive():
            try:
                signal.pthread_kill(thread.ident, _WAKE_UP)
            except ProcessLookupError:
                pass  # it has seen the end by itself just now


def _joined(options: dict[str, str | bool]) -> bytes:
    """As `-o` takes them."""
    return os.fsencode(",".join(name if value is True else f"{name}={value}" for name, value in options.items()))
