"""The tree that a mount shows: an archive's entries, and the virtual files beside them, by node id.

The node id of an archive's entry is its inode number; those of virtual entries begin at _VIRTUAL.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass, field

from gompfs.archive import Archive
from gompfs.errors import EntryTypeError
from gompfs.model import ROOT_INO, Inode
from gompfs.mount.virtual_files import LISTED_FILES, VIRTUAL_FILES, VirtualFile
from gompfs.options import MountOptions

_STATS = b"stats"
_PRIVATE = b".gompfs"
_VIRTUAL = 1 << 62


@dataclass
class VirtualNode:
    """A virtual directory, or a file where `file` is set."""

    inode: Inode
    parent: int
    file: VirtualFile | None = None
    children: dict[bytes, int] = field(default_factory=dict)


class Tree:
    """Answers by node id; errors are those of Archive."""

    def __init__(self, archive: Archive, options: MountOptions) -> None:
        self._archive = archive
        self._options = options
        self._maps = options.uid is not None or options.gid is not None or options.umask != 0
        self._virtual: dict[int, VirtualNode] = {}
        self._beside_root: dict[bytes, int] = {}
        if options.stats != "off":
            self._add_virtual()

    def virtual(self, node: int) -> VirtualNode | None:
        """The virtual entry of that node id; None for one of the archive."""
        return self._virtual.get(node) if node >= _VIRTUAL else None

    def inode(self, node: int) -> Inode:
        """The attributes of a node; raises EntryNotFoundError, or NotReadyError for a virtual file's."""
        virtual = self.virtual(node)
        if virtual is None:
            return self._mapped(self._archive.inode(node))
        if virtual.file is None:
            return virtual.inode
        # The true size from the beginning, as the kernel mixes up sizes that change while several processes open
        # the file: it would then take the file for empty.
        size = virtual.file.size()
        return virtual.inode._replace(size=size, mtime_ns=virtual.file.mtime_ns or virtual.inode.mtime_ns)

    def lookup(self, parent: int, name: bytes) -> Inode | None:
        """What a directory has under a name."""
        virtual = self.virtual(parent)
        child = (virtual.children if virtual else self._beside_root if parent == ROOT_INO else {}).get(name)
        if child is not None:
            return self.inode(child)
        if virtual is not None:
            return None
        inode = self._archive.lookup(parent, name)
        return None if inode is None else self._mapped(inode)

    def children(self, node: int) -> Sequence[tuple[bytes, Inode]]:
        """The entries of a directory with their names, in byte order of the names; raises EntryTypeError."""
        virtual = self.virtual(node)
        if virtual is not None:
            listed = ((name, self._virtual[child]) for name, child in sorted(virtual.children.items()))
            return [(name, entry.inode) for name, entry in listed if entry.file is None or name in LISTED_FILES]
        children: Sequence[tuple[bytes, Inode]] = self._archive.list_directory(node)
        if not children and not stat.S_ISDIR(self._archive.inode(node).mode):
            raise EntryTypeError("not a directory", archive=self._archive.path)
        if self._maps:
            children = [(name, self._mapped(inode)) for name, inode in children]
        if node == ROOT_INO and self._options.stats == "visible":
            children = sorted(
                [*children, *((name, self.inode(child)) for name, child in self._beside_root.items())]
            )
        return children

    def _mapped(self, inode: Inode) -> Inode:
        """The inode with the mount's uid, gid and umask."""
        if not self._maps:
            return inode
        options = self._options
        return inode._replace(
            mode=inode.mode & ~options.umask,
            uid=inode.uid if options.uid is None else options.uid,
            gid=inode.gid if options.gid is None else options.gid,
        )

    def _add_virtual(self) -> None:
        """Place /.gompfs/stats, and /stats where the archive has no entry of that name."""
        private = self._add_directory(ROOT_INO)
        self._add_stats(self._virtual[private].children, private)
        self._beside_root[_PRIVATE] = private
        if self._archive.lookup(ROOT_INO, _STATS) is None:
            self._add_stats(self._beside_root, ROOT_INO)

    def _add_stats(self, place: dict[bytes, int], parent: int) -> None:
        directory = place[_STATS] = self._add_directory(parent)
        for name in VIRTUAL_FILES:
            number = self._add(stat.S_IFREG | 0o444, directory, VirtualFile(name, self._archive))
            self._virtual[directory].children[name] = number

    def _add_directory(self, parent: int) -> int:
        return self._add(stat.S_IFDIR | 0o555, parent, None)

    def _add(self, mode: int, parent: int, file: VirtualFile | None) -> int:
        number = _VIRTUAL + len(self._virtual)
        root = self._archive.inode(ROOT_INO)
        inode = Inode(number, mode, root.uid, root.gid, 0, root.mtime_ns, 1 if file else 2)
        self._virtual[number] = VirtualNode(self._mapped(inode), parent, file)
        return number
