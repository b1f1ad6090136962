"""The tree that a mount shows: an archive's entries, and the virtual files beside them, by path."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field

from gompfs.archive import Archive
from gompfs.errors import EntryNotFoundError, EntryTypeError
from gompfs.model import ROOT_INO, Inode
from gompfs.mount.virtual_files import VIRTUAL_FILES, VirtualFile
from gompfs.options import MountOptions

_MAX_NODES = 500_000
_STATS = b"stats"
_PRIVATE = b".gompfs"
_VIRTUAL_INO = 1 << 62


@dataclass(slots=True)
class Node:
    """An entry of the mount. `handle` is what an open of it is known by; `virtual` is None in the archive.

    `packed` is room for the binding to keep the attributes in the form that it needs.
    """

    inode: Inode
    handle: int
    virtual: VirtualFile | None = None
    children: list[tuple[bytes, Node]] | None = None
    packed: object = field(default=None)


class Tree:
    """Resolves paths, a directory at a time; what was looked up once is found in a dictionary."""

    def __init__(self, archive: Archive, options: MountOptions) -> None:
        self._archive = archive
        self._options = options
        self._nodes: dict[bytes, Node] = {}
        self._virtual: dict[int, Node] = {}
        self._virtual_paths: dict[bytes, Node] = {}
        if options.stats != "off":
            self._add_virtual()

    def node(self, path: bytes) -> Node:
        """The entry at an absolute path; raises EntryNotFoundError, EntryTypeError."""
        node = self._nodes.get(path) or self._virtual_paths.get(path)
        if node is not None:
            return node
        if path == b"/":
            return self._keep(path, self._archive_node(self._archive.inode(ROOT_INO)))
        parent, _, name = path.rpartition(b"/")
        for child_name, child in self.children(parent or b"/"):
            if child_name == name:
                return child
        raise EntryNotFoundError("no such file or directory", archive=self._archive.path, path=path)

    def children(self, path: bytes) -> list[tuple[bytes, Node]]:
        """The entries of a directory with their names, in byte order of the names."""
        directory = self.node(path)
        if directory.children is not None:
            return directory.children
        if not stat.S_ISDIR(directory.inode.mode):
            raise EntryTypeError("not a directory", archive=self._archive.path, path=path)
        prefix = path if path == b"/" else path + b"/"
        if len(self._nodes) > _MAX_NODES:
            self._nodes.clear()
        children = [
            (entry.name, self._keep(prefix + entry.name, self._archive_node(entry.inode)))
            for entry in self._archive.list_directory(directory.inode.ino)
        ]
        if path == b"/" and self._options.stats == "visible":
            children += [(name[1:], node) for name, node in self._virtual_paths.items() if name.count(b"/") == 1]
            children.sort()
        directory.children = children
        return children

    def virtual_node(self, handle: int) -> Node | None:
        """The virtual file that was opened under a handle."""
        return self._virtual.get(handle)

    def _keep(self, path: bytes, node: Node) -> Node:
        return self._nodes.setdefault(path, node)

    def _archive_node(self, inode: Inode) -> Node:
        return Node(self._mapped(inode), inode.ino)

    def _mapped(self, inode: Inode) -> Inode:
        """The inode with the mount's uid, gid and umask."""
        options = self._options
        if options.uid is None and options.gid is None and not options.umask:
            return inode
        return Inode(
            inode.ino,
            inode.mode & ~options.umask,
            inode.uid if options.uid is None else options.uid,
            inode.gid if options.gid is None else options.gid,
            inode.size,
            inode.mtime_ns,
            inode.nlink,
            inode.rdev,
            inode.symlink_target,
        )

    def _add_virtual(self) -> None:
        """Place /.gompfs/stats, and /stats where the archive has no entry of that name."""
        root = self._archive.inode(ROOT_INO)
        files = [(name, self._virtual_node(stat.S_IFREG | 0o444, root, name)) for name in sorted(VIRTUAL_FILES)]
        stats = self._virtual_node(stat.S_IFDIR | 0o555, root)
        stats.children = files
        private = self._virtual_node(stat.S_IFDIR | 0o555, root)
        private.children = [(_STATS, stats)]
        places = [b"/" + _PRIVATE + b"/" + _STATS]
        self._virtual_paths[b"/" + _PRIVATE] = private
        if self._archive.lookup(ROOT_INO, _STATS) is None:
            places.append(b"/" + _STATS)
        for place in places:
            self._virtual_paths[place] = stats
            for name, node in files:
                self._virtual_paths[place + b"/" + name] = node

    def _virtual_node(self, mode: int, root: Inode, name: bytes | None = None) -> Node:
        handle = _VIRTUAL_INO + len(self._virtual)
        inode = Inode(handle, mode, root.uid, root.gid, 0, root.mtime_ns, 1 if name else 2)
        node = Node(self._mapped(inode), handle, VirtualFile(name, self._archive) if name else None)
        self._virtual[handle] = node
        return node
