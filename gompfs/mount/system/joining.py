"""Waits for threads in the main thread without missing a signal."""

from __future__ import annotations

import threading
from collections.abc import Iterable

_SECONDS = 0.2


def join_threads(threads: Iterable[threading.Thread]) -> None:
    """Wait until all threads have ended. Call it in the main thread, which runs the signal handlers.

    The wait is interrupted every 0.2 seconds: if a signal arrives just before the thread blocks, Python only records
    it, and would not run its handler until the thread wakes up.
    """
    for thread in threads:
        while thread.is_alive():
            thread.join(_SECONDS)
