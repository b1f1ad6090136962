"""The parameters of a statistic."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gompfs.errors import OptionError
from gompfs.statistics.documents import Document

MAX_NGRAM_LENGTH = 5
"""The maximum number of words in an n-gram of the statistics that list n-grams."""
MAX_SEARCHED_LENGTH = 255
"""The maximum number of words in a phrase, and in an n-gram of a document."""


@dataclass(frozen=True)
class StatsQuery:
    """The parameters of a statistic. The virtual files use the defaults."""

    ino: int | None = None
    """Inode number of the only file to count; None for all files."""
    ngram_length: int = 3
    """The length of the n-grams, 1 to 5 words; those of documents have 1 to 255."""
    top: int = 0
    """Limit for the words of a term vector, the files of an n-gram or a document, or the lines. 0: no limit; 10 for
    the words of tf-idf and the files of a document."""
    words: tuple[bytes, ...] = ()
    """The words to search for, 1 to 255 in a row."""
    documents: Iterable[Document] = ()
    """The documents whose n-grams are searched for."""
    path: bytes | None = None
    """The path to print for the file `ino`, since its other paths may be secret; None for any path of it."""
    prefix: bytes = b""
    """A prefix of the paths in indexes and term vectors, to tell the files of several archives apart."""

    def __post_init__(self) -> None:
        if not 0 <= self.top < 1 << 63:
            raise OptionError(f"top must be 0 or more and fit into 63 bits, not {self.top}")


EVERYTHING = StatsQuery()
