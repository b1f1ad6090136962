"""How much was decoded, and how long that took."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class DecodeWork:
    """Adds up batches; safe for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Begin again; not while a batch is at work."""
        self.num_blocks = 0
        self.num_bytes = 0
        self._seconds = 0.0
        self._num_at_work = 0
        self._busy_since = 0.0

    @property
    def seconds(self) -> float:
        """How long there was a batch at work, or more than one."""
        with self._lock:
            return self._seconds + (time.perf_counter() - self._busy_since if self._num_at_work else 0.0)

    @contextmanager
    def batch(self, num_blocks: int, num_bytes: int) -> Iterator[None]:
        """Count a batch that the body decodes, to so many bytes; one that fails takes its time only."""
        with self._lock:
            if self._num_at_work == 0:
                self._busy_since = time.perf_counter()
            self._num_at_work += 1
        try:
            yield
            with self._lock:
                self.num_blocks += num_blocks
                self.num_bytes += num_bytes
        finally:
            with self._lock:
                self._num_at_work -= 1
                if self._num_at_work == 0:
                    self._seconds += time.perf_counter() - self._busy_since
