"""The connection to the kernel for `-o api=low`: mounts, answers requests, unmounts. It does not need libfuse.

RequestLoop reads requests from /dev/fuse on Python's own threads. Passing each request through libfuse and ctypes takes
four times as long: 35,000 entries of a file tree are listed per second in that way, and 150,000 in this way.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from types import FrameType

from gompfs._native.fuse import answer_init
from gompfs.errors import MountError
from gompfs.light_types import TYPE_CHECKING
from gompfs.mount.fuse.fuse_options import NO_ACLS
from gompfs.mount.fuse.kernel_mount import KernelMount
from gompfs.mount.fuse.requests import RequestLoop
from gompfs.mount.system.joining import join_threads
from gompfs.mount.tree.content import Content
from gompfs.options import MountOptions

if TYPE_CHECKING:
    from gompfs.mount.fuse.passthrough import PassthroughFiles

_NUM_THREADS = max(3, min(8, len(os.sched_getaffinity(0)) // 2))  # they need the interpreter for cache misses only
_STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_WAKE_UP = signal.SIGUSR1


class Session:
    """One mount, from mounting to unmounting."""

    def __init__(self, mountpoint: str, source: str, options: MountOptions) -> None:
        """Mount at `mountpoint`. `source` is the name shown in the mount table. Raises MountError."""
        self._mountpoint = mountpoint
        self._passthrough_size = options.passthrough_size
        self._checks_permissions = options.allow_other
        self._is_stopping = False
        self._stop: Callable[[], None] = lambda: None
        # Installed before mounting: a signal that ended this process meanwhile would leave a mount without a daemon.
        self._handlers = {number: signal.signal(number, self._on_signal) for number in _STOP}
        try:
            self._mount = KernelMount(mountpoint, source, options)
        except BaseException:
            self._restore_handlers()
            raise

    def serve(self, content: Content, on_ready: Callable[[], None]) -> None:
        """Answer requests until the mount is gone. Calls `on_ready` when the mount begins to answer.

        SIGTERM, SIGINT and SIGHUP unmount. Must be called in the main thread.
        """
        device = self._mount.device
        has_passthrough = self._negotiate(device, wants_acls=self._checks_permissions and content.has_acls())
        passthrough = self._start_passthrough(content, device, has_passthrough)
        loop = RequestLoop(device, content, passthrough)
        threads = [threading.Thread(target=loop.run, name=f"gompfs-request-{n}") for n in range(_NUM_THREADS)]

        def stop() -> None:
            try:
                self._mount.unmount()
            except MountError:
                pass  # close() tries again, and reports the reason
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

    def _start_passthrough(self, content: Content, device: int, has_passthrough: bool) -> PassthroughFiles | None:
        """Returns the passthrough files, or None if passthrough is not asked for or not possible."""
        if content.only is None:
            return None
        if not self._passthrough_size:
            content.only.virtual_content.describe_passthrough = lambda: "off"
            return None
        from gompfs.mount.fuse.passthrough import start_passthrough

        files, describe = start_passthrough(content.only.archive, device, self._passthrough_size, has_passthrough)
        content.only.virtual_content.describe_passthrough = describe
        return files

    def _negotiate(self, device: int, *, wants_acls: bool) -> bool:
        """Answer the kernel's first request. Returns whether passthrough is wanted and supported.

        Raises MountError, also if the kernel cannot apply ACLs that it should apply.
        """
        try:
            has_passthrough, has_acls = answer_init(device, bool(self._passthrough_size), wants_acls)
        except (OSError, RuntimeError) as error:
            raise MountError(f"the mount ended before it was ready: {error}", path=self._mountpoint) from error
        if wants_acls and not has_acls:
            raise MountError(NO_ACLS, path=self._mountpoint)
        return has_passthrough

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._is_stopping = True
        self._stop()

    def close(self) -> None:
        """Unmount if still mounted, and close the connection to the kernel."""
        try:
            self._mount.unmount()
        finally:
            self._mount.close()
            self._restore_handlers()

    def _restore_handlers(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)


def _end_reading(device: int, threads: Sequence[threading.Thread]) -> None:
    """Wake the threads that wait for requests.

    Needed because files that are still open keep the detached file system alive, so that the kernel does not wake them.
    """
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, device)
    os.close(null)
    for thread in threads:
        if thread.ident is not None and thread.is_alive():
            try:
                signal.pthread_kill(thread.ident, _WAKE_UP)
            except ProcessLookupError:
                pass  # the thread has just ended by itself
