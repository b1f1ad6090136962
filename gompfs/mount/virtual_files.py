"""The virtual files: the analytics of an archive, computed on first open and kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gompfs.archive import Archive
from gompfs.errors import GompfsError, StatsUnavailableError, display_path
from gompfs.model import GRAMMAR_SECTION, Section

if TYPE_CHECKING:
    from gompfs.analytics import SortOrder, Traversal
    from gompfs.archive import ContentText
    from gompfs.grammar import Grammar


def load_grammars(archive: Archive) -> list[Grammar]:
    """The grammars that the archive holds."""
    from gompfs.grammar import Grammar

    grammars = []
    for section in _grammar_sections(archive):
        try:
            grammars.append(Grammar.from_bytes(archive.read_section(section)))
        except GompfsError as error:
            error.archive = error.archive or str(archive.path)
            raise
    return grammars


def _grammar_sections(archive: Archive) -> list[Section]:
    return [section for section in archive.sections if section.kind == GRAMMAR_SECTION]


def _content(archive: Archive, grammars: Sequence[Grammar], query: StatsQuery) -> ContentText:
    """The text of the files that count and that none of `grammars`, all that the archive holds, has."""
    from gompfs.archive import ContentText

    if len(grammars) == len(archive.segments):
        return ContentText(archive, ())
    known = _inos(grammars).union(archive.binary_files())
    return ContentText(archive, _counted_inos(archive, query) - known)


def _check_is_text(archive: Archive, content: ContentText, query: StatsQuery) -> None:
    if query.ino in content.binary_files:
        raise _no_stats_of_binary_file(archive, query.ino)


def _inos(grammars: Sequence[Grammar]) -> set[int]:
    return set().union(*(grammar.inos() for grammar in grammars))


def _no_stats_of_binary_file(archive: Archive, ino: int) -> StatsUnavailableError:
    return StatsUnavailableError("a binary file has no stats", archive=archive.path, path=archive.path_of(ino))


@dataclass(frozen=True)
class StatsQuery:
    """What of a statistic is asked for; the virtual files have the defaults."""

    ino: int | None = None
    """Of this file alone, which must be one of the archive."""
    num_words: int = 3
    """How long the sequences are, 1 to 5 words."""
    top: int = 0
    """How many words of a term vector, files of a sequence, or else lines; 0 for all."""


_EVERYTHING = StatsQuery()


def wordcount(archive: Archive, query: StatsQuery = _EVERYTHING) -> bytes:
    """`word<TAB>count` lines, by count descending, then by word."""
    from gompfs.analytics import SortOrder

    return _word_count_report(archive, query, SortOrder.BY_COUNT)


def sort(archive: Archive, query: StatsQuery = _EVERYTHING) -> bytes:
    """`word<TAB>count` lines by word."""
    from gompfs.analytics import SortOrder

    return _word_count_report(archive, query, SortOrder.BY_WORD)


def _traversal(archive: Archive, grammars: Sequence[Grammar]) -> Traversal:
    """On the device that the archive's engine has for so much work, or on the CPU."""
    from gompfs.analytics import Traversal

    num_symbols = sum(grammar.num_symbols for grammar in grammars)
    return Traversal(device=archive.engine.array_device(num_symbols))


def inverted_index(archive: Archive, query: StatsQuery = _EVERYTHING) -> bytes:
    """`word<TAB>path<TAB>path...` lines by word."""
    from gompfs.analytics import inverted_index_report

    grammars, paths = _text(archive, query)
    return inverted_index_report(grammars, paths, top=query.top, traversal=_traversal(archive, grammars))


def term_vector(archive: Archive, query: StatsQuery = _EVERYTHING) -> bytes:
    """`path<TAB>count word<TAB>count word...` lines by path, words by count descending, then by word."""
    from gompfs.analytics import term_vector_report

    grammars, paths = _text(archive, query)
    return term_vector_report(grammars, paths, top=query.top, traversal=_traversal(archive, grammars))


def sequence_count(archive: Archive, query: StatsQuery = _EVERYTHING) -> bytes:
    """`w1 w2 w3<TAB>count` lines, by count descending, then by the words."""
    from gompfs.analytics import sequence_count_report

    grammars, paths = _text(archive, query)
    how = _traversal(archive, grammars)
    return sequence_count_report(grammars, paths, num_words=query.num_words, top=query.top, traversal=how)


def ranked_inverted_index(archive: Archive, query: StatsQuery = _EVERYTHING) -> bytes:
    """`w1 w2 w3<TAB>count path<TAB>count path...` lines by the words, files by count descending, then by path."""
    from gompfs.analytics import ranked_inverted_index_report

    grammars, paths = _text(archive, query)
    how = _traversal(archive, grammars)
    return ranked_inverted_index_report(grammars, paths, num_words=query.num_words, top=query.top, traversal=how)


def _word_count_report(archive: Archive, query: StatsQuery, order: SortOrder) -> bytes:
    from gompfs.analytics import word_count_report

    grammars = load_grammars(archive)
    excluded = _inos(grammars) - _counted_inos(archive, query)
    content = _content(archive, grammars, query)
    counted = content.word_counts()
    _check_is_text(archive, content, query)
    report = word_count_report(grammars, order, excluded_inos=excluded, counted=counted)
    return b"".join(report.splitlines(keepends=True)[: query.top]) if query.top else report


def _counted_inos(archive: Archive, query: StatsQuery) -> set[int]:
    """The files that count: not those that a later segment or a later member of a tar replaced."""
    if query.ino is None:
        return archive.inode_numbers()
    if query.ino in archive.binary_files():
        raise _no_stats_of_binary_file(archive, query.ino)
    return {query.ino}


def _text(archive: Archive, query: StatsQuery) -> tuple[list[Grammar], dict[int, bytes]]:
    """All grammars, and the files that count and are in them, with one path of each."""
    from gompfs.analytics import check_memory

    grammars = load_grammars(archive)
    num_bytes = sum(grammar.num_bytes for grammar in grammars)
    content = _content(archive, grammars, query)
    for grammar in content.grammars():
        grammars.append(grammar)
        num_bytes += grammar.num_bytes
        check_memory(num_bytes)
    _check_is_text(archive, content, query)
    inos = _inos(grammars) & _counted_inos(archive, query)
    if query.ino is not None:
        return grammars, {ino: archive.path_of(ino) for ino in inos}
    return grammars, {ino: path for ino, path in archive.paths().items() if ino in inos}


def _source_of_stats(archive: Archive) -> str:
    num_segments = len(archive.segments)
    missing = num_segments - len(_grammar_sections(archive))
    if missing == 0:
        return "computed from the grammar"
    if missing == num_segments:
        return "computed from the content, no grammar"
    return f"computed from the grammar, and from the content of {missing} of {num_segments} segments, which have none"


def info(archive: Archive) -> bytes:
    """What the archive is, one fact a line, and which files the analytics leave out."""
    num_inodes, size = archive.totals()
    compressed = sum(int(segment.places.compressed_sizes.sum()) for segment in archive.segments)
    grammar = sum(int(s.places.compressed_sizes.sum()) for s in archive.sections if s.kind == GRAMMAR_SECTION)
    facts: dict[str, object] = {
        "archive": display_path(archive.path),
        "uuid": archive.superblock.uuid,
        "format_version": archive.superblock.version,
        "generation": archive.footer.generation,
        "segments": len(archive.segments),
        "entries": num_inodes,
        "uncompressed_size": size,
        "archive_size": archive.size,
        "blocks": archive.num_blocks,
        "block_size": archive.block_size,
        "blocks_compressed_size": compressed,
        "grammar_compressed_size": grammar,
        "stats": _source_of_stats(archive),
        "engine": archive.engine.name,
        "engine_reason": archive.engine.reason,
        "engine_threads": archive.engine.num_threads,
        "cache_hits": archive.blocks.hits,
        "cache_misses": archive.blocks.misses,
    }
    lines = [f"{name}\t{value}" for name, value in facts.items()]
    paths = archive.paths() if archive.binary_files() else {}
    lines += [f"binary_file\t{display_path(paths[ino])}" for ino in archive.binary_files() if ino in paths]
    return ("\n".join(lines) + "\n").encode()


TASKS: dict[bytes, Callable[[Archive, StatsQuery], bytes]] = {
    b"inverted_index": inverted_index,
    b"ranked_inverted_index": ranked_inverted_index,
    b"sequence_count": sequence_count,
    b"sort": sort,
    b"term_vector": term_vector,
    b"wordcount": wordcount,
}


def compute(name: bytes, archive: Archive, query: StatsQuery = _EVERYTHING) -> bytes:
    """The content of a virtual file, or what `query` asks for; raises GompfsError."""
    try:
        return TASKS[name](archive, query) if name in TASKS else info(archive)
    except StatsUnavailableError as error:
        error.archive = error.archive or str(archive.path)
        raise


VIRTUAL_FILES = sorted([b"info", *TASKS])
# The others are there for who names them: `ls -l` must not count all sequences of a large archive.
LISTED_FILES = frozenset({b"info", b"sort", b"wordcount"})
_VOLATILE = {b"info"}
_VOLATILE_SECONDS = 1.0  # long enough for a reader to come to the end of what it began


class VirtualFile:
    """One virtual file: its content is computed once, and whoever reads it meanwhile waits for that."""

    def __init__(self, name: bytes, archive: Archive) -> None:
        self._name = name
        self._archive = archive
        self._lock = threading.Lock()
        self._content: bytes | None = None
        self._computed_at = 0.0

    @property
    def size(self) -> int:
        """The content's size in bytes; 0 until it is computed."""
        return 0 if self._content is None else len(self._content)

    @property
    def mtime_ns(self) -> int | None:
        """When the content was computed, for one that changes: the kernel then drops what it keeps of it."""
        return int(self._computed_at * 1e9) if self._name in _VOLATILE and self._content is not None else None

    def content(self) -> bytes:
        """The content; computed now if nobody has asked before. Raises GompfsError."""
        with self._lock:
            too_old = self._name in _VOLATILE and time.time() - self._computed_at > _VOLATILE_SECONDS
            if self._content is None or too_old:
                self._content = compute(self._name, self._archive)
                self._computed_at = time.time()
            return self._content
