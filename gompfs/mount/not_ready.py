"""The exception by which a request is parked until its answer is known."""

from __future__ import annotations

from collections.abc import Callable


class NotReadyError(Exception):
    """The content is still being computed: try again when the callback given to `call_later` is called."""

    def __init__(self, call_later: Callable[[Callable[[], None]], None]) -> None:
        """`call_later` takes a callback and calls it once, on another thread or at once, when a new try may succeed."""
        super().__init__("it is being computed")
        self.call_later = call_later
