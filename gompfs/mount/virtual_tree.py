"""The directory `stats`: files that are always there, and those that come to be when somebody looks them up.

    info, wordcount, sort, ...      of all files together
    word/WORD, phrase/W1 W2 W3      the files that have a word, or some in a row
    files/PATH/wordcount, ...       of one file; directories as in the archive
"""

from __future__ import annotations

import stat
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from gompfs.archive import Archive
from gompfs.model import ROOT_INO, Inode
from gompfs.mount.stats_permissions import StatsPermissions
from gompfs.mount.virtual_files import FILE_TASKS, LISTED_FILES, SEARCHES, VIRTUAL_FILES, VirtualFile

FIRST_VIRTUAL = 1 << 62
"""Node ids from here on are virtual: numbers of inodes are smaller."""
_MAX_ANSWERS = 256  # that are kept of those that come to be when they are looked up


Permission = Callable[[Inode], Inode]
"""Gives an inode its owner and mode (see StatsPermissions)."""


@dataclass
class VirtualNode:
    """A virtual file, or a directory: then `child` knows the node of a name, `names` what is listed."""

    plain: Inode
    """Its number, type and times."""
    permission: Permission
    file: VirtualFile | None = None
    child: Callable[[bytes], int | None] = lambda _name: None
    names: Callable[[], Sequence[bytes]] = tuple

    @cached_property
    def inode(self) -> Inode:
        """With owner and mode, for which all modes of the archive may have to be looked at."""
        return self.permission(self.plain)

    @property
    def number(self) -> int:
        """The node id."""
        return self.plain.ino

    def refuses(self, uid: int) -> bool:
        """Whether this is a file that only its owner and root may read, and the user is neither."""
        return self.file is not None and self.inode.mode & 0o077 == 0 and uid not in (0, self.inode.uid)


class VirtualTree:
    """Nodes by their path in `stats`, which is the name that their content is computed by; safe for any threads."""

    def __init__(self, archive: Archive, permissions: StatsPermissions, first: int) -> None:
        """Nodes are numbered from `first` on."""
        self._archive = archive
        self._permissions = permissions
        self._lock = threading.RLock()
        self._nodes: dict[int, VirtualNode] = {}
        self._numbers: dict[bytes, int] = {}
        self._next = first
        self._answers: OrderedDict[bytes, None] = OrderedDict()
        self._binary_files = frozenset(archive.binary_files())
        everybody, of_all_files = permissions.everybody, permissions.of_all_files
        stats = self._add(b"/stats", everybody, directory=True)
        self.stats = stats.number
        stats.child = self._numbers.get
        stats.names = lambda: sorted(LISTED_FILES)
        private = self._add(b"/private", everybody, directory=True)
        self.private = private.number
        private.child = {b"stats": self.stats}.get
        private.names = lambda: (b"stats",)
        # What is in these is not computed from files; but `info` has the paths of binary ones.
        of_no_file = {b"metrics"} if self._binary_files else {b"info", b"metrics"}
        for name in VIRTUAL_FILES:
            self._add(name, everybody if name in of_no_file else of_all_files, directory=False)
        for kind in SEARCHES:
            self._add(kind, of_all_files, directory=True).child = partial(self._search, kind)
        self._mirror(b"files", archive.inode(ROOT_INO))

    def node(self, number: int) -> VirtualNode | None:
        """A node by its id, if it still is one."""
        return self._nodes.get(number)

    def _add(self, path: bytes, permission: Permission, *, directory: bool) -> VirtualNode:
        """A new node; that of a file has its content."""
        with self._lock:
            number, self._next = self._next, self._next + 1
            root = self._archive.inode(ROOT_INO)
            mode = stat.S_IFDIR if directory else stat.S_IFREG
            inode = Inode(number, mode, root.uid, root.gid, 0, root.mtime_ns, 2 if directory else 1)
            node = VirtualNode(inode, permission, None if directory else VirtualFile(path, self._archive))
            self._nodes[number] = node
            self._numbers[path] = number
            return node

    def _search(self, kind: bytes, words: bytes) -> int | None:
        """An answer that is only there if it is not empty."""
        number = self._answer(kind + b"/" + words, self._permissions.of_all_files)
        file = self._nodes[number].file
        return number if file is not None and file.size() else None

    def _answer(self, path: bytes, permission: Permission) -> int:
        """The file of a path, of which only the last ones are kept."""
        with self._lock:
            number = self._numbers.get(path)
            self._answers[path] = None
            self._answers.move_to_end(path)
            oldest = self._answers.popitem(last=False)[0] if len(self._answers) > _MAX_ANSWERS else None
            if oldest is not None and (forgotten := self._nodes.pop(self._numbers.pop(oldest)).file) is not None:
                forgotten.close()
            return self._add(path, permission, directory=False).number if number is None else number

    def _mirror(self, path: bytes, directory: Inode) -> int:
        """The directory that shows a directory of the archive."""
        ino = directory.ino
        with self._lock:
            if path not in self._numbers:
                node = self._add(path, self._permission_of(directory), directory=True)
                node.child = lambda name: self._shown(path + b"/" + name, self._archive.lookup(ino, name))
                node.names = lambda: [
                    entry.name for entry in self._archive.list_directory(ino) if self._is_shown(entry.inode)
                ]
            return self._numbers[path]

    def _is_shown(self, inode: Inode) -> bool:
        is_text = stat.S_ISREG(inode.mode) and inode.ino not in self._binary_files
        return is_text or stat.S_ISDIR(inode.mode)

    def _shown(self, path: bytes, inode: Inode | None) -> int | None:
        """What shows an entry of the archive: a directory either way."""
        if inode is None or not self._is_shown(inode):
            return None
        if stat.S_ISDIR(inode.mode):
            return self._mirror(path, inode)
        permission = self._permission_of(inode)
        with self._lock:
            if path not in self._numbers:
                node = self._add(path, permission, directory=True)
                node.child = lambda task: self._answer(path + b"/" + task, permission) if task in FILE_TASKS else None
                node.names = lambda: FILE_TASKS
            return self._numbers[path]

    def _permission_of(self, entry: Inode) -> Permission:
        return lambda inode: self._permissions.of_entry(inode, entry)
