"""Compares the grammars of an archive with its files: the same files, and as many words in each?"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from gompfs import _grammar
from gompfs.archive.archive import Archive
from gompfs.archive.arrays import all_extents, file_sizes
from gompfs.errors import ArchiveFormatError
from gompfs.grammar import Grammar
from gompfs.model import GRAMMAR_SECTION, MAX_INO, NEXT_INO, Problem, first_problems

Numbers = NDArray[np.int64]

_IS_OF_WORD = np.ones(256, np.bool_)
_IS_OF_WORD[list(b" \t\n\v\f\r")] = False


class GrammarCheck:
    """Takes the grammars, and the bytes of the stream, as they are decoded; at the end it compares the files.

    Words are counted in the files only for the word rule `whitespace`: what a letter is depends on the version of
    Unicode that the writer had.
    """

    def __init__(self, archive: Archive, *, with_files: bool) -> None:
        """Get ready; without files, only what grammars say by themselves is checked."""
        self._archive = archive
        self._with_files = with_files and any(section.kind == GRAMMAR_SECTION for section in archive.sections)
        self._extents = all_extents(archive) if self._with_files else np.empty((0, 4), np.int64)
        self._text = TextWords(self._extents) if archive.meta.get("words") == "whitespace" else None
        self._inos: list[Numbers] = []
        self._sizes: list[Numbers] = []

    def take_text(self, stream_offset: int, content: memoryview) -> None:
        """A block of the stream; they come in order, those left out that are damaged."""
        if self._with_files and self._text is not None:
            self._text.take(stream_offset, content)

    def take_section(self, segment: int, content: bytes | bytearray) -> list[Problem]:
        """A grammar section; what is wrong with it by itself."""
        try:
            grammar = Grammar.from_bytes(content)
        except ArchiveFormatError as error:
            return [Problem(f"segment {segment}: {error.message}")]
        return [Problem(f"segment {segment}: {reason}") for reason in self._check_section(grammar)]

    def _check_section(self, grammar: Grammar) -> Iterator[str]:
        if grammar.word_rule != self._archive.meta.get("words"):
            yield f"the words of the grammar are of the rule {grammar.word_rule}, which is not that of the index"
        if grammar.words_have_whitespace():
            yield "the grammar has words with whitespace in them"
        all_inos, all_sizes, last_ino = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)], None
        starts = [np.empty(0, np.uint64)]
        for number, (continues, inos, sizes) in enumerate(grammar.files()):
            if continues and (len(inos) == 0 or inos[0] != last_ino):
                yield f"part {number} of the grammar does not go on with the file before"
            last_ino = inos[-1] if len(inos) else None
            all_inos.append(inos)
            all_sizes.append(sizes)
            starts.append(inos[1:] if continues else inos)
        yield from self._take_files(np.concatenate(all_inos), np.concatenate(all_sizes), np.concatenate(starts))

    def _take_files(
        self, inos: NDArray[np.uint64], sizes: NDArray[np.uint64], starts: NDArray[np.uint64]
    ) -> Iterator[str]:
        """Keep the sizes in words of a grammar's files, of which `starts` are the inodes of those that begin."""
        unknown = np.unique(inos[(inos == 0) | (inos >= _next_ino(self._archive))])
        if len(unknown):
            yield f"the grammar has {len(unknown)} files that never were, the first of them inode {unknown[0]}"
        unique, counts = np.unique(starts, return_counts=True)
        if len(twice := unique[counts > 1]):
            yield f"the grammar has {len(twice)} files twice, the first of them inode {twice[0]}"
        known = np.isin(inos, unknown, invert=True)
        files, sums = _sum_by_file(inos[known].astype(np.int64), sizes[known].astype(np.int64))
        self._inos.append(files)
        self._sizes.append(sums)

    def finish(self, damaged_blocks: Collection[int]) -> Iterator[Problem]:
        """What is wrong between the grammars and the files, but those that lie in damaged blocks of the stream."""
        if not self._with_files or not self._inos:
            return
        inos = np.concatenate(self._inos)
        unique, counts = np.unique(inos, return_counts=True)
        yield from _each(unique[counts > 1], "it is in the grammars of several segments")
        files, sums = _sum_by_file(inos, np.concatenate(self._sizes))
        listed = np.array(self._archive.binary_files(), np.int64)
        regular = file_sizes(self._archive)
        others = np.setdiff1d(files, regular[:, 0])  # mostly files that a later generation has replaced
        if len(others):
            others = others[np.isin(others, np.array(sorted(self._archive.inode_numbers()), np.int64))]
        yield from _each(others, "it is in a grammar and is no regular file")
        yield from _each(np.intersect1d(files, listed), "it is in a grammar and listed as a binary file")
        with_holes = self._with_holes(regular)
        yield from _each(np.intersect1d(files, with_holes), "it is in a grammar and has holes")
        if self._text is None:
            return
        texts, words = self._text.by_file(damaged_blocks, self._archive.block_size)
        is_whole = np.isin(texts, with_holes, invert=True)
        yield from first_problems(_other_counts(texts[is_whole], words[is_whole], files, sums))
        if len(self._inos) == len(self._archive.segments):
            missing = np.setdiff1d(texts[words > 0], np.concatenate([files, listed]))
            yield from _each(missing, "it has words, and is in no grammar and not listed as a binary file")

    def _with_holes(self, regular: Numbers) -> Numbers:
        """The inodes of the files that extents do not cover."""
        inos, covered = _sum_by_file(self._extents[:, 0], self._extents[:, 3])
        sizes = np.zeros(len(regular), np.int64)
        sizes[np.searchsorted(regular[:, 0], inos)] = covered
        with_holes: Numbers = regular[sizes < regular[:, 1], 0]
        return with_holes


class TextWords:
    """Counts the words (rule `whitespace`) of files while the stream comes by, in one pass.

    Words that begin are counted up to the first and the last byte of each extent: all between them follows.
    """

    def __init__(self, extents: Numbers) -> None:
        """Take extents that are sound: rows of ino, file_offset, stream_offset, size, by the first two."""
        self._inos = extents[:, 0]
        self._firsts = extents[:, 2]
        self._lasts = self._firsts + extents[:, 3] - 1
        self._positions = np.unique(np.concatenate([self._firsts, self._lasts]))
        self._counts = np.zeros(len(self._positions), np.int64)
        self._is_of_word = np.zeros(len(self._positions), np.bool_)
        self._total = 0
        self._in_word = False

    def take(self, stream_offset: int, content: memoryview) -> None:
        """A block; they come in order."""
        start, end = np.searchsorted(self._positions, (stream_offset, stream_offset + len(content)))
        places = self._positions[start:end] - stream_offset
        asked = np.append(places, len(content) - 1).astype(np.uint64)
        counts = _grammar.count_word_starts(content, self._in_word, asked)
        self._counts[start:end] = counts[:-1].astype(np.int64) + self._total
        self._is_of_word[start:end] = _IS_OF_WORD[np.frombuffer(content, np.uint8)[places]]
        self._total += int(counts[-1])
        self._in_word = bool(_IS_OF_WORD[content[-1]])

    def by_file(self, damaged_blocks: Collection[int], block_size: int) -> tuple[Numbers, Numbers]:
        """The inodes that have extents, and how many words each has; without those that lie in damaged blocks."""
        firsts = np.searchsorted(self._positions, self._firsts)
        lasts = np.searchsorted(self._positions, self._lasts)
        words = self._counts[lasts] - self._counts[firsts] + self._is_of_word[firsts]
        goes_on = self._is_of_word[firsts[1:]] & self._is_of_word[lasts[:-1]]
        words[1:] -= goes_on & (self._inos[1:] == self._inos[:-1])
        damaged = np.array(sorted(damaged_blocks), np.int64)
        before = np.searchsorted(damaged, self._firsts // block_size)
        behind = np.searchsorted(damaged, self._lasts // block_size, side="right")
        inos, sums = _sum_by_file(self._inos, words)
        is_sound = np.isin(inos, self._inos[before != behind], invert=True)
        return inos[is_sound], sums[is_sound]


def _sum_by_file(inos: Numbers, numbers: Numbers) -> tuple[Numbers, Numbers]:
    """Each inode once, in order, with the sum of its numbers."""
    unique, places = np.unique(inos, return_inverse=True)
    sums = np.zeros(len(unique), np.int64)
    np.add.at(sums, places, numbers)
    return unique, sums


def _other_counts(texts: Numbers, words: Numbers, files: Numbers, sizes: Numbers) -> Iterator[Problem]:
    """Problems of the files whose words are not as many as the grammars say."""
    _, of_text, of_grammar = np.intersect1d(texts, files, assume_unique=True, return_indices=True)
    differs = words[of_text] != sizes[of_grammar]
    for text, grammar in zip(of_text[differs], of_grammar[differs], strict=True):
        yield Problem(f"it has {words[text]} words, and {sizes[grammar]} in the grammar", int(texts[text]))


def _each(inos: Numbers, reason: str) -> Iterator[Problem]:
    return first_problems(Problem(reason, int(ino)) for ino in inos)


def _next_ino(archive: Archive) -> int:
    """The number above all inodes that ever were, as far as the index tells."""
    text = archive.meta.get(NEXT_INO, "")
    return min(int(text), MAX_INO) if text.isdecimal() and len(text) < 20 else MAX_INO
