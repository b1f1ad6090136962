"""How much memory is free, since Linux grants more than it has, and kills a process that uses it; few malloc arenas."""

from __future__ import annotations

import functools
import os
import resource

_MEMINFO = "/proc/meminfo"
_GROUP_LIMIT = "/sys/fs/cgroup/memory.max"
ALWAYS_FREE = 64 << 20
"""So few bytes are not worth a look at what is free."""
_M_ARENA_MAX = -8  # from malloc.h
_NUM_ARENAS = 4


def free_memory() -> int:
    """Returns how many bytes this process may still use: those that the machine has, up to the limit of a container."""
    try:
        lines = [line.split() for line in _text(_MEMINFO).splitlines()]
    except OSError:
        lines = []
    found = [int(words[1]) for words in lines if words[0] in ("MemAvailable:", "SwapFree:")]
    free = sum(found) << 10 if found else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(free, int(_text(_GROUP_LIMIT)))
    except (OSError, ValueError):  # outside a container there is no such file; without a limit it says max
        return free


def _text(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


def check_memory_for(num_bytes: int) -> None:
    """Raises MemoryError if `num_bytes` are more than the free memory."""
    if num_bytes > ALWAYS_FREE and num_bytes > (free := free_memory()):
        raise MemoryError(f"the content takes {num_bytes:,} bytes of memory, and {free:,} are free")


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


def spare_address_space() -> None:
    """Share malloc arenas if the address space of this process is limited (ulimit -v). For one that is gompfs's own.

    The arena of a thread takes 64 MiB of it or more, of which most is never used.
    """
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        share_arenas()
