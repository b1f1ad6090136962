"""The content of the virtual files of a mounted archive: its statistics, the facts about the mount, and its metrics."""

from __future__ import annotations

from collections.abc import Callable

from gompfs.archive import Archive
from gompfs.mount.metrics import metrics
from gompfs.statistics.grammar_cache import GrammarCache
from gompfs.statistics.info import MountFacts
from gompfs.statistics.memory import share_arenas
from gompfs.statistics.report import FixedReport, Report
from gompfs.statistics.tasks import NAMES, TASKS, compute

METRICS = b"metrics"
INFO = b"info"
VOLATILE = frozenset({INFO, METRICS})
"""The virtual files whose content changes while the archive is mounted."""
VIRTUAL_FILES = sorted([*map(str.encode, NAMES), METRICS])
"""The names of the files in `stats`. The other entries of this directory are directories."""
LISTED_FILES = sorted([*(name.encode() for name, task in TASKS.items() if task.is_listed), METRICS])
"""Those that a listing of `stats` shows."""


class VirtualContent:
    """Computes the virtual files of one mounted archive. Caches its grammars between computations. Thread-safe."""

    def __init__(self, archive: Archive, fuse_api: str) -> None:
        """`fuse_api` is the FUSE interface by which the archive is mounted, for `info`."""
        self._archive = archive
        self._fuse_api = fuse_api
        self._grammars = GrammarCache(archive)
        self.describe_passthrough: Callable[[], str] | None = None
        """Returns the state of passthrough as text for users. None until the mount has decided about passthrough."""

    def compute(self, name: bytes) -> Report:
        """Returns the content of a virtual file. `name` is its path in `stats`. Raises GompfsError."""
        share_arenas()
        if name == METRICS:
            return FixedReport(metrics(self._archive))
        return compute(name, self._archive, grammars=self._grammars.get, mount=self.mount_facts())

    def mount_facts(self) -> MountFacts:
        """Returns what `info` tells about the mount now."""
        describe = self.describe_passthrough
        return MountFacts(self._fuse_api, None if describe is None else describe())

    def close(self) -> None:
        """Free the cached grammars."""
        self._grammars.drop()


def load_statistics() -> None:
    """Import the modules that the first statistic would have to wait for otherwise."""
    import gompfs.statistics.device_postings  # noqa: F401
