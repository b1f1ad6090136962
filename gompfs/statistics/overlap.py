"""The overlap of documents with an archive: which of their n-grams occur in its files, and how often.

A phrase is the special case of one document with one n-gram. All text is searched once, for all n-grams together; text
that is stored in parts is searched part by part, so that no grammar of the archive is in memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gompfs._native import statistics as _statistics
from gompfs._native.text import WordRule
from gompfs.errors import ArchiveFormatError, OptionError, StatsUnavailableError
from gompfs.statistics.grammar_cache import has_text_outside_parts, has_text_parts
from gompfs.statistics.paths import escape_path, files_in_order
from gompfs.statistics.query import MAX_SEARCHED_LENGTH, StatsQuery
from gompfs.statistics.report import FixedReport, Report
from gompfs.threads import default_threads

if TYPE_CHECKING:
    from gompfs.archive import Archive
    from gompfs.statistics.source import StatsSource
    from gompfs.statistics.text_in_parts import TextInParts
    from gompfs.text.grammar import Grammar

DEFAULT_FILES = 10
"""How many files each document gets if the query has no limit."""
_IN_MEMORY = 32 << 20
_ALL_FILES = (1 << 63) - 1
_LINES_OF_PIECE = 1000


def phrase(source: StatsSource, query: StatsQuery) -> Report:
    """Returns the lines `path<TAB>count` of the files that contain the words of the query in a row.

    The files are sorted by descending count, then by path. Raises OptionError for more than 255 words.
    """
    num_words = len(query.words)
    if not 1 <= num_words <= MAX_SEARCHED_LENGTH:
        raise OptionError(f"a phrase has 1 to {MAX_SEARCHED_LENGTH} words, not {num_words}")
    ngrams = _statistics.NgramSet(num_words, WordRule.WHITESPACE, b"")
    ngrams.add_words(list(query.words))
    ((_, _, found),) = overlaps_with_files(source, query, ngrams)
    paths = source.paths_of({ino for ino, _, _ in found}, query)
    counts = sorted((-count, paths[ino]) for ino, _, count in found if ino in paths)[: query.top or None]
    return FixedReport(b"".join(b"%s\t%d\n" % (escape_path(path), -count) for count, path in counts))


def overlaps_with_files(
    source: StatsSource, query: StatsQuery, ngrams: _statistics.NgramSet
) -> list[tuple[int, int, list[tuple[int, int, int]]]]:
    """Returns the overlap of each document of `ngrams` with all files that the query counts, as Overlap.finish does.

    But a file is given by its inode number.
    """
    inos = array("Q", sorted(source.counted_inos(query)))
    overlaps = _search(source, query, ngrams, inos).finish(_ALL_FILES)
    return [
        (num_found, count, [(inos[file], num_shared, occurrences) for file, num_shared, occurrences in files])
        for num_found, count, files in overlaps
    ]


def overlap_of_documents(source: StatsSource, query: StatsQuery) -> Report:
    """Returns a line for each document of the query, in their order.

    Its fields are the name of the document; how many different n-grams it has; how many of these occur in the archive;
    the second number as a fraction of the first one; how often they occur, together; and for each of the files with
    most of them, `number path`. Raises OptionError for an n-gram length outside of 1 to 255.
    """
    if not 1 <= query.ngram_length <= MAX_SEARCHED_LENGTH:
        raise OptionError(f"n-grams of documents have 1 to {MAX_SEARCHED_LENGTH} words, not {query.ngram_length}")
    ngrams = _new_set(source.archive, query.ngram_length)
    names = []
    for name, text in query.documents:
        names.append(escape_path(name))
        try:
            ngrams.add_text(text)
        except ValueError as error:
            raise OptionError(str(error)) from None
    files = files_in_order(source.paths_of(source.counted_inos(query), query))
    overlap = _search(source, query, ngrams, array("Q", (ino for ino, _ in files)))
    paths = [path for _, path in files]
    return _OverlapReport(names, ngrams, overlap.finish(query.top or DEFAULT_FILES), paths)


class _OverlapReport(Report):
    def __init__(
        self,
        names: Sequence[bytes],
        ngrams: _statistics.NgramSet,
        overlaps: Sequence[tuple[int, int, list[tuple[int, int, int]]]],
        paths: Sequence[bytes],
    ) -> None:
        self._names = names
        self._ngrams = ngrams
        self._overlaps = overlaps
        self._paths = paths

    @property
    def size(self) -> None:
        """See Report.size."""

    def __iter__(self) -> Iterator[bytes]:
        for first in range(0, len(self._names), _LINES_OF_PIECE):
            last = min(first + _LINES_OF_PIECE, len(self._names))
            yield b"".join(map(self._line, range(first, last)))

    def _line(self, document: int) -> bytes:
        num_ngrams = self._ngrams.num_ngrams(document)
        num_found, count, files = self._overlaps[document]
        fraction = num_found / num_ngrams if num_ngrams else 0.0
        head = b"%s\t%d\t%d\t%.4f\t%d" % (self._names[document], num_ngrams, num_found, fraction, count)
        of_files = (b"%d %s" % (num_shared, self._paths[file]) for file, num_shared, _ in files)
        return b"\t".join([head, *of_files]) + b"\n"


def _new_set(archive: Archive, length: int) -> _statistics.NgramSet:
    """Returns an empty set for n-grams of words as the archive has them."""
    from gompfs.model import WORD_RULES

    rule = archive.meta.get("words", WORD_RULES[0])
    if rule not in WORD_RULES:
        raise StatsUnavailableError(f"unknown word rule {rule!r}", archive=archive.path)
    characters = b""
    if rule == "letters":
        from gompfs.text.word_characters import word_characters

        characters = word_characters(rule)
    return _statistics.NgramSet(length, WordRule[rule.upper()], characters)


def _search(
    source: StatsSource, query: StatsQuery, ngrams: _statistics.NgramSet, inos: array[int]
) -> _statistics.Overlap:
    """Searches the files `inos` of those that the query counts."""
    from gompfs.statistics.temporary_files import free_space, temporary_directory

    num_threads = default_threads()
    directory = temporary_directory()
    overlap = _statistics.Overlap(ngrams, inos, directory, _IN_MEMORY, free_space(directory) // 2)
    try:
        for text in _texts_in_parts(source.archive, query.ino):
            try:
                overlap.search_parts(*text.arguments(), num_threads)
            except ValueError as error:
                raise text.damaged(error) from None
        for grammar in _other_grammars(source, query):
            overlap.search_grammar(grammar.native, num_threads)
    except ArchiveFormatError:  # a ValueError too
        raise
    except ValueError as error:
        raise StatsUnavailableError(f"the search failed: {error}") from None
    return overlap


def _texts_in_parts(archive: Archive, ino: int | None) -> Iterator[TextInParts]:
    """Yields the text of each segment that stores it in parts: of all files, or of one."""
    from gompfs.statistics.text_in_parts import text_in_parts

    for segment in archive.segments:
        if has_text_parts(segment):
            text = text_in_parts(archive, segment)
            yield text if ino is None else text.of_file(ino)


def _other_grammars(source: StatsSource, query: StatsQuery) -> Iterator[Grammar]:
    """Yields grammars of all text that is not stored in parts, one at a time."""
    if query.ino is None and not has_text_outside_parts(source.archive):
        return
    from gompfs.statistics.content_words import content_grammars

    content = source.content(query)
    yield from content_grammars(content)
    source.check_is_text(content, query)
