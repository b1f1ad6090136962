"""The tree that a mount shows: an archive's entries and the virtual files, by node id.

The node id of an entry is its inode number, except that ROOT_INO stands for the directory shown as the mount's root.
Node ids of virtual entries begin at FIRST_VIRTUAL. All node ids but ROOT_INO hold in their upper bits the number of the
snapshot or, in a mount of several archives, of the archive. The number is 0 in a mount of one archive that never
changes.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence

from gompfs._native.fuse import FIRST_VIRTUAL, SNAPSHOT_SHIFT, NodeMapping
from gompfs.archive import Archive
from gompfs.errors import CorruptIndexError, EntryNotDirectoryError, EntryNotFoundError
from gompfs.index.packed_rows import DIRECTORIES
from gompfs.model import ACCESS_ACL, ROOT_INO, Inode, PackedRows
from gompfs.mount.access_lists import shown_acl
from gompfs.mount.stats_permissions import StatsPermissions
from gompfs.mount.virtual_content import VirtualContent
from gompfs.mount.virtual_tree import VirtualNode, VirtualTree
from gompfs.options import MountOptions

MAX_NAME_SIZE = 255
"""The value that statfs reports.

Longer names in the archive, and longer words in `stats`, can be looked up all the same.
"""
STATS = b"stats"
PRIVATE = b".gompfs"


class Tree:
    """Looks up entries by node id. Raises the errors of Archive."""

    def __init__(self, archive: Archive, content: VirtualContent, options: MountOptions, snapshot: int) -> None:
        self._archive = archive
        self._options = options
        self._snapshot = snapshot
        self._first = snapshot << SNAPSHOT_SHIFT
        self._root = archive.resolve(options.subdir, follow=True)
        if not stat.S_ISDIR(self._root.mode):
            raise EntryNotDirectoryError("not a directory", archive=archive.path, path=options.subdir)
        self._owns = options.uid is not None or options.gid is not None or options.umask != 0
        self._is_one_of_several = options.follow or snapshot > 0
        self._maps = self._owns or self._is_one_of_several
        self._beside_root: dict[bytes, int] = {}
        if options.stats != "off":
            self._permissions = StatsPermissions(archive, options, self._root.ino, self._owned)
            is_beside_root = options.several is None and archive.index.child(self._root.ino, STATS) is None
            first = FIRST_VIRTUAL + self._first
            self._virtual = VirtualTree(archive, content, self._permissions, first, is_beside_root=is_beside_root)
            self._beside_root[PRIVATE] = self._virtual.private
            if is_beside_root:
                self._beside_root[STATS] = self._virtual.stats

    def virtual(self, node: int) -> VirtualNode | None:
        """Returns the virtual entry of a node id, or None if the node id is one of the archive.

        Raises EntryNotFoundError if there is no such virtual entry.
        """
        if node < FIRST_VIRTUAL:
            return None
        virtual = self._virtual.node(node) if self._beside_root else None
        if virtual is None:
            raise EntryNotFoundError(f"no virtual entry {node}", archive=self._archive.path)
        return virtual

    def root(self) -> Inode:
        """Returns the directory shown as the root, with the node id that it has in a mount of several archives."""
        return self._mapped(self._root)

    def statistics(self) -> Inode:
        """Returns the directory of statistics. Must not be called with stats=off."""
        return self.inode(self._virtual.stats)

    def ino(self, node: int) -> int:
        """Returns the inode number of a node that is not virtual."""
        return self._root.ino if node == ROOT_INO else node - self._first

    def ino_of(self, number: int) -> int:
        """Returns the inode number in the archive for an inode number that the mount shows, which is a node id.

        Raises EntryNotFoundError if the node id belongs to another snapshot or archive, or is that of a virtual entry.
        """
        if number == ROOT_INO or number >> SNAPSHOT_SHIFT == self._snapshot:
            return self.ino(number)
        raise EntryNotFoundError(f"no entry {number}", archive=self._archive.path)

    def inode(self, node: int) -> Inode:
        """Returns the attributes of a node. Raises EntryNotFoundError, and NotReadyError for a virtual file."""
        virtual = self.virtual(node)
        if node == ROOT_INO:
            # Each snapshot has its own mtime: when the mtime changes, the kernel drops its cached listing.
            mtime_ns = self._root.mtime_ns + self._snapshot
            return self._owned(self._root._replace(ino=ROOT_INO, mtime_ns=mtime_ns))
        if virtual is None:
            return self._mapped(self._archive.inode(self.ino(node)))
        if virtual.file is None:
            return virtual.inode
        # The size must be right from the start: if it changes while several processes open the file, the kernel mixes
        # up the sizes and takes the file for empty.
        size = virtual.file.size()
        return virtual.inode._replace(size=size, mtime_ns=virtual.file.mtime_ns or virtual.inode.mtime_ns)

    def lookup(self, parent: int, name: bytes, uid: int = 0) -> Inode | None:
        """Returns the entry of a directory that has a name, or None.

        Raises PermissionError for a statistic that the user `uid` may not read, so that it is not computed for its
        size; and NotReadyError for one that is being computed.
        """
        virtual = self.virtual(parent)
        if virtual is not None:
            child = virtual.child(name)
            node = None if child is None else self.virtual(child)
            if node is None:
                return None
            if node.refuses(uid):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return self.inode(node.number)
        if parent == ROOT_INO and name in self._beside_root:
            return self.inode(self._beside_root[name])
        inode = self._archive.index.child(self.ino(parent), name)
        if inode is None and len(name) > MAX_NAME_SIZE:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        return None if inode is None else self._mapped(inode)

    def children(self, node: int) -> Sequence[tuple[bytes, Inode]]:
        """Returns the entries of a directory in byte order of their names. Raises EntryNotDirectoryError."""
        virtual = self.virtual(node)
        if virtual is not None:
            listed = ((name, virtual.child(name)) for name in virtual.names())
            entries = ((name, self.virtual(child)) for name, child in listed if child is not None)
            return [(name, entry.inode) for name, entry in entries if entry is not None]
        ino = self.ino(node)
        children: Sequence[tuple[bytes, Inode]] = self._archive.index.directory(ino)
        if not children and not stat.S_ISDIR(self._archive.inode(ino).mode):
            raise EntryNotDirectoryError("not a directory", archive=self._archive.path)
        if self._maps:
            children = [(name, self._mapped(inode)) for name, inode in children]
        if node == ROOT_INO and self._options.stats == "visible":
            children = sorted([*children, *((name, self.inode(child)) for name, child in self._beside_root.items())])
        return children

    def xattrs(self, node: int) -> dict[bytes, bytes]:
        """Returns the extended attributes of a node. An ACL gives no more rights than the mode that is shown.

        Entries of `stats/files` have the ACL of the entry that they describe, and no other attributes.
        """
        virtual = self.virtual(node)
        if virtual is None:
            xattrs = self._archive.xattrs(self.ino(node))
            acl = xattrs.get(ACCESS_ACL)
            return xattrs if acl is None else xattrs | {ACCESS_ACL: shown_acl(acl, self.inode(node).mode)}
        acl = None if virtual.entry is None else self._permissions.acl_of_entry(virtual.plain, virtual.entry)
        return {} if acl is None else {ACCESS_ACL: acl}

    def directories(self, first: int, max_entries: int) -> PackedRows | None:
        """Returns directories as the index holds them, to which the caller must apply `mapping`.

        `first` is the node id of the first directory. Returns None if the mount shows that directory differently.
        """
        is_changed_root = first == ROOT_INO and (
            self._options.stats == "visible" or self._options.follow or self._root.ino != ROOT_INO
        )
        if first >= FIRST_VIRTUAL or is_changed_root:
            return None
        return self._archive.index.packed_rows(DIRECTORIES, self.ino(first), max_entries)

    @property
    def mapping(self) -> NodeMapping:
        """How the rows of directories() must be changed."""
        return NodeMapping(self._first, self._options.uid, self._options.gid, self._options.umask)

    def _mapped(self, inode: Inode) -> Inode:
        """Returns the inode as the mount shows it, with the mount's owner, and its node id as its number."""
        if self._is_one_of_several:
            if inode.ino >> SNAPSHOT_SHIFT:
                message = f"inode {inode.ino} has too large a number to be mounted with others"
                raise CorruptIndexError(message, archive=self._archive.path)
            inode = inode._replace(ino=inode.ino + self._first)
        return self._owned(inode)

    def _owned(self, inode: Inode) -> Inode:
        """Returns the inode with the mount's uid, gid and umask."""
        if not self._owns:
            return inode
        options = self._options
        return inode._replace(
            mode=inode.mode & ~options.umask,
            uid=inode.uid if options.uid is None else options.uid,
            gid=inode.gid if options.gid is None else options.gid,
        )
