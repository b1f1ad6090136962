"""How much was decoded, and how long that took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gompfs import _codec
from gompfs.forks import call_in_child


class DecodeWork(_codec.DecodeWork):
    """Adds up batches, also those that threads without the interpreter decode; safe for any number of threads.

    A child of a fork counts from zero.
    """

    def __init__(self) -> None:
        super().__init__()
        call_in_child(self, DecodeWork.restart)

    @contextmanager
    def batch(self, num_blocks: int, num_bytes: int) -> Iterator[None]:
        """Count a batch that the body decodes, to so many bytes; one that fails takes its time only."""
        self.begin()
        try:
            yield
        except BaseException:
            self.end(0, 0)
            raise
        self.end(num_blocks, num_bytes)
