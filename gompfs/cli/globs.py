"""Patterns in the PATHs of ls, cat and extract, which no shell can expand, as it does not see what is in an archive.

`*`, `?` and `[a-z]` match in one name, as in a shell, but also names that begin with a dot; `**` matches any number of
directories. An entry whose name has these characters is found by its name first.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence

from gompfs.errors import GompfsError
from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from gompfs.archive import Archive
    from gompfs.model import Inode

_SPECIAL = frozenset("*?[")
_ANY_DEPTH = b"**"


def expanded(archive: Archive, paths: Iterable[str]) -> Iterator[str]:
    """Yields the paths, and in the place of a pattern all that it matches. One that matches nothing stays a path."""
    for path in paths:
        found = [] if _SPECIAL.isdisjoint(path) or _exists(archive, path) else _matches(archive, path)
        yield from found or [path]


def _exists(archive: Archive, path: str) -> bool:
    try:
        archive.resolve(path)
    except GompfsError:
        return False
    return True


def _matches(archive: Archive, pattern: str) -> list[str]:
    parts = [part for part in os.fsencode(pattern).split(b"/") if part not in (b"", b".")]
    found = _below(archive, b"", archive.resolve(b""), parts)
    return [os.fsdecode(path) for path in dict.fromkeys(found)]


def _below(archive: Archive, directory: bytes, inode: Inode, parts: Sequence[bytes]) -> Iterator[bytes]:
    """Yields the paths at and below a directory that match, in the order of their names."""
    from fnmatch import fnmatchcase

    part, *rest = parts
    if part == _ANY_DEPTH:
        for path, found in archive.walk_from(directory, inode):
            if not rest and path != directory:
                yield path
            elif rest and stat.S_ISDIR(found.mode):
                yield from _below(archive, path, found, rest)
        return
    prefix = directory + b"/" if directory else b""
    for entry in archive.index.directory(inode.ino):
        if fnmatchcase(entry.name, part):
            if not rest:
                yield prefix + entry.name
            elif stat.S_ISDIR(entry.inode.mode):
                yield from _below(archive, prefix + entry.name, entry.inode, rest)
