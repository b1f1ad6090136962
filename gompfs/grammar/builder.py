"""Building grammars, through the C++ core (kernels/cpu/grammar)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gompfs import _grammar
from gompfs.grammar.grammar import KINDS, Grammar
from gompfs.grammar.word_characters import word_character_bitmap
from gompfs.model import WORD_RULES

_PARTS_OF_A_BATCH = 16


@dataclass(frozen=True)
class PartsInWords:
    """Parts of a text, in words (uint32): part p is `symbols[starts[p] : starts[p + 1]]`.

    Its words are below `num_words[p]`; each of its files ends with SPLITTER, the last one too.
    """

    symbols: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    num_words: NDArray[np.uint32]


@dataclass(frozen=True)
class PartsInRules:
    """The grammars of such parts (uint32): the rules of all in a row, each up to `ends[rule]` in `symbols`.

    `places[p]` is the root of part p, and its other rules follow, up to `places[p + 1]`. A symbol is a word,
    num_words[p] + the number of a rule of the part, or SPLITTER.
    """

    symbols: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    places: NDArray[np.uint32]


RuleBuilder = Callable[[PartsInWords], PartsInRules]
"""Gives the rules that the builder `repair` of the C++ core gives, part by part."""


class GrammarBuilder:
    """Takes the text of files in order; what words are and how rules are found is chosen by name.

    Text is collected into parts of 8 MiB that are built in the background, so that memory stays bounded.
    """

    def __init__(
        self,
        builder: str = "repair",
        words: str = "whitespace",
        num_threads: int = 0,
        build_rules: RuleBuilder | None = None,
    ) -> None:
        """`builder` is one of GRAMMAR_BUILDERS or NO_RULES, `words` one of WORD_RULES; 0 threads: one per core.

        With `build_rules`, `repair` only cuts text into words, and leaves some parts at once to that, on a thread of
        its own.
        """
        if builder not in KINDS or words not in WORD_RULES:
            raise ValueError(f"no grammar builder {builder!r} or no word rule {words!r}")
        bitmap = word_character_bitmap() if words == "letters" else b""
        num_threads = num_threads or len(os.sched_getaffinity(0))
        self._build_rules = build_rules if builder == "repair" else None
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="gompfs-rules")
        self._batch: Future[None] | None = None
        elsewhere = self._build_rules is not None
        self._native = _grammar.GrammarBuilder(KINDS.index(builder), bitmap, num_threads, elsewhere)

    def add_files(self, files: Sequence[tuple[int, bytes | memoryview]]) -> None:
        """Take whole files as (inode number, content)."""
        self._native.add_files(files)
        self._build_batches(least=_PARTS_OF_A_BATCH)

    def begin_file(self, ino: int) -> None:
        """Start a file that comes in pieces."""
        self._native.begin_file(ino)

    def add_bytes(self, piece: bytes | memoryview) -> None:
        """The next piece of the file."""
        self._native.add_bytes(piece)
        self._build_batches(least=_PARTS_OF_A_BATCH)

    def end_file(self) -> None:
        """The file is complete."""
        self._native.end_file()

    def finish(self) -> Iterator[bytes]:
        """The grammar section of all files in pieces (docs/format.md); nothing can be added afterwards."""
        self._native.finish()
        self._build_batches(least=1)
        self._wait_for_batch()
        while (piece := self._native.next_piece()) is not None:
            yield piece

    def take(self) -> Grammar:
        """With NO_RULES, at any time instead: all that came since the last call.

        Of a file that is not complete the rest comes with the next call.
        """
        return Grammar(self._native.take())

    def _build_batches(self, least: int) -> None:
        """Have the rules of parts that lack them built, as long as there are so many; one batch is under way."""
        while self._build_rules and (taken := self._native.take_words(least, _PARTS_OF_A_BATCH)):
            self._wait_for_batch()
            self._batch = self._executor.submit(self._build_batch, self._build_rules, *taken)

    def _build_batch(self, build_rules: RuleBuilder, numbers: list[int], *words: NDArray[np.uint32]) -> None:
        rules = build_rules(PartsInWords(*words))
        self._native.give_rules(numbers, rules.symbols, rules.ends, rules.places)

    def _wait_for_batch(self) -> None:
        if self._batch is not None:
            self._batch.result()
