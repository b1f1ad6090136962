"""The guard of every walk through directories."""

from __future__ import annotations

from gompfs.errors import CorruptIndexError


class VisitedDirectories:
    """The directories that a walk has entered.

    In a hostile index, a directory may have two names, or be inside itself: a walk would not end.
    """

    def __init__(self, archive: str | None = None) -> None:
        self._archive = archive
        self._inos: set[int] = set()

    def enter(self, ino: int, path: bytes | None = None) -> None:
        """Remember a directory; raises CorruptIndexError, naming `path`, if the walk has been in it already."""
        if ino in self._inos:
            reason = "the index is damaged: a directory has two names"
            raise CorruptIndexError(reason, archive=self._archive, path=path)
        self._inos.add(ino)
