"""Compares the grammars of an archive with its files: they must cover the same files, with the same words in each."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from gompfs._native import grammar as _grammar
from gompfs.archive.archive import Archive
from gompfs.archive.index_arrays import all_extents, file_sizes
from gompfs.errors import ArchiveFormatError, display_path
from gompfs.grammar import PROBE_SIZE, Grammar, is_text
from gompfs.grammar.grammar import WORD_RULE_KINDS
from gompfs.grammar.word_characters import word_characters
from gompfs.model import GRAMMAR_SECTION, MAX_INO, NEXT_INO, Problem, first_problems
from gompfs.statistics.content import TextStream
from gompfs.statistics.content_layout import locate_text
from gompfs.verify.text_files import each_file, files_with_holes

Numbers = NDArray[np.int64]
Difference = tuple[int, bytes | None, bytes | None]

_MAX_SHOWN = 60  # longest part of a word that a message shows, in bytes


class GrammarCheck:
    """Takes the grammars one after another, and compares each with the text of its files, word by word."""

    def __init__(self, archive: Archive, damaged_blocks: Collection[int], *, with_files: bool) -> None:
        """Leave out files in `damaged_blocks`. Without `with_files`, do not compare the grammars with the files."""
        self._archive = archive
        self._with_files = with_files and any(section.kind == GRAMMAR_SECTION for section in archive.sections)
        self._damaged = np.array(sorted(damaged_blocks), np.int64)
        self._inos: list[Numbers] = []
        self._not_text: list[int] = []  # of the files that were compared
        self._extents = all_extents(archive) if self._with_files else np.empty((0, 4), np.int64)

    def take_section(self, segment: int, content: bytes | bytearray) -> list[Problem]:
        """Check the content of a grammar section.

        Returns its problems, and the files whose words differ from the grammar.
        """
        try:
            grammar = Grammar.from_bytes(content)
        except ArchiveFormatError as error:
            return [Problem(f"segment {segment}: {error.message}")]
        problems = [Problem(f"segment {segment}: {reason}") for reason in self._check_section(grammar)]
        if self._with_files and not grammar.has_short_rules():
            problems += first_problems(self._compare(grammar))
        return problems

    def _check_section(self, grammar: Grammar) -> Iterator[str]:
        if grammar.word_rule != self._archive.meta.get("words"):
            yield f"the grammar was built with the word rule {grammar.word_rule}, the index has another one"
        if grammar.words_have_separators():
            yield "the grammar has words with separators in them"
        if grammar.has_short_rules():
            yield "the grammar has rules of fewer than two symbols"
        inos, starts, last_ino = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)], None
        for number, (continues, of_part, _) in enumerate(grammar.files()):
            if continues and (len(of_part) == 0 or of_part[0] != last_ino):
                yield f"part {number} of the grammar does not continue the last file of the part before"
            last_ino = of_part[-1] if len(of_part) else None
            inos.append(of_part)
            starts.append(of_part[1:] if continues else of_part)
        yield from self._take_files(np.concatenate(inos), np.concatenate(starts))

    def _take_files(self, inos: NDArray[np.uint64], starts: NDArray[np.uint64]) -> Iterator[str]:
        """Record the files of a grammar.

        `starts` are the inodes of the files that begin in it, continued files excluded.
        """
        unknown = np.unique(inos[inos >= _next_ino(self._archive)])
        if len(unknown):
            yield f"the grammar has {len(unknown)} files that never existed; the first is inode {unknown[0]}"
        unique, counts = np.unique(starts, return_counts=True)
        if len(twice := unique[counts > 1]):
            yield f"the grammar has {len(twice)} files twice; the first is inode {twice[0]}"
        self._inos.append(np.unique(inos[np.isin(inos, unknown, invert=True)].astype(np.int64)))

    def _compare(self, grammar: Grammar) -> Iterator[Problem]:
        """Yields a problem for each file whose words differ from the grammar."""
        pieces = _Pieces(grammar)
        check = _text_check(grammar.native, grammar.word_rule)
        for ino, difference in self._differences(check, pieces.files(), pieces.of, grammar.word_rule):
            yield Problem(_reason(*difference), ino)

    def _differences(
        self,
        check: _grammar.TextCheck,
        inos: Numbers,
        pieces: Callable[[int], list[tuple[int, int]]],
        word_rule: str,
    ) -> Iterator[tuple[int, Difference]]:
        """Yields the first difference of each file among `inos` between its text and the words that `check` has for it.

        Files with holes or in damaged blocks are skipped.
        """
        regular = file_sizes(self._archive)
        empty = np.intersect1d(inos, regular[regular[:, 1] == 0, 0])
        layout, _ = locate_text(self._archive, np.setdiff1d(inos, self._in_damaged_blocks()).tolist())
        stream = TextStream(self._archive, layout)
        texts = ((ino, stream.pieces(file)) for file, ino in enumerate(layout.inos.tolist()))
        for ino, text in chain(texts, ((ino, iter(())) for ino in empty.tolist())):
            check.begin(pieces(ino))
            head = b""
            for piece in text:
                check.add(piece)
                head += bytes(piece[: PROBE_SIZE - len(head)])
            if not is_text(head):
                self._not_text.append(ino)
            difference = check.end()
            if difference is None:
                continue
            if word_rule != "letters" or all(map(_is_certain, difference[1:])):
                yield ino, difference

    def _in_damaged_blocks(self) -> Numbers:
        """Returns the inodes of files that have bytes in damaged blocks."""
        block_size = self._archive.block_size
        before = np.searchsorted(self._damaged, self._extents[:, 2] // block_size)
        last = (self._extents[:, 2] + self._extents[:, 3] - 1) // block_size
        touched: Numbers = self._extents[before != np.searchsorted(self._damaged, last, side="right"), 0]
        return np.unique(touched)

    def finish(self) -> Iterator[Problem]:
        """Yields the contradictions between all grammars and the index."""
        if not self._with_files or not self._inos:
            return
        inos = np.concatenate(self._inos)
        files, counts = np.unique(inos, return_counts=True)
        yield from each_file(files[counts > 1], "it is in the grammars of several segments")
        listed = np.array(self._archive.index.binary_files(), np.int64)
        regular = file_sizes(self._archive)
        others = np.setdiff1d(files, regular[:, 0])  # most of them are files that a later generation has replaced
        if len(others):
            others = others[np.isin(others, np.array(sorted(self._archive.inode_numbers()), np.int64))]
        yield from each_file(others, "it is in a grammar and is not a regular file")
        yield from each_file(np.intersect1d(files, listed), "it is in a grammar and listed as a binary file")
        with_holes = files_with_holes(regular, self._extents)
        yield from each_file(np.intersect1d(files, with_holes), "it is in a grammar and has holes")
        not_text = np.array(self._not_text, np.int64)
        yield from each_file(np.intersect1d(files, not_text), "it is in a grammar and has a NUL near its beginning")
        if len(self._inos) == len(self._archive.segments):
            missing = np.setdiff1d(regular[:, 0], np.concatenate([files, listed, with_holes]))
            word_rule = self._archive.meta["words"]
            check = _text_check(None, word_rule)
            with_words = (ino for ino, _ in self._differences(check, missing, lambda _: [], word_rule))
            reason = "it has words, but is neither in a grammar nor listed as a binary file"
            yield from first_problems(Problem(reason, ino) for ino in with_words)


class _Pieces:
    """Maps each file to its pieces in the parts of a grammar. A file that continues in the next part has several."""

    def __init__(self, grammar: Grammar) -> None:
        parts = [(continues, inos.astype(np.int64)) for continues, inos, _ in grammar.files()]
        sizes = [len(inos) for _, inos in parts]
        inos = np.concatenate([np.empty(0, np.int64), *(inos for _, inos in parts)])
        order = np.argsort(inos, kind="stable")
        self._inos = inos[order]
        self._parts = np.repeat(np.arange(len(parts)), sizes)[order]
        self._indexes = np.concatenate([np.empty(0, np.int64), *map(np.arange, sizes)])[order]
        begins = np.concatenate([np.empty(0, np.int64), *(inos[1:] if goes_on else inos for goes_on, inos in parts)])
        self._once = np.unique(begins, return_counts=True)

    def files(self) -> Numbers:
        """Returns the inodes of the files that the grammar has exactly once."""
        files, counts = self._once
        once: Numbers = files[counts == 1]
        return once

    def of(self, ino: int) -> list[tuple[int, int]]:
        """Returns the pieces of a file in order: the index of a part, and the index of the file in it."""
        begin, end = np.searchsorted(self._inos, [ino, ino + 1])
        return list(zip(self._parts[begin:end].tolist(), self._indexes[begin:end].tolist(), strict=True))


def _reason(number: int, in_text: bytes | None, in_grammar: bytes | None) -> str:
    """Returns the description of a difference."""
    if in_text is None:
        return f"it has {number} words, but more in the grammar"
    if in_grammar is None:
        return f"it has more words than the {number} in the grammar"
    return f"its word {number} is {_shown(in_text)}, and {_shown(in_grammar)} in the grammar"


def _shown(word: bytes) -> str:
    return display_path(word if len(word) <= _MAX_SHOWN else word[:_MAX_SHOWN] + b"...")


def _text_check(grammar: _grammar.Grammar | None, word_rule: str) -> _grammar.TextCheck:
    return _grammar.TextCheck(grammar, WORD_RULE_KINDS[word_rule], word_characters(word_rule))


def _is_certain(word: bytes | None) -> bool:
    """Returns whether every character of a word has been in Unicode since version 3.2.

    Which characters are letters depends on the version of Unicode that the writer used, so a difference in newer
    characters proves nothing.
    """
    if word is None or word.isascii():
        return True
    text = word.decode("utf-8", "replace")
    return all(unicodedata.ucd_3_2_0.category(character) != "Cn" for character in text)


def _next_ino(archive: Archive) -> int:
    """Returns the upper limit (exclusive) of all inode numbers ever used, as far as the index tells."""
    text = archive.meta.get(NEXT_INO, "")
    return min(int(text), MAX_INO) if text.isdecimal() and len(text) < 20 else MAX_INO
