"""Counts the blocks and bytes that were decoded, and the time that took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gompfs._native import codec as _codec
from gompfs.forks import call_in_child


class DecodeWork(_codec.DecodeWork):
    """Sums up batches, including those that C++ threads decode without the GIL. Any number of threads may use it.

    In a forked child, the counts start again at zero.
    """

    def __init__(self) -> None:
        super().__init__()
        call_in_child(self, DecodeWork.restart)

    @contextmanager
    def batch(self, num_blocks: int, num_bytes: int) -> Iterator[None]:
        """Counts the batch that the body of `with` decodes to `num_bytes` bytes.

        If the body raises, only the time is counted.
        """
        self.begin()
        try:
            yield
        except BaseException:
            self.end(0, 0)
            raise
        self.end(num_blocks, num_bytes)
