"""How the main thread waits for others without missing a signal."""

from __future__ import annotations

import threading
from collections.abc import Iterable

_SECONDS = 0.2


def join_threads(threads: Iterable[threading.Thread]) -> None:
    """Wait for the end of all threads; call it in the main thread, which runs the handlers of signals.

    It wakes up now and then: a signal that comes just before it falls asleep is only noted, and its handler would not
    run before somebody wakes it.
    """
    for thread in threads:
        while thread.is_alive():
            thread.join(_SECONDS)
