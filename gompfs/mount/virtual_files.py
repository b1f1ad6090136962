"""The virtual files: the analytics of an archive, computed on first open and kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gompfs.archive import Archive
from gompfs.errors import GompfsError, StatsUnavailableError, display_path
from gompfs.model import GRAMMAR_SECTION

if TYPE_CHECKING:
    from gompfs.analytics import SortOrder
    from gompfs.grammar import Grammar


def load_grammars(archive: Archive) -> list[Grammar]:
    """The grammars of all segments; raises StatsUnavailableError where a segment has none."""
    from gompfs.grammar import Grammar

    sections = [section for section in archive.sections if section.kind == GRAMMAR_SECTION]
    if len(sections) != len(archive.segments):
        raise StatsUnavailableError("the archive was packed without stats", archive=archive.path)
    grammars = []
    for section in sections:
        try:
            grammars.append(Grammar.from_bytes(archive.read_section(section)))
        except GompfsError as error:
            error.archive = error.archive or str(archive.path)
            raise
    return grammars


def wordcount(archive: Archive) -> bytes:
    """`word<TAB>count` lines, by count descending, then by word."""
    from gompfs.analytics import SortOrder

    return _word_count_report(archive, SortOrder.BY_COUNT)


def sort(archive: Archive) -> bytes:
    """`word<TAB>count` lines by word."""
    from gompfs.analytics import SortOrder

    return _word_count_report(archive, SortOrder.BY_WORD)


def _word_count_report(archive: Archive, order: SortOrder) -> bytes:
    from gompfs.analytics import word_count_report

    grammars = load_grammars(archive)
    # A file that was replaced, by a later segment or a later member of a tar, is still in its grammar.
    replaced = set().union(*(grammar.inos() for grammar in grammars)) - archive.inode_numbers()
    return word_count_report(grammars, order, excluded_inos=replaced)


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


VIRTUAL_FILES: dict[bytes, Callable[[Archive], bytes]] = {
    b"info": info,
    b"sort": sort,
    b"wordcount": wordcount,
}
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
                self._content = VIRTUAL_FILES[self._name](self._archive)
                self._computed_at = time.time()
            return self._content
