"""The virtual files of a mount, each computed when it is first used, then cached."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from gompfs.light_types import TYPE_CHECKING
from gompfs.mount.not_ready import NotReadyError
from gompfs.mount.spool import Spool

if TYPE_CHECKING:
    from gompfs.statistics.report import Report

_VOLATILE_SECONDS = 1.0  # long enough to read a file to its end, or to get its error


class VirtualFile:
    """One virtual file, computed once, on first use. Thread-safe.

    A thread of its own computes the content, and no request blocks on it: a request for bytes that are not there yet
    raises NotReadyError. If the size is known before the text, the beginning can be read while the rest is computed. If
    the computation fails, all waiting requests get its error; a request more than a second later starts it again.
    """

    def __init__(self, compute: Callable[[], Report], *, is_volatile: bool = False) -> None:
        """`compute` returns the content. If that changes, `is_volatile`, a content is used for one second only."""
        self._compute = compute
        self._is_volatile = is_volatile
        self._lock = threading.Lock()
        self._spool = Spool()
        self._size: int | None = None
        self._error: Exception | None = None
        self._is_running = False
        self._ended_at = 0.0  # 0: never computed yet
        self._step = 0  # incremented when more of the text, its size or an error is known
        self._waiting: list[Callable[[], None]] = []
        self.used_at = time.monotonic()
        """When the content was last read, by time.monotonic()."""

    @property
    def num_bytes(self) -> int:
        """How much content there is now."""
        return self._spool.size

    @property
    def has_temporary_file(self) -> bool:
        """Whether a part of the content is in a temporary file."""
        return self._spool.has_file

    @property
    def mtime_ns(self) -> int | None:
        """When the content was computed, for files whose content changes, so that the kernel drops its cached pages.

        None for all other files.
        """
        return int(self._ended_at * 1e9) if self._is_volatile else None

    def size(self) -> int:
        """Returns the content's size in bytes. Raises NotReadyError, GompfsError, OSError."""
        with self._lock:
            self._begin()
            if self._size is None:
                raise NotReadyError(partial(self._call_after, self._step))
            return self._size

    def read(self, file_offset: int, size: int) -> bytes:
        """Returns up to `size` bytes of the content. Raises NotReadyError, GompfsError, OSError."""
        with self._lock:
            self._begin()
            if self._size is None or self._spool.size < min(file_offset + size, self._size):
                raise NotReadyError(partial(self._call_after, self._step))
            spool, self.used_at = self._spool, time.monotonic()
        return spool.read(file_offset, size)

    def close(self) -> None:
        """Free the content, unless it is still being computed: a request may be waiting for it."""
        with self._lock:
            if not self._is_running:
                self._spool.close()

    def _call_after(self, step: int, callback: Callable[[], None]) -> None:
        """Call `callback` when more is known than at `step`."""
        with self._lock:
            if self._step == step:
                self._waiting.append(callback)
                return
        callback()

    def _begin(self) -> None:
        """Start computing if there is no content, or if it is too old. Raises the error of the last try."""
        is_old = time.time() - self._ended_at > _VOLATILE_SECONDS
        if self._is_running:
            return
        if self._error is not None and not is_old:
            raise self._error
        if self._ended_at == 0 or self._error is not None or (is_old and self._is_volatile):
            self._spool, self._size, self._error, self._is_running = Spool(), None, None, True
            threading.Thread(target=self._run, name="gompfs-statistics", daemon=True).start()

    def _run(self) -> None:
        try:
            report = self._compute()
            self._advance(size=report.size)
            for piece in report:
                self._spool.append(piece)
                self._advance(size=report.size)
            self._advance(size=self._spool.size, is_running=False)
        except Exception as error:
            self._spool.close()
            self._advance(size=None, is_running=False, error=error)

    def _advance(self, *, size: int | None, is_running: bool = True, error: Exception | None = None) -> None:
        with self._lock:
            self._size, self._is_running, self._error = size, is_running, error
            if not is_running:
                self._ended_at = time.time()
            self._step += 1
            waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()
