"""The directory `stats`: files that always exist, and files that are created when they are looked up.

README, info, wordcount, ...    of all files together
tables/NAME.jsonl, ...          the statistic NAME in another format
word/WORD, phrase/W1 W2 W3      the files that contain a word, or several words in a row
grep/PATTERN, count/PATTERN, files-with/PATTERN     lines or files with matches of a regular expression
files/PATH/wordcount, ...       of one file; directories as in the archive

A program that walks the tree must not compute what is large. The kernel asks for the size of each file that it looks
up, and the size must be right, so even `ls` computes the files that a listing shows. Hence a listing shows only those
that are soon computed; the others are opened by name. For the same reason, the directories whose entries are opened by
name are shown as symlinks: a directory NAME is the link NAME to .NAME, which no listing shows. Programs that walk a
tree do not follow links, and so do not look for .gitignore or CACHEDIR.TAG there, which would be searches.
See docs/decisions/0037-listing-of-statistics.md.
"""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable, Sequence
from functools import cached_property, partial

from gompfs.archive import Archive
from gompfs.model import ROOT_INO, Inode
from gompfs.mount.answer_cache import AnswerCache
from gompfs.mount.stats_permissions import StatsPermissions
from gompfs.mount.virtual_content import (
    OF_NO_FILE,
    TABLES,
    VOLATILE,
    VirtualContent,
    listed_file_names,
    listed_names_of_file,
    opened_names_of_file,
    search_names,
    table_names,
    virtual_file_names,
)
from gompfs.mount.virtual_files import VirtualFile

Permission = Callable[[Inode], Inode]
"""Sets the owner and mode of an inode (see StatsPermissions)."""


class VirtualNode:
    """A virtual file or directory. In a directory, `child` maps a name to a node id, and `names` lists names."""

    def __init__(
        self, plain: Inode, permission: Permission, file: VirtualFile | None = None, entry: Inode | None = None
    ) -> None:
        """`plain` has the node id, type and times; `entry` is the archive's entry that this one describes, if any."""
        self.plain = plain
        self.permission = permission
        self.file = file
        self.entry = entry
        self.child: Callable[[bytes], int | None] = lambda _name: None
        self.names: Callable[[], Sequence[bytes]] = tuple

    @cached_property
    def inode(self) -> Inode:
        """`plain` with owner and mode. The first use may read the modes of all entries of the archive."""
        return self.permission(self.plain)

    @property
    def number(self) -> int:
        """The node id."""
        return self.plain.ino

    def refuses(self, uid: int) -> bool:
        """Returns whether this is a file that only its owner and root may read, and the user is neither."""
        return self.file is not None and self.inode.mode & 0o077 == 0 and uid not in (0, self.inode.uid)


class VirtualTree:
    """The virtual nodes, by their path in `stats`. Thread-safe."""

    def __init__(
        self,
        archive: Archive,
        content: VirtualContent,
        permissions: StatsPermissions,
        first: int,
        *,
        is_beside_root: bool,
    ) -> None:
        """Node ids begin at `first`. With `is_beside_root`, the mount shows `stats` in its root too."""
        self._archive = archive
        self._content = content
        self._permissions = permissions
        self._lock = threading.RLock()
        self._nodes: dict[int, VirtualNode] = {}
        self._numbers: dict[bytes, int] = {}
        self._next = first
        self._answers = AnswerCache()
        self._entries: dict[bytes, int] = {}  # of the directory `stats`
        self._listed: list[bytes] = []
        stats = self._add(b"/stats", permissions.everybody, directory=True)
        self.stats = stats.number
        stats.child = lambda name: self._filled().get(name)
        stats.names = self._listed_names
        private = self._add(b"/private", permissions.everybody, directory=True)
        self.private = private.number
        # Two paths to one directory would make programs that walk the tree read everything twice.
        inside = self._add_link(b"/private/stats", b"../stats").number if is_beside_root else self.stats
        private.child = {b"stats": inside}.get
        private.names = lambda: (b"stats",)

    def _filled(self) -> dict[bytes, int]:
        """Returns the entries of `stats`, with their node ids. The first use makes their nodes."""
        with self._lock:
            if not self._entries:
                self._fill()
            return self._entries

    def _listed_names(self) -> list[bytes]:
        self._filled()
        return self._listed

    def _fill(self) -> None:
        everybody, of_all_files = self._permissions.everybody, self._permissions.of_all_files
        entries = {}
        for name in virtual_file_names():
            entries[name] = self._add(name, everybody if name in OF_NO_FILE else of_all_files, directory=False).number
        directories = {TABLES: self._directory_by_name(TABLES, self._table)}
        for kind in search_names():
            directories[kind] = self._directory_by_name(kind, partial(self._search, kind))
        directories[b"files"] = self._mirror(b"files", self._archive.inode(ROOT_INO))
        for name, number in directories.items():
            entries[b"." + name] = number
            entries[name] = self._add_link(b"/link/" + name, b"." + name).number
        self._listed = sorted([*listed_file_names(), *directories])
        self._entries = entries

    def _directory_by_name(self, name: bytes, child: Callable[[bytes], int | None]) -> int:
        """Returns the node id of a new directory whose entries are opened by name: a listing of it is empty."""
        node = self._add(name, self._permissions.of_all_files, directory=True)
        node.child = child
        return node.number

    def _add_link(self, path: bytes, target: bytes) -> VirtualNode:
        """Add a symlink and return it."""
        node = self._add(path, self._permissions.of_link, directory=True)
        node.plain = node.plain._replace(mode=stat.S_IFLNK, nlink=1, size=len(target), symlink_target=target)
        return node

    def _table(self, name: bytes) -> int | None:
        """Returns the node id of a table, or None if there is no such table."""
        if name not in table_names():
            return None
        path = TABLES + b"/" + name
        with self._lock:
            number = self._numbers.get(path)
            return self._add(path, self._permissions.of_all_files, directory=False).number if number is None else number

    def node(self, number: int) -> VirtualNode | None:
        """Returns the node of an id, or None if it has been evicted."""
        return self._nodes.get(number)

    def _add(self, path: bytes, permission: Permission, *, directory: bool, entry: Inode | None = None) -> VirtualNode:
        """Add a node and return it. A file's node gets its VirtualFile."""
        with self._lock:
            number, self._next = self._next, self._next + 1
            root = self._archive.inode(ROOT_INO)
            mode = stat.S_IFDIR if directory else stat.S_IFREG
            inode = Inode(number, mode, root.uid, root.gid, 0, root.mtime_ns, 2 if directory else 1)
            file = None
            if not directory:
                file = VirtualFile(partial(self._content.compute, path), is_volatile=path in VOLATILE)
            node = VirtualNode(inode, permission, file, entry)
            self._nodes[number] = node
            self._numbers[path] = number
            return node

    def _search(self, kind: bytes, words: bytes) -> int | None:
        """Returns the node id of a search, or None if the search finds nothing."""
        node = self._answer(kind + b"/" + words, self._permissions.of_all_files)
        return node.number if node.file is not None and node.file.size() else None

    def _answer(self, path: bytes, permission: Permission, entry: Inode | None = None) -> VirtualNode:
        """Returns the node of a file that a lookup creates. See AnswerCache for how long it is kept."""
        with self._lock:
            number = self._numbers.get(path)
            node = self._nodes[number] if number else self._add(path, permission, directory=False, entry=entry)
            assert node.file is not None
            for dropped in self._answers.use(path, node.file):
                file = self._nodes.pop(self._numbers.pop(dropped)).file
                assert file is not None
                file.close()
            return node

    def _mirror(self, path: bytes, directory: Inode) -> int:
        """Returns the node id of the directory that mirrors a directory of the archive."""
        ino = directory.ino
        with self._lock:
            if path not in self._numbers:
                node = self._add(path, self._permission_of(directory), directory=True, entry=directory)
                node.child = lambda name: self._shown(path + b"/" + name, self._archive.index.child(ino, name))
                node.names = lambda: [
                    entry.name for entry in self._archive.index.directory(ino) if self._is_shown(entry.inode)
                ]
            return self._numbers[path]

    def _is_shown(self, inode: Inode) -> bool:
        is_text = stat.S_ISREG(inode.mode) and not self._archive.index.is_binary_file(inode.ino)
        return is_text or stat.S_ISDIR(inode.mode)

    def _shown(self, path: bytes, inode: Inode | None) -> int | None:
        """Returns the node id of the directory that describes an entry of the archive, or None if there is none."""
        if inode is None or not self._is_shown(inode):
            return None
        if stat.S_ISDIR(inode.mode):
            return self._mirror(path, inode)
        permission = self._permission_of(inode)
        with self._lock:
            if path not in self._numbers:
                node = self._add(path, permission, directory=True, entry=inode)
                node.child = lambda name: (
                    self._answer(path + b"/" + name, permission, inode).number
                    if name in opened_names_of_file()
                    else None
                )
                node.names = listed_names_of_file
            return self._numbers[path]

    def _permission_of(self, entry: Inode) -> Permission:
        return lambda inode: self._permissions.of_entry(inode, entry)
