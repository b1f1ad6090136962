"""Measures a connection, and says from that how much to request at once."""

from __future__ import annotations

from time import monotonic

_LEAST, _MOST = 1 << 20, 64 << 20
_FIRST = 8 << 20  # before anything is measured
_SECONDS = 1.5  # of traffic; what another reader needs waits behind that
_IN_WINDOW = 32  # requests
_LEAST_REQUEST, _MOST_REQUEST = 128 << 10, 4 << 20
_MEASURED = 1.0  # seconds


class LinkSpeed:
    """The delay and the bandwidth of a connection, measured while requests are under way."""

    def __init__(self) -> None:
        self.window = _FIRST
        """How many bytes to have under way for a reader that goes on in order.

        That of one and a half seconds, and at least four times what the link carries in one delay. It must be more than
        what came while the bandwidth was measured: otherwise the window limits the bandwidth, which limits the window.
        """
        self._delay = float("inf")
        self._bandwidth = 0.0
        self._num_running = 0
        self._began = 0.0
        self._received = 0

    @staticmethod
    def request_size(size: int) -> int:
        """How many bytes one request should be for, of `size` bytes that are wanted.

        A new connection is slow at first, so several are faster than one.
        """
        return min(max(size // _IN_WINDOW, _LEAST_REQUEST), _MOST_REQUEST)

    def begin(self) -> float:
        """Called before a request. Returns what `end` is given."""
        now = monotonic()
        if self._num_running == 0:
            self._began, self._received = now, 0
        self._num_running += 1
        return now

    def end(self, began: float, size: int) -> None:
        """Called after a request that has brought `size` bytes; 0 if it failed."""
        now = monotonic()
        self._num_running -= 1
        if not size:
            return
        self._received += size
        self._delay = min(self._delay, now - began)
        if self._received < _LEAST_REQUEST:
            return
        measured = self._received / max(now - self._began, 1e-6)
        self._bandwidth = max(measured, 0.8 * self._bandwidth)
        self.window = min(max(int(max(4 * self._delay, _SECONDS) * self._bandwidth), _LEAST), _MOST)
        if now - self._began > _MEASURED:
            self._began, self._received = now, 0
