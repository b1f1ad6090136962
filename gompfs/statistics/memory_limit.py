"""A limit for the memory of statistics."""

from __future__ import annotations

import os

from gompfs.errors import StatsUnavailableError


def check_memory(num_bytes: int) -> None:
    """Raises StatsUnavailableError if the grammars of a task take more than a quarter of the machine's memory."""
    if num_bytes > _memory_limit():
        raise StatsUnavailableError("these statistics cannot be computed: they need more memory than is allowed")


def _memory_limit() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
