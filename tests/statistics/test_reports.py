"""Texts that the C++ core makes in pieces."""

from __future__ import annotations

from gompfs.statistics.report import PiecewiseReport

PIECES = [b"abc", b"def", b"ghi", b"jkl"]


class Native:
    """A report whose size is known after the first piece, and can be asked for once from then on."""

    def __init__(self) -> None:
        self.sizes: list[int | None] = [None, 12]

    @property
    def size(self) -> int | None:
        return self.sizes.pop(0)

    def pieces(self, first: int, count: int, num_threads: int) -> list[bytes]:
        return PIECES[first : first + count]


def test_the_size_is_computed_once() -> None:
    """A mount asks for it after each piece, and it may take as long as several pieces."""
    report = PiecewiseReport(Native(), 1)
    assert [(report.size, piece) for piece in report] == list(zip([None, 12, 12, 12], PIECES, strict=True))
