"""Counts the requests that a mount could not answer because of damage or lack of memory, for stats/metrics."""

from __future__ import annotations

import errno
import threading
from collections import Counter

from gompfs.errors import CorruptBlockError


class Failures:
    """The failures of one mount. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str]] = Counter()
        self._damaged_blocks: set[tuple[str | None, int | None]] = set()

    def add(self, request: str, number: int, error: BaseException) -> None:
        """Count a request, such as `read`, that is answered with an errno."""
        with self._lock:
            self._requests[request, errno.errorcode.get(number, str(number))] += 1
            if isinstance(error, CorruptBlockError):
                self._damaged_blocks.add((error.archive, error.block))

    def requests(self) -> dict[tuple[str, str], int]:
        """Returns how many requests of a kind were answered with an errno. That of reads with EIO is always there."""
        with self._lock:
            return {("read", "EIO"): 0, **self._requests}

    @property
    def num_damaged_blocks(self) -> int:
        """How many different blocks were found to be damaged."""
        return len(self._damaged_blocks)


failures = Failures()
"""Those of the mount that this process serves."""
