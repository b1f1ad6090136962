"""Work for several devices: how it is divided among them, and the threads that give it to them.

Each device gets its share on a thread of its own, in the way in which one device gets all of it. One share needs no
thread: then the calling thread does everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Result = TypeVar("_Result")


def run_together(calls: Sequence[Callable[[], _Result]], executor: Executor | None = None) -> list[_Result]:
    """Calls the first function on this thread and each other one on a thread of its own. Returns what they return.

    The threads are those of `executor`, or are started for this call. Waits until all functions have returned, then
    raises the error of the first one that failed.
    """
    if len(calls) <= 1:
        return [call() for call in calls]
    with _threads(executor, len(calls) - 1) as threads:
        others = [threads.submit(copy_context().run, call) for call in calls[1:]]
        try:
            first = calls[0]()
        finally:
            wait(others)
    return [first, *(other.result() for other in others)]


@contextmanager
def _threads(executor: Executor | None, count: int) -> Iterator[Executor]:
    if executor is not None:
        yield executor
        return
    with ThreadPoolExecutor(count, thread_name_prefix="gompfs-device") as started:
        yield started


def cut_evenly(sizes: NDArray[np.integer], count: int) -> list[slice]:
    """Cuts a row of things into `count` runs of about the same size. Runs may be empty."""
    ends = np.cumsum(sizes, dtype=np.int64)
    total = int(ends[-1]) if ends.size else 0
    targets = [total * number // count for number in range(1, count)]
    # a thing belongs to the run in which its middle lies
    cuts = [0, *np.searchsorted(ends - sizes.astype(np.int64) // 2, targets, side="right").tolist(), ends.size]
    return [slice(begin, end) for begin, end in pairwise(cuts)]
