"""How grammars are traversed: the settings, and the seconds that each phase takes."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gompfs._native.statistics import Direction

if TYPE_CHECKING:
    from gompfs.gpu.device.arrays import ArrayDevice


_ADDING = threading.Lock()  # threads of several devices share a PhaseTimes


@dataclass
class PhaseTimes:
    """Seconds per phase, and the directions chosen on a device, summed over tasks, ranges of files, and devices.

    The CPU has the phases `flatten`, `traverse` and `emit`, since it initialises each part just before traversing it.
    """

    flatten: float = 0.0
    """The CPU numbers words and files, and for a device puts the rules into arrays."""
    upload: float = 0.0
    initialise: float = 0.0
    """Levels, n-grams from head and tail buffers, and the first pass, which estimates the work of a direction."""
    traverse: float = 0.0
    download: float = 0.0
    emit: float = 0.0
    """The CPU sorts the postings and makes the text."""
    directions: Counter[str] = field(default_factory=Counter)
    """How many ranges of files were traversed top-down, and how many bottom-up."""

    @contextmanager
    def of(self, phase: str, device: ArrayDevice | None = None) -> Iterator[None]:
        """Adds the time of the `with` body to a phase.

        With `device`, waits at the end for the work that the device was given.
        """
        started = time.perf_counter()
        yield
        if device is not None:
            device.synchronize()
        with _ADDING:
            setattr(self, phase, getattr(self, phase) + time.perf_counter() - started)

    def count_direction(self, name: str) -> None:
        """Counts a range of files that was traversed."""
        with _ADDING:
            self.directions[name] += 1


@dataclass(frozen=True)
class Traversal:
    """How a result is computed. The result does not depend on it.

    With a `device`, the grammars are traversed there, in ranges of files that fit in its memory. Without one,
    `num_threads` threads (0: one per core) traverse them.

    At most `in_memory` bytes of postings are kept in memory; the rest goes to a temporary file. A task with more than
    `space_limit` bytes of postings fails; 0 stands for half of the free disk space. Times are added to `times`.
    """

    direction: Direction = Direction.AUTO
    num_threads: int = 0
    in_memory: int = 32 << 20
    space_limit: int = 0
    device: ArrayDevice | None = None
    times: PhaseTimes | None = None


BY_DEFAULT = Traversal()
