"""Guards walks through the directories of an untrusted index: every walk must end."""

from __future__ import annotations

from gompfs.errors import CorruptIndexError


class VisitedDirectories:
    """The directories that a walk has entered.

    In a forged index, a directory may have two names or contain itself; without this check, a walk might not end.
    """

    def __init__(self, archive: str | None = None) -> None:
        self._archive = archive
        self._inos: set[int] = set()

    def enter(self, ino: int, path: bytes | None = None) -> None:
        """Record a directory. Raises CorruptIndexError, with `path`, if the walk has entered it before."""
        if ino in self._inos:
            reason = "the index is damaged: a directory has two names"
            raise CorruptIndexError(reason, archive=self._archive, path=path)
        self._inos.add(ino)
