"""The binding of `-o api=low` to the kernel: mounts, answers requests, unmounts. libfuse is not needed.

Requests are taken from the device by RequestLoop on Python's own threads. Passing each through libfuse and ctypes
costs four times as much: a file tree is listed at 35,000 entries a second that way, and at 150,000 this way.
"""

from __future__ import annotations

import os
import signal
import struct
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING

from gompfs.errors import MountError
from gompfs.mount.archive_set import ArchiveSet
from gompfs.mount.joining import join_threads
from gompfs.mount.kernel_mount import KernelMount
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
from gompfs.mount.virtual_files import tell_passthrough
from gompfs.options import MountOptions

if TYPE_CHECKING:
    from gompfs.mount.passthrough import PassthroughFiles

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


class Session:
    """One mount, from mounting to unmounting."""

    def __init__(self, mountpoint: str, source: str, options: MountOptions) -> None:
        """Mount at `mountpoint`, with `source` as what is mounted. Raises MountError."""
        self._mountpoint = mountpoint
        self._passthrough_size = options.passthrough_size
        self._is_stopping = False
        self._stop: Callable[[], None] = lambda: None
        # Already now: a process that ended while it mounts would leave a mount that nobody answers.
        self._handlers = {number: signal.signal(number, self._on_signal) for number in _STOP}
        try:
            self._mount = KernelMount(mountpoint, source, options)
        except BaseException:
            self._restore_handlers()
            raise

    def serve(self, content: Snapshots | ArchiveSet, on_ready: Callable[[], None]) -> None:
        """Answer requests until the mount is gone; `on_ready` is called when it answers.

        SIGTERM, SIGINT and SIGHUP unmount. Call it in the main thread.
        """
        device = self._mount.device
        features = self._negotiate(device)
        passthrough = self._start_passthrough(content, device, features)
        loop = RequestLoop(device, content, passthrough)
        threads = [threading.Thread(target=loop.run, name=f"gompfs-request-{n}") for n in range(_NUM_THREADS)]

        def stop() -> None:
            try:
                self._mount.unmount()
            except MountError:
                pass  # close() tries again, and says why
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

    def _start_passthrough(
        self, content: Snapshots | ArchiveSet, device: int, features: Feature
    ) -> PassthroughFiles | None:
        """What opens files for the kernel to read by itself, where the options ask for that."""
        if content.only is None:
            return None
        if not self._passthrough_size:
            tell_passthrough(content.only, lambda: "off")
            return None
        from gompfs.mount.passthrough import start_passthrough

        return start_passthrough(content.only, device, self._passthrough_size, features)

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
        """Unmount if that has not happened, and close the connection."""
        try:
            self._mount.unmount()
        finally:
            self._mount.close()
            self._restore_handlers()

    def _restore_handlers(self) -> None:
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
