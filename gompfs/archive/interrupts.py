"""Interrupts that wait until a short piece of work is whole."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Deferral:
    """Delays SIGINT and SIGTERM during short pieces of work that must not stop in the middle.

    Used twice as a context manager: `with deferral:` around a program takes over the handlers of both signals and
    gives them back; `with deferral.held:` around a piece of work delays them. A signal that arrives during that work
    reaches its former handler, which usually raises, right after the work. Without a handler in Python, and outside
    the main thread, nothing changes.
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
        """Hand the signals that have waited to their former handlers."""
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
