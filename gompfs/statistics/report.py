"""The text of a statistic, made piece by piece."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext

from gompfs.light_types import Protocol
from gompfs.threads import default_threads

_PIECES_PER_THREAD = 4
_MOST_PIECES = 16  # pieces in memory at once with up to this many threads


class Report(ABC):
    """Lines of text, made in pieces, so that the whole text need not be in memory."""

    @property
    @abstractmethod
    def size(self) -> int | None:
        """The size of the text in bytes, or None if it is not known before the text is made."""

    @abstractmethod
    def __iter__(self) -> Iterator[bytes]:
        """Yields the text from its beginning, in pieces. Can be called several times."""

    def read(self) -> bytes:
        """Returns the whole text."""
        return b"".join(self)


def in_whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yields a text, given in pieces, in pieces of whole lines."""
    begun: list[bytes] = []
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if end:
            yield b"".join([*begun, piece[:end]])
            begun = []
        if end < len(piece):
            begun.append(piece[end:])
    if begun:
        yield b"".join(begun)


class FixedReport(Report):
    """A short text that exists already."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    @property
    def size(self) -> int:
        """See Report.size."""
        return len(self._text)

    def __iter__(self) -> Iterator[bytes]:
        yield self._text


class _NativeReport(Protocol):
    @property
    def size(self) -> int | None: ...

    def pieces(self, first: int, count: int, num_threads: int) -> list[bytes]: ...


class PiecewiseReport(Report):
    """A text that the C++ core makes in pieces of about 1 MiB, several of them in parallel."""

    def __init__(
        self,
        native: _NativeReport,
        num_threads: int = 0,
        timed: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Makes pieces on `num_threads` threads (0: one per core), each time inside of `with timed():`."""
        self._native = native
        self._timed = timed
        self._num_threads = num_threads or default_threads()
        self._size: int | None = None

    @property
    def size(self) -> int | None:
        """See Report.size."""
        if self._size is None:  # to add up the sizes of millions of lines takes long, and a mount asks for each piece
            self._size = self._native.size
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        first, count = 0, 1  # make the first piece alone, so that the reader gets it soon
        while True:
            with self._timed():
                pieces = self._native.pieces(first, count, self._num_threads)
            yield from pieces
            if len(pieces) < count:
                return
            first += count
            count = min(_PIECES_PER_THREAD * self._num_threads, max(_MOST_PIECES, self._num_threads))


class FirstLines(Report):
    """The first lines of another report."""

    def __init__(self, report: Report, num_lines: int) -> None:
        """Takes the first `num_lines` lines of `report`, or all of them if there are fewer."""
        self._report = report
        self._num_lines = num_lines

    @property
    def size(self) -> None:
        """See Report.size."""

    def __iter__(self) -> Iterator[bytes]:
        left = self._num_lines
        for piece in self._report:
            lines = piece.count(b"\n")
            if lines >= left:
                yield b"\n".join(piece.split(b"\n", left)[:left]) + b"\n"
                return
            left -= lines
            yield piece
