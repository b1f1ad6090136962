"""The directory `stats`: files that always exist, and files that are created when they are looked up.

info, wordcount, sort, ...      of all files together
word/WORD, phrase/W1 W2 W3      the files that contain a word, or several words in a row
grep/PATTERN, count/PATTERN, files-with/PATTERN     lines or files with matches of a regular expression
files/PATH/wordcount, ...       of one file; directories as in the archive
NAME.jsonl, NAME.arrow, NAME.parquet    the statistic NAME in another format; not listed
"""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from gompfs.archive import Archive
from gompfs.model import ROOT_INO, Inode
from gompfs.mount.answer_cache import AnswerCache
from gompfs.mount.stats_permissions import StatsPermissions
from gompfs.mount.virtual_content import (
    INFO,
    METRICS,
    METRICS_JSON,
    VOLATILE,
    VirtualContent,
    listed_file_names,
    opened_names_of_file,
    per_file_names,
    search_names,
    virtual_file_names,
)
from gompfs.mount.virtual_files import VirtualFile

Permission = Callable[[Inode], Inode]
"""Sets the owner and mode of an inode (see StatsPermissions)."""


@dataclass
class VirtualNode:
    """A virtual file or directory. In a directory, `child` maps a name to a node id, and `names` lists names."""

    plain: Inode
    """The node id, type and times."""
    permission: Permission
    file: VirtualFile | None = None
    entry: Inode | None = None
    """The archive's entry that this one describes, if there is one."""
    child: Callable[[bytes], int | None] = lambda _name: None
    names: Callable[[], Sequence[bytes]] = tuple

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

    def __init__(self, archive: Archive, content: VirtualContent, permissions: StatsPermissions, first: int) -> None:
        """Node ids begin at `first`."""
        self._archive = archive
        self._content = content
        self._permissions = permissions
        self._lock = threading.RLock()
        self._nodes: dict[int, VirtualNode] = {}
        self._numbers: dict[bytes, int] = {}
        self._next = first
        self._answers = AnswerCache()
        self._binary_files = frozenset(archive.index.binary_files())
        self._is_filled = False
        stats = self._add(b"/stats", permissions.everybody, directory=True)
        self.stats = stats.number
        stats.child = self._statistic
        stats.names = listed_file_names
        private = self._add(b"/private", permissions.everybody, directory=True)
        self.private = private.number
        private.child = {b"stats": self.stats}.get
        private.names = lambda: (b"stats",)

    def _statistic(self, name: bytes) -> int | None:
        """Returns the node id of an entry of `stats`, or None. The first use makes their nodes."""
        with self._lock:
            if not self._is_filled:
                self._fill()
                self._is_filled = True
            return self._numbers.get(name)

    def _fill(self) -> None:
        everybody, of_all_files = self._permissions.everybody, self._permissions.of_all_files
        # These files are not computed from the content of files. But `info` lists the paths of binary files, if there
        # are any.
        of_no_file = {METRICS, METRICS_JSON} if self._binary_files else {INFO, METRICS, METRICS_JSON}
        for name in virtual_file_names():
            self._add(name, everybody if name in of_no_file else of_all_files, directory=False)
        for kind in search_names():
            self._add(kind, of_all_files, directory=True).child = partial(self._search, kind)
        self._mirror(b"files", self._archive.inode(ROOT_INO))

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
        is_text = stat.S_ISREG(inode.mode) and inode.ino not in self._binary_files
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
                node.names = per_file_names
            return self._numbers[path]

    def _permission_of(self, entry: Inode) -> Permission:
        return lambda inode: self._permissions.of_entry(inode, entry)
