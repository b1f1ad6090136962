"""Hashes large files on a thread of its own, while the main thread reads them."""

from __future__ import annotations

import hashlib
from collections import deque
from concurrent.futures import Executor, Future

_MOST_WAITING = 8


class BackgroundDigest:
    """The SHA-256 of bytes that come in pieces. The executor has one thread, so pieces are hashed in their order."""

    def __init__(self, executor: Executor) -> None:
        """At most `_MOST_WAITING` pieces wait to be hashed."""
        self._executor = executor
        self._digest = hashlib.sha256()
        self._waiting: deque[Future[None]] = deque()

    def update(self, piece: bytes) -> None:
        """Add a piece. Waits for an earlier piece if too many wait."""
        if len(self._waiting) == _MOST_WAITING:
            self._waiting.popleft().result()
        self._waiting.append(self._executor.submit(self._digest.update, piece))

    def digest(self) -> bytes:
        """Returns the hash of all pieces."""
        while self._waiting:
            self._waiting.popleft().result()
        return self._digest.digest()
