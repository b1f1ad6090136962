"""Builds grammars through the C++ core (native/grammar)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gompfs._native import grammar as _grammar
from gompfs.grammar.grammar import BUILDER_KINDS, WORD_RULE_KINDS, Grammar
from gompfs.grammar.word_characters import word_characters
from gompfs.model import WORD_RULES
from gompfs.threads import default_threads

_PARTS_OF_A_BATCH = 16
_GIVEN_AT_ONCE = 2  # batches: while the last parts of one are checked, idle threads work on the next


@dataclass(frozen=True)
class PartsInText:
    """Parts of a text. A part is several whole files or a piece of one; `text` (uint8) has a newline after each file.

    `file_ends` (uint32) holds the offsets of these newlines. `part_files` (uint32) holds the number of the first file
    of each part, and at its end the number of files. `word_rule` is one of WORD_RULES.
    """

    text: NDArray[np.uint8]
    file_ends: NDArray[np.uint32]
    part_files: NDArray[np.uint32]
    word_rule: str


@dataclass(frozen=True)
class PartsInRules:
    """The grammars of the parts of a PartsInText (uint32 arrays, except `word_bytes`).

    Word w is `word_bytes[word_ends[w - 1] : word_ends[w]]` (uint8). The words of part p begin at number
    `part_words[p]`, in the order of their first occurrence in the part.

    Rule r is `symbols[rule_ends[r - 1] : rule_ends[r]]`. `part_rules[p]` is the root of part p; its other rules follow.
    A symbol is the number of a word within the part, or the number of a rule within the part plus the part's number of
    words, or SPLITTER.
    """

    word_bytes: NDArray[np.uint8]
    word_ends: NDArray[np.uint32]
    part_words: NDArray[np.uint32]
    symbols: NDArray[np.uint32]
    rule_ends: NDArray[np.uint32]
    part_rules: NDArray[np.uint32]


RuleBuilder = Callable[[PartsInText], PartsInRules]
"""Returns the words and rules of each part. The rules are those that the C++ core's builder `repair` makes."""


class GrammarBuilder:
    """Takes the text of files in order and builds their grammar.

    Text is collected into parts of 8 MiB, which are built in the background, so that memory stays bounded.
    """

    def __init__(
        self,
        builder: str = "repair",
        words: str = "whitespace",
        num_threads: int = 0,
        build_rules: RuleBuilder | None = None,
        allocate: Callable[[int], memoryview] = lambda size: np.empty(size, np.uint8).data,
    ) -> None:
        """`builder` is one of GRAMMAR_BUILDERS or NO_RULES, `words` one of WORD_RULES.

        With `num_threads` 0, uses one thread per core. With `build_rules`, the builder `repair` passes several parts at
        once to that function, on a thread of its own. Their text is in memory from `allocate`. Raises ValueError for an
        unknown name.
        """
        if builder not in BUILDER_KINDS or words not in WORD_RULES:
            raise ValueError(f"unknown grammar builder {builder!r} or word rule {words!r}")
        self._word_rule = words
        self._num_threads = num_threads or default_threads()
        self._allocate = allocate
        self._build_rules = build_rules if builder == "repair" else None
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="gompfs-rules")
        self._giver = ThreadPoolExecutor(_GIVEN_AT_ONCE, thread_name_prefix="gompfs-give-rules")
        self._batch: Future[None] | None = None
        self._given: deque[Future[None]] = deque()
        self._native = _grammar.GrammarBuilder(
            BUILDER_KINDS[builder],
            WORD_RULE_KINDS[words],
            word_characters(words),
            self._num_threads,
            self._build_rules is not None,
        )

    def add_files(self, files: Sequence[tuple[int, bytes | memoryview]]) -> None:
        """Adds whole files, given as (inode number, content)."""
        self._native.add_files(files)
        self._build_batches(least=_PARTS_OF_A_BATCH)

    def begin_file(self, ino: int) -> None:
        """Begins a file that comes in pieces."""
        self._native.begin_file(ino)

    def add_bytes(self, piece: bytes | memoryview) -> None:
        """Adds the next piece of the file."""
        self._native.add_bytes(piece)
        self._build_batches(least=_PARTS_OF_A_BATCH)

    def end_file(self) -> None:
        """Ends the file."""
        self._native.end_file()

    def finish(self) -> Iterator[memoryview]:
        """Yields the grammar section of all files in pieces (docs/format.md). Nothing can be added afterwards."""
        self._native.finish()
        self._build_batches(least=1)
        if self._batch is not None:
            self._batch.result()
        while self._given:
            self._given.popleft().result()
        while (piece := self._native.next_piece()) is not None:
            yield piece.data

    def take(self) -> Grammar:
        """With NO_RULES: returns the grammar of all text added since the last call. Can be called at any time.

        If a file is not complete, the next call returns its rest.
        """
        return Grammar(self._native.take())

    def _build_batches(self, least: int) -> None:
        """Passes batches of parts to `build_rules` while at least `least` parts wait.

        While one batch is built, the C++ core checks the batches before.
        """
        how = least, _PARTS_OF_A_BATCH, self._allocate, self._num_threads
        while self._build_rules and (taken := self._native.take_texts(*how)):
            numbers, text, file_ends, part_files = taken
            if self._batch is not None:
                self._batch.result()
            parts = PartsInText(np.frombuffer(text, np.uint8), file_ends, part_files, self._word_rule)
            self._batch = self._executor.submit(self._build_batch, self._build_rules, numbers, parts)

    def _build_batch(self, build_rules: RuleBuilder, numbers: list[int], parts: PartsInText) -> None:
        rules = build_rules(parts)
        if len(self._given) == _GIVEN_AT_ONCE:
            self._given.popleft().result()
        columns = (rules.word_bytes, rules.word_ends, rules.part_words)
        of_rules = (rules.symbols, rules.rule_ends, rules.part_rules)
        self._given.append(self._giver.submit(self._native.give_rules, numbers, *columns, *of_rules))
