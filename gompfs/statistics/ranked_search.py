"""Ranked search: the files that fit some words best, each with the line that has most of the words.

Files are ranked by Okapi BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009),
from the counts that the grammars give. The length of a document is its size in bytes.
"""

from __future__ import annotations

import math
import os
from bisect import insort
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from gompfs._native import statistics as _statistics
from gompfs._native.text import WordRule
from gompfs.errors import OptionError
from gompfs.statistics.overlap import overlaps_with_files
from gompfs.statistics.paths import escape_path
from gompfs.statistics.report import FixedReport, Report

if TYPE_CHECKING:
    from gompfs.search.matches import LineMatch
    from gompfs.statistics.query import StatsQuery
    from gompfs.statistics.source import StatsSource

DEFAULT_FILES = 10
"""How many files a ranked search returns if the query has no limit."""
MAX_WORDS = 64
"""The maximum number of different words in a ranked search."""
_SATURATION, _LENGTH_WEIGHT = 1.2, 0.75  # the parameters k1 and b
_LINES_OF_FILE = 1000  # of a word, that are compared
_EXCERPT, _BEFORE_MATCH = 200, 60  # bytes of a long line that are printed, and those before the first match


class _Ranked(NamedTuple):
    score: float
    ino: int
    path: bytes


def ranked_search(source: StatsSource, query: StatsQuery) -> Report:
    """Returns the lines `score<TAB>path<TAB>line number<TAB>line` of the files that fit the words of the query best.

    The files are sorted by descending score, then by path. A lowercase word stands for the same word in uppercase, and
    with an uppercase first letter, too. Raises OptionError for no words or more than 64 of them.
    """
    words = tuple(dict.fromkeys(filter(None, query.words)))
    if not 1 <= len(words) <= MAX_WORDS:
        raise OptionError(f"a ranked search has 1 to {MAX_WORDS} different words, not {len(words)}")
    search = _Search(source, query, words)
    return FixedReport(b"".join(search.best_lines(search.ranked(query.top or DEFAULT_FILES))))


class _Search:
    """A ranked search in one archive."""

    def __init__(self, source: StatsSource, query: StatsQuery, words: Sequence[bytes]) -> None:
        """Count the words in all files."""
        self._source, self._query = source, query
        num_inodes, content_size = source.archive.index.totals()
        self._mean_size = max(content_size / num_inodes, 1.0)
        self._forms = [_forms_of(word) for word in words]
        ngrams = _statistics.NgramSet(1, WordRule.WHITESPACE, b"")
        for forms in self._forms:
            ngrams.add_words(forms)
        self._weights: dict[bytes, float] = {}  # of the forms of words: the inverse document frequency
        self._counts: dict[int, list[tuple[float, int]]] = defaultdict(list)  # by file: weights and counts of words
        overlaps = overlaps_with_files(source, query, ngrams)
        for forms, (_, _, files) in zip(self._forms, overlaps, strict=True):
            weight = math.log1p((num_inodes - len(files) + 0.5) / (len(files) + 0.5))
            self._weights.update(dict.fromkeys(forms, weight))
            for ino, _, count in files:
                self._counts[ino].append((weight, count))

    def ranked(self, num_files: int) -> list[_Ranked]:
        """Returns the best files in order.

        A file without bytes would have the highest score for its counts. So files are visited by this bound, and only
        those need be looked up that may be among the best.
        """
        archive = self._source.archive
        best: list[tuple[float, int]] = []
        for bound, ino in sorted((-_score(counts, 0.0), ino) for ino, counts in self._counts.items()):
            if len(best) == num_files and bound > best[-1][0]:
                break
            insort(best, (-_score(self._counts[ino], archive.inode(ino).size / self._mean_size), ino))
            del best[num_files:]
        paths = self._source.paths_of({ino for _, ino in best}, self._query)
        ranked = [_Ranked(-score, ino, paths[ino]) for score, ino in best if ino in paths]
        return sorted(ranked, key=lambda file: (-file.score, file.path))

    def best_lines(self, ranked: Sequence[_Ranked]) -> Iterator[bytes]:
        """Yields the line of the report for each file."""
        lines = self._lines_of(ranked)
        for file in ranked:
            line = lines.get(file.path)
            number, text = (line.line_number, _excerpt(line)) if line else (0, b"")
            yield b"%.3f\t%s\t%d\t%s\n" % (file.score, escape_path(file.path), number, escape_path(text))

    def _lines_of(self, ranked: Sequence[_Ranked]) -> Mapping[bytes, LineMatch]:
        """Returns the best line of each file: the first of those whose words weigh most.

        Of each word, the first 1,000 lines of a file are compared.
        """
        weights: dict[tuple[bytes, int], float] = defaultdict(float)  # by path and line number
        best: dict[bytes, LineMatch] = {}

        def rank(line: LineMatch) -> tuple[float, int]:
            return weights[line.path, line.line_number], -line.line_number

        for forms in self._forms:
            for line in self._lines_with(forms, ranked):
                weights[line.path, line.line_number] += self._weights[forms[0]]
                if line.path not in best or rank(line) > rank(best[line.path]):
                    best[line.path] = line
        return best

    def _lines_with(self, forms: Sequence[bytes], ranked: Sequence[_Ranked]) -> Iterator[LineMatch]:
        """Yields lines of the files that have one of the words."""
        from gompfs.search.matches import line_matches
        from gompfs.search.query import SearchQuery
        from gompfs.search.search import ArchiveSearch

        query = SearchQuery(
            tuple(forms), fixed_strings=True, word_regexp=True, json=True, line_number=True, max_count=_LINES_OF_FILE
        )
        roots = [(file.path, file.ino) for file in ranked]
        return line_matches(ArchiveSearch(self._source.archive, query, roots)) if roots else iter(())


def _forms_of(word: bytes) -> list[bytes]:
    """Returns the words that a word of the query stands for."""
    text = os.fsdecode(word)
    forms = [text, text.capitalize(), text.upper()] if text == text.lower() else [text]
    return list(dict.fromkeys(map(os.fsencode, forms)))


def _score(counts: Sequence[tuple[float, int]], size: float) -> float:
    """Returns the score of a file, `size` being that of the file divided by the mean size."""
    length = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * size)
    return sum(weight * count * (_SATURATION + 1) / (count + length) for weight, count in counts)


def _excerpt(line: LineMatch) -> bytes:
    """Returns a line without the white space around it, or what is near its first match if it is long."""
    text = line.line.strip()
    if len(text) <= _EXCERPT:
        return text
    begin = max(0, line.spans[0][0] - _BEFORE_MATCH)
    return line.line[begin : begin + _EXCERPT].strip()
