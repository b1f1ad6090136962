"""Building grammars, through the C++ core (kernels/cpu/grammar)."""

from __future__ import annotations

import os
from collections import deque
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
_GIVEN_AT_ONCE = 2  # batches: where one has its last parts checked, there are threads for the next one


@dataclass(frozen=True)
class PartsInText:
    """Parts of a text: whole files or pieces of one, `text` (uint8) with a newline behind each.

    `file_ends` (uint32) says where these newlines are, `part_files` (uint32) which file each part begins with, and how
    many there are. Words are of the rule `whitespace`, or of the characters that the bitmap `word_characters` marks.
    """

    text: NDArray[np.uint8]
    file_ends: NDArray[np.uint32]
    part_files: NDArray[np.uint32]
    word_characters: bytes


@dataclass(frozen=True)
class PartsInRules:
    """The grammars of such parts (uint32 but for the bytes of words).

    Word w is `word_bytes[word_ends[w - 1] : word_ends[w]]` (uint8); those of part p begin with `part_words[p]`, in the
    order in which they first come in its text. Rules are each up to `rule_ends[rule]` in `symbols`; `part_rules[p]` is
    the root of part p, and its other rules follow. A symbol is the number of a word of the part, or of a rule
    of the part behind all its words, or SPLITTER.
    """

    word_bytes: NDArray[np.uint8]
    word_ends: NDArray[np.uint32]
    part_words: NDArray[np.uint32]
    symbols: NDArray[np.uint32]
    rule_ends: NDArray[np.uint32]
    part_rules: NDArray[np.uint32]


RuleBuilder = Callable[[PartsInText], PartsInRules]
"""Gives the words, and the rules that the builder `repair` of the C++ core gives, part by part."""


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
        allocate: Callable[[int], memoryview] = lambda size: np.empty(size, np.uint8).data,
    ) -> None:
        """`builder` is one of GRAMMAR_BUILDERS or NO_RULES, `words` one of WORD_RULES; 0 threads: one per core.

        With `build_rules`, `repair` leaves some parts at once to that, on a thread of its own, their text in memory
        that `allocate` gives.
        """
        if builder not in KINDS or words not in WORD_RULES:
            raise ValueError(f"no grammar builder {builder!r} or no word rule {words!r}")
        self._word_characters = word_character_bitmap() if words == "letters" else b""
        self._num_threads = num_threads or len(os.sched_getaffinity(0))
        self._allocate = allocate
        self._build_rules = build_rules if builder == "repair" else None
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="gompfs-rules")
        self._giver = ThreadPoolExecutor(_GIVEN_AT_ONCE, thread_name_prefix="gompfs-give-rules")
        self._batch: Future[None] | None = None
        self._given: deque[Future[None]] = deque()
        elsewhere = self._build_rules is not None
        self._native = _grammar.GrammarBuilder(
            KINDS.index(builder), self._word_characters, self._num_threads, elsewhere
        )

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

    def finish(self) -> Iterator[memoryview]:
        """The grammar section of all files in pieces (docs/format.md); nothing can be added afterwards."""
        self._native.finish()
        self._build_batches(least=1)
        if self._batch is not None:
            self._batch.result()
        while self._given:
            self._given.popleft().result()
        while (piece := self._native.next_piece()) is not None:
            yield piece.data

    def take(self) -> Grammar:
        """With NO_RULES, at any time instead: all that came since the last call.

        Of a file that is not complete the rest comes with the next call.
        """
        return Grammar(self._native.take())

    def _build_batches(self, least: int) -> None:
        """Have parts built elsewhere, as long as so many wait: while one batch is, those before are checked."""
        how = least, _PARTS_OF_A_BATCH, self._allocate, self._num_threads
        while self._build_rules and (taken := self._native.take_texts(*how)):
            numbers, text, file_ends, part_files = taken
            if self._batch is not None:
                self._batch.result()
            parts = PartsInText(np.frombuffer(text, np.uint8), file_ends, part_files, self._word_characters)
            self._batch = self._executor.submit(self._build_batch, self._build_rules, numbers, parts)

    def _build_batch(self, build_rules: RuleBuilder, numbers: list[int], parts: PartsInText) -> None:
        rules = build_rules(parts)
        if len(self._given) == _GIVEN_AT_ONCE:
            self._given.popleft().result()
        columns = (rules.word_bytes, rules.word_ends, rules.part_words)
        of_rules = (rules.symbols, rules.rule_ends, rules.part_rules)
        self._given.append(self._giver.submit(self._native.give_rules, numbers, *columns, *of_rules))
