"""Delays interrupts until a short piece of work is complete."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Deferral:
    """Delays SIGINT and SIGTERM during short pieces of work that must not stop in the middle.

    It provides two context managers. `with deferral:` around a program replaces the handlers of both signals, and
    restores them at the end. `with deferral.held:` around a piece of work delays the signals. A signal that arrives
    during that work is passed to its former handler, which usually raises, right after the work. Signals that have no
    handler in Python are not delayed. Outside the main thread, no signals are delayed.
    """

    def __init__(self) -> None:
        self.held = _Held(self)
        self.depth = 0
        self._former: dict[int, Any] = {}
        self._pending: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> Deferral:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                former = signal.getsignal(number)
                if callable(former):
                    self._former[number] = former
                    signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, former in self._former.items():
            signal.signal(number, former)
        self._former.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.depth:
            self._pending.append((number, frame))
        else:
            self._former[number](number, frame)

    def deliver(self) -> None:
        """Pass the delayed signals to their former handlers."""
        while self._pending:
            number, frame = self._pending.pop(0)
            self._former[number](number, frame)


class _Held:
    """See Deferral."""

    def __init__(self, deferral: Deferral) -> None:
        self._deferral = deferral

    def __enter__(self) -> None:
        self._deferral.depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deferral.depth -= 1
        if not self._deferral.depth:
            self._deferral.deliver()
