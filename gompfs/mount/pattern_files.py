"""The virtual files that search for a pattern: `stats/grep/PATTERN` and others, with the lines that they have.

A pattern is the name of a file, so a slash in it is written %2F, a NUL byte cannot be written, and % is %25.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from gompfs.light_types import TYPE_CHECKING
from gompfs.model import ROOT_INO
from gompfs.statistics.report import Report

if TYPE_CHECKING:
    from gompfs.archive import Archive

_FILES_WITH, _COUNT = b"files-with", b"count"
PATTERN_DIRECTORIES = (_COUNT, _FILES_WITH, b"grep")
"""The directories in `stats` whose entries are patterns."""
_SEARCHES_AT_ONCE = 4
_turns = threading.BoundedSemaphore(_SEARCHES_AT_ONCE)
"""Each search uses all threads, and has tables of all files. So a user who opens many patterns has to wait."""


class PatternReport(Report):
    """The output of `gompfs grep PATTERN` for all files: lines, paths or counts, in the order of the paths."""

    def __init__(self, archive: Archive, name: bytes) -> None:
        """`name` is a path in `stats`. Raises OptionError if the pattern cannot be used."""
        from urllib.parse import unquote_to_bytes

        from gompfs.search.query import SearchQuery

        kind, _, pattern = name.partition(b"/")
        self._archive = archive
        self._query = SearchQuery(
            tuple(unquote_to_bytes(pattern).split(b"\n")),
            count=kind == _COUNT,
            files_with_matches=kind == _FILES_WITH,
            line_number=True,
            sort="path",
        )
        self._matcher = self._query.matcher()

    @property
    def size(self) -> None:
        """See Report.size."""

    def __iter__(self) -> Iterator[bytes]:
        from gompfs.search.search import ArchiveSearch

        with _turns:
            search = ArchiveSearch(self._archive, self._query, [(b"", ROOT_INO)], self._matcher)
            yield from search
            if search.failures:
                raise search.failures[0]


def is_pattern_file(name: bytes) -> bool:
    """Returns whether a path in `stats` is that of a search for a pattern."""
    return name.partition(b"/")[0] in PATTERN_DIRECTORIES
