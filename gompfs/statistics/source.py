"""The text that a statistic counts: grammars of an archive, and text that is not stored in parts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gompfs.errors import StatsUnavailableError
from gompfs.statistics.grammar_cache import load_grammars
from gompfs.statistics.memory_limit import check_memory
from gompfs.statistics.traversal import Traversal

if TYPE_CHECKING:
    from gompfs.archive import Archive
    from gompfs.statistics.answering import Answering
    from gompfs.statistics.content import ContentText
    from gompfs.statistics.info import MountFacts
    from gompfs.statistics.query import StatsQuery
    from gompfs.text.grammar import Grammar


class StatsSource:
    """The archive that statistics are computed from, with its grammars."""

    def __init__(
        self,
        archive: Archive,
        grammars: Callable[[], list[Grammar]] | None = None,
        mount: MountFacts | None = None,
        answering: Answering | None = None,
    ) -> None:
        """`grammars` returns the grammars of the archive, from a cache for example. Without it, they are loaded.

        `mount` describes the mount, if the archive is mounted. `answering` decides where statistics are computed.
        """
        self.archive = archive
        self.grammars = grammars or (lambda: load_grammars(archive))
        self.mount = mount
        self.answering = answering
        self.uses_device = False
        """Whether the last traversal was on a device."""

    def counted_inos(self, query: StatsQuery) -> set[int]:
        """Returns the inode numbers of the files to count. Raises StatsUnavailableError for a binary file.

        Files that a later segment or member of a tar replaced are not counted.
        """
        if query.ino is None:
            return self.archive.inode_numbers()
        if query.ino in self.archive.index.binary_files():
            raise self._no_stats_of_binary_file(query.ino)
        return {query.ino}

    def content(self, query: StatsQuery) -> ContentText:
        """Returns the text of the files that the query counts and that are not stored in parts."""
        from gompfs.statistics.content import text_outside_parts

        return text_outside_parts(self.archive, self.counted_inos(query))

    def check_is_text(self, content: ContentText, query: StatsQuery) -> None:
        """Raises StatsUnavailableError if the query's file proved to be binary when `content` was read."""
        if query.ino in content.binary_files:
            raise self._no_stats_of_binary_file(query.ino)

    def grammars_and_paths(
        self, query: StatsQuery, *, with_others: bool = False
    ) -> tuple[list[Grammar], dict[int, bytes]]:
        """Returns all grammars, and one path of each counted file that is in them, by inode number.

        With `with_others`, the files that the query does not count are included.
        """
        from gompfs.statistics.content_words import content_grammars

        archive = self.archive
        counted = self.counted_inos(query)
        scope = replace(query, ino=None) if with_others else query
        grammars = self.grammars()
        num_bytes = sum(grammar.num_bytes for grammar in grammars)
        content = self.content(scope)
        for grammar in content_grammars(content):
            grammars.append(grammar)
            num_bytes += grammar.num_bytes
            check_memory(num_bytes)
        self.check_is_text(content, query)
        inos = _inos(grammars) & (archive.inode_numbers() if with_others else counted)
        if scope.ino is not None:
            return grammars, {ino: archive.path_of(ino) if query.path is None else query.path for ino in inos}
        return grammars, {ino: query.prefix + path for ino, path in archive.paths().items() if ino in inos}

    def paths_of(self, inos: Collection[int], query: StatsQuery) -> dict[int, bytes]:
        """Returns the paths to print for some files that the query counts. Files that have none are left out."""
        if query.ino is not None and query.path is not None:
            return {query.ino: query.path}
        return {ino: path for ino, path in self.archive.paths(inos).items() if ino in inos}

    def traversal(self, num_symbols: int) -> Traversal:
        """Returns a traversal on the device that the engine chooses for this many symbols, or on the CPU."""
        accelerator = self.archive.engine.accelerator
        device = accelerator.arrays(num_symbols) if accelerator else None
        self.uses_device = device is not None
        return Traversal(device=device)

    def _no_stats_of_binary_file(self, ino: int) -> StatsUnavailableError:
        path = self.archive.path_of(ino)
        return StatsUnavailableError("a binary file has no statistics", archive=self.archive.path, path=path)


def _inos(grammars: Sequence[Grammar]) -> set[int]:
    return set().union(*(grammar.inos() for grammar in grammars))
