"""How many threads a call of the C++ core uses if its caller does not say: one per core, or fewer inside a limit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_limit: ContextVar[int] = ContextVar("gompfs.threads", default=0)


def default_threads() -> int:
    """Returns the limit of this thread, or the number of cores that the process may use."""
    return _limit.get() or len(os.sched_getaffinity(0))


@contextmanager
def threads_limited_to(num_threads: int) -> Iterator[None]:
    """Limits what this thread calls during the `with` body, as when other tasks use the other cores; 0: no limit."""
    token = _limit.set(num_threads)
    try:
        yield
    finally:
        _limit.reset(token)
