"""The content of the virtual files of a mounted archive: its statistics, the facts about the mount, and its metrics.

The statistics are imported when a virtual file is first used: importing them would delay the mount.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from gompfs._native.fuse import ServedArchive
from gompfs._native.search import limit_memory
from gompfs.archive import Archive
from gompfs.light_types import TYPE_CHECKING
from gompfs.model import ROOT_INO
from gompfs.mount.metrics import metrics
from gompfs.mount.pattern_files import PATTERN_DIRECTORIES, PatternReport, is_pattern_file
from gompfs.statistics.answering import Answering
from gompfs.statistics.grammar_cache import GrammarCache
from gompfs.statistics.report import Report

if TYPE_CHECKING:
    from gompfs.mount.search_service import SearchService
    from gompfs.statistics.formats import Format

METRICS = b"metrics"
METRICS_JSON = b"metrics.json"
INFO = b"info"
README = b"README"
INDEX = b"index.sqlite"
TABLES = b"tables"
SEARCH_SOCKET = b"search-socket"
_SEARCH_MEMORY, _SEARCH_MEMORY_OF_THREAD = 256 << 20, 16 << 20  # for long lines and their matches, in all searches
VOLATILE = frozenset({INFO, METRICS, METRICS_JSON})
"""The virtual files whose content changes while the archive is mounted."""
OF_NO_FILE = frozenset({README, INFO, METRICS, METRICS_JSON})
"""The virtual files that say nothing about the content or the names of files."""


class IndexReport(Report):
    """The index as a SQLite database."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    @property
    def size(self) -> None:
        """See Report.size."""

    def __iter__(self) -> Iterator[bytes]:
        return self._archive.index_image()


class VirtualContent:
    """Computes the virtual files of one mounted archive. Caches its grammars between computations. Thread-safe."""

    def __init__(self, archive: Archive, served: ServedArchive, fuse_api: str, ino_of: Callable[[int], int]) -> None:
        """`served` counts requests, for `metrics`. `fuse_api` is the mount's FUSE interface, for `info`.

        `ino_of` returns the inode number in the archive of one in the mount, for searches.
        """
        limit_memory(_SEARCH_MEMORY + archive.engine.num_threads * _SEARCH_MEMORY_OF_THREAD)
        self._archive = archive
        self._served = served
        self._fuse_api = fuse_api
        self._grammars = GrammarCache(archive)
        self._ino_of = ino_of
        self._searches: SearchService | None = None
        self.answering = Answering(archive)
        self.describe_passthrough: Callable[[], str] | None = None
        """Returns the state of passthrough as text for users. None until the mount has decided about passthrough."""

    def compute(self, name: bytes) -> Report:
        """Returns the content of a virtual file. `name` is its path in `stats`. Raises GompfsError."""
        from gompfs.memory import share_arenas
        from gompfs.statistics.formats import check_format, formatted
        from gompfs.statistics.info import MountFacts
        from gompfs.statistics.report import FixedReport
        from gompfs.statistics.tasks import compute, task_of

        share_arenas()
        if name == README:
            from gompfs.mount.stats_readme import readme

            return FixedReport(readme())
        if name == INDEX:
            return IndexReport(self._archive)
        if name == METRICS:
            return FixedReport(metrics(self._archive, self._served, self.answering).as_text())
        if name == METRICS_JSON:
            return FixedReport(metrics(self._archive, self._served, self.answering).as_json())
        if name == SEARCH_SOCKET:
            from gompfs.mount.search_service import SearchService

            self._searches = self._searches or SearchService(self._archive, self._ino_of)
            return FixedReport(self._searches.address())
        if is_pattern_file(name):
            return PatternReport(self._archive, name)
        describe = self.describe_passthrough
        directory = self._archive.path_of(self._ino_of(ROOT_INO))
        facts = MountFacts(self._fuse_api, None if describe is None else describe(), directory)
        statistic, form = _statistic_and_format(name)
        check_format(form)
        grammars, answering = self._grammars.get, self.answering
        report = compute(statistic, self._archive, grammars=grammars, mount=facts, answering=answering)
        return formatted(report, task_of(os.fsdecode(statistic)).columns, form)

    def close(self) -> None:
        """End searches. Free the cached grammars, and what stays on a GPU."""
        if self._searches is not None:
            self._searches.close()
        self._grammars.drop()
        self.answering.drop("the archive is closed")


def virtual_file_names() -> list[bytes]:
    """Returns the names of the files in `stats`."""
    from gompfs.statistics.tasks import NAMES

    return sorted([*map(str.encode, NAMES), README, INDEX, METRICS, METRICS_JSON, SEARCH_SOCKET])


def listed_file_names() -> list[bytes]:
    """Returns the names of files that a listing of `stats` shows. The others are large, or not for users."""
    from gompfs.statistics.tasks import TASKS

    return sorted([*(name.encode() for name, task in TASKS.items() if task.is_listed), README, METRICS, METRICS_JSON])


def table_names() -> list[bytes]:
    """Returns the names of the files in `tables`: each statistic in the other formats than text."""
    from gompfs.statistics.tasks import NAMES

    return _with_suffixes([name.encode() for name in NAMES])


def search_names() -> list[bytes]:
    """Returns the names of the directories in `stats` whose entries are searches."""
    from gompfs.statistics.tasks import SEARCHES

    return [*(name.encode() for name in SEARCHES), *PATTERN_DIRECTORIES]


def listed_names_of_file() -> list[bytes]:
    """Returns the names of the virtual files that a listing of `files/PATH` shows."""
    from gompfs.statistics.tasks import LISTED_OF_FILE

    return [name.encode() for name in LISTED_OF_FILE]


def opened_names_of_file() -> list[bytes]:
    """Returns the names that can be opened in `files/PATH`, in all formats."""
    from gompfs.statistics.tasks import NAMES_OF_FILE

    names = [name.encode() for name in NAMES_OF_FILE]
    return [*names, *_with_suffixes(names)]


def _with_suffixes(names: list[bytes]) -> list[bytes]:
    """Returns the names of statistics in other formats than text."""
    from gompfs.statistics.formats import Format

    return [b"%s.%s" % (name, form.value.encode()) for name in names for form in Format if form is not Format.TEXT]


def _statistic_and_format(name: bytes) -> tuple[bytes, Format]:
    """Returns the statistic that a virtual file has, and its format."""
    from gompfs.statistics.formats import Format

    if name.partition(b"/")[0] not in search_names():  # their words may have any suffix
        for form in Format:
            statistic = name.removesuffix(b"." + form.value.encode())
            if form is not Format.TEXT and statistic != name:
                return statistic.removeprefix(TABLES + b"/"), form
    return name, Format.TEXT
