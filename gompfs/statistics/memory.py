"""The memory of statistics: a limit for their grammars, and few malloc arenas."""

from __future__ import annotations

import functools
import os

from gompfs.errors import StatsUnavailableError

_M_ARENA_MAX = -8  # from malloc.h
_NUM_ARENAS = 4


def check_memory(num_bytes: int) -> None:
    """Raises StatsUnavailableError if the grammars of a task take more than a quarter of the machine's memory."""
    if num_bytes > _memory_limit():
        raise StatsUnavailableError("these statistics cannot be computed: they need more memory than is allowed")


def _memory_limit() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


@functools.cache
def share_arenas() -> None:
    """Make all threads share a few malloc arenas, if the C library is glibc. For a process that is gompfs's own.

    With one arena per thread, memory that one thread has freed cannot be reused by another: with 16 threads, that
    wastes a tenth of the memory of a large statistic.
    """
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _NUM_ARENAS)
