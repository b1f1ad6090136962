"""The entries of an archive: its inodes, names and paths, as the index has them."""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator

from gompfs.errors import (
    CorruptIndexError,
    EntryNotDirectoryError,
    EntryNotFoundError,
    StatsUnavailableError,
    SymlinkLoopError,
)
from gompfs.index.reader import IndexReader
from gompfs.index.visited import VisitedDirectories
from gompfs.model import ROOT_INO, DirectoryEntry, Inode

_MAX_SYMLINKS = 40
_NEIGHBOURS = 64  # inodes fetched by one query: programs walk a tree in order
_MIN_PATHS_SIZE, _MEAN_PATH_SIZE = 16 << 20, 4096  # limits the memory for all paths: in all, and for each name
_MAX_CACHED_INODES = 1 << 17


class Entries(ABC):
    """Finds entries by inode number and by path. The base of Archive, which opens the index. Thread-safe."""

    def __init__(self, path: str) -> None:
        """`path` is that of the archive, for error messages."""
        self.path = path
        self._inodes: dict[int, Inode] = {}
        self._has_xattrs: bool | None = None

    @property
    @abstractmethod
    def index(self) -> IndexReader:
        """Queries on the entries."""

    def inode(self, ino: int) -> Inode:
        """Returns the inode of a number. Raises EntryNotFoundError."""
        found = self._inodes.get(ino)
        if found is None:
            if len(self._inodes) > _MAX_CACHED_INODES:
                self._inodes.clear()
            self._inodes |= (inodes := self._inodes_from(ino))
            found = inodes.get(ino)
            if found is None:
                raise EntryNotFoundError(f"no inode {ino}", archive=self.path)
        return found

    def _inodes_from(self, ino: int) -> dict[int, Inode]:
        """Returns an inode and some after it, or it alone if one of them is damaged."""
        try:
            return self.index.inodes(ino, _NEIGHBOURS)
        except CorruptIndexError:
            return self.index.inodes(ino, 1)

    def resolve(self, path: str | bytes, *, follow: bool = False) -> Inode:
        """Returns the inode at a path from the archive's root. A leading slash changes nothing.

        With `follow`, a symlink at the end of the path is followed. Symlinks on the way are always followed, inside the
        archive. Raises EntryNotFoundError, EntryNotDirectoryError, SymlinkLoopError.
        """
        inode = self.inode(ROOT_INO)
        parents: list[Inode] = []
        rest = names_in(path)
        links = 0
        while rest:
            name = rest.pop(0)
            if not stat.S_ISDIR(inode.mode):
                raise EntryNotDirectoryError("not a directory", archive=self.path, path=path)
            if name == b"..":
                inode = parents.pop() if parents else inode
                continue
            child = self.index.child(inode.ino, name)
            if child is None:
                raise EntryNotFoundError("no such file or directory", archive=self.path, path=path)
            if stat.S_ISLNK(child.mode) and (rest or follow):
                links += 1
                target = child.symlink_target or b""
                if links > _MAX_SYMLINKS:
                    raise SymlinkLoopError("too many levels of symbolic links", archive=self.path, path=path)
                if target.startswith(b"/"):
                    inode, parents = self.inode(ROOT_INO), []
                rest = names_in(target) + rest
                continue
            parents.append(inode)
            inode = child
        return inode

    def walk(self, path: str | bytes = b"") -> Iterator[tuple[bytes, Inode]]:
        """Yields every entry at and below a path, depth first, with its path from the archive's root."""
        return self.walk_from(b"/".join(names_in(path)), self.resolve(path))

    def walk_from(self, path: bytes, inode: Inode) -> Iterator[tuple[bytes, Inode]]:
        """Like `walk`, but from the entry `inode` at `path`. It keeps only one path in memory, at any depth."""
        visited = VisitedDirectories(self.path)
        directory = path
        levels: list[tuple[int, Iterator[DirectoryEntry]]] = []  # size of a directory's path, its remaining entries
        while True:
            yield path, inode
            if stat.S_ISDIR(inode.mode):
                visited.enter(inode.ino, path)
                directory = path
                levels.append((len(path), iter(self.index.directory(inode.ino))))
            entry = None
            while levels and entry is None:
                size, entries = levels[-1]
                entry = next(entries, None)
                if entry is None:
                    levels.pop()
            if entry is None:
                return
            directory = directory[:size]
            path, inode = directory + b"/" + entry.name if directory else entry.name, entry.inode

    def xattrs(self, ino: int) -> dict[bytes, bytes]:
        """Returns the extended attributes of an inode."""
        return self.index.xattrs(ino) if self.has_xattrs() else {}

    def has_xattrs(self) -> bool:
        """Returns whether any entry has extended attributes."""
        if self._has_xattrs is None:
            self._has_xattrs = self.index.has_xattrs()
        return self._has_xattrs

    def inode_numbers(self) -> set[int]:
        """Returns the numbers of all inodes."""
        return {int(number) for numbers in self.index.inode_numbers() for number in numbers.split(",")}

    def path_of(self, ino: int) -> bytes:
        """Returns one path of an inode, or an empty path if it has no name. Slow: meant for messages."""
        parts: list[bytes] = []
        seen: set[int] = set()
        while ino not in seen and (found := self.index.name_of(ino)) is not None:
            seen.add(ino)
            ino, name = found
            parts.append(name)
        return b"/".join(reversed(parts))

    def paths(self, inos: Collection[int] | None = None) -> dict[int, bytes]:
        """Returns one path of every inode that can be reached from the root: of all, or of those among `inos`.

        The directories that lead to them may be among the result too.

        Raises StatsUnavailableError if the paths of deep directories would need too much memory.
        """
        parents = {ino: (parent, name) for parent, name, ino in self.index.names()}
        paths: dict[int, bytes | None] = {ROOT_INO: b""}
        space = _MIN_PATHS_SIZE + _MEAN_PATH_SIZE * len(parents)
        for ino in parents if inos is None else inos:
            chain: list[int] = []
            while ino not in paths and ino in parents:
                chain.append(ino)
                paths[ino] = None  # until its path is known; it stays None in a directory that contains itself
                ino = parents[ino][0]
            path = paths.get(ino)
            for child in reversed(chain):
                name = parents[child][1]
                if path is not None:
                    path = path + b"/" + name if path else name
                    space -= len(path)
                    if space < 0:
                        raise StatsUnavailableError("the paths of its files take too much memory", archive=self.path)
                paths[child] = path
        return {ino: path for ino, path in paths.items() if path is not None}


def names_in(path: str | bytes) -> list[bytes]:
    """Returns the names in a path in order, without empty ones and `.`."""
    return [name for name in os.fsencode(path).split(b"/") if name not in (b"", b".")]
