"""How much an engine has decoded, and how long that took."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class DecodeWork:
    """Adds up batches; safe for any number of threads. Seconds of batches at the same time add up too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.num_blocks = 0
        self.num_bytes = 0
        self.seconds = 0.0

    @contextmanager
    def batch(self, num_blocks: int, num_bytes: int) -> Iterator[None]:
        """Count a batch that the body decodes."""
        started = time.perf_counter()
        yield
        seconds = time.perf_counter() - started
        with self._lock:
            self.num_blocks += num_blocks
            self.num_bytes += num_bytes
            self.seconds += seconds
