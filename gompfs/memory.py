"""How much memory is free. Linux grants more than it has, and kills a process that uses it."""

from __future__ import annotations

import os
import re
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
ALWAYS_FREE = 64 << 20
"""So few bytes are not worth a look at what is free."""


def free_memory() -> int:
    """Returns how many bytes this process may still use: those that the machine has, up to the limit of a container."""
    try:
        found = re.findall(r"^(?:MemAvailable|SwapFree): *([0-9]+) kB$", _MEMINFO.read_text(), re.MULTILINE)
    except OSError:
        found = []
    free = sum(map(int, found)) << 10 if found else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(free, int(_GROUP_LIMIT.read_text()))
    except (OSError, ValueError):  # outside a container there is no such file; without a limit it says max
        return free


def check_memory_for(num_bytes: int) -> None:
    """Raises MemoryError if `num_bytes` are more than the free memory."""
    if num_bytes > ALWAYS_FREE and num_bytes > (free := free_memory()):
        raise MemoryError(f"the content takes {num_bytes:,} bytes of memory, and {free:,} are free")
