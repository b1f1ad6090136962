"""Building grammars, through the C++ core (kernels/cpu/grammar)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from gompfs import _grammar
from gompfs.grammar.grammar import KINDS, Grammar
from gompfs.grammar.word_characters import word_character_bitmap
from gompfs.model import WORD_RULES


class GrammarBuilder:
    """Takes the text of files in order; what words are and how rules are found is chosen by name.

    Text is collected into parts of 8 MiB that are built in the background, so that memory stays bounded.
    """

    def __init__(self, builder: str = "repair", words: str = "whitespace", num_threads: int = 0) -> None:
        """`builder` is one of GRAMMAR_BUILDERS or NO_RULES, `words` one of WORD_RULES; 0 threads: one per core."""
        if builder not in KINDS or words not in WORD_RULES:
            raise ValueError(f"no grammar builder {builder!r} or no word rule {words!r}")
        bitmap = word_character_bitmap() if words == "letters" else b""
        num_threads = num_threads or len(os.sched_getaffinity(0))
        self._native = _grammar.GrammarBuilder(KINDS.index(builder), bitmap, num_threads)

    def add_files(self, files: Sequence[tuple[int, bytes | memoryview]]) -> None:
        """Take whole files as (inode number, content)."""
        self._native.add_files(files)

    def begin_file(self, ino: int) -> None:
        """Start a file that comes in pieces."""
        self._native.begin_file(ino)

    def add_bytes(self, piece: bytes | memoryview) -> None:
        """The next piece of the file."""
        self._native.add_bytes(piece)

    def end_file(self) -> None:
        """The file is complete."""
        self._native.end_file()

    def finish(self) -> Iterator[bytes]:
        """The grammar section of all files in pieces (docs/format.md); nothing can be added afterwards."""
        self._native.finish()
        while (piece := self._native.next_piece()) is not None:
            yield piece

    def take(self) -> Grammar:
        """With NO_RULES, at any time instead: all that came since the last call.

        Of a file that is not complete the rest comes with the next call.
        """
        return Grammar(self._native.take())
