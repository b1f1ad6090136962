"""The operations on the nodes of one archive."""

from __future__ import annotations

import errno
import os
import stat
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from gompfs._native.blocks import StoredSizes
from gompfs._native.fuse import NodeMapping, ServedArchive
from gompfs.archive import Archive
from gompfs.errors import GompfsError, display_path
from gompfs.model import ROOT_INO, Extent, Inode, PackedRows
from gompfs.mount.tree.content import CACHE_SECONDS, ArchiveOperations, FileSystemSize
from gompfs.mount.tree.tree import MAX_NAME_SIZE, Tree
from gompfs.mount.virtual_content import VirtualContent
from gompfs.options import MountOptions

STATFS_BLOCK_SIZE = 4096
_MAX_STATFS_BLOCKS = (1 << 64) - 1


class Operations(ArchiveOperations):
    """Operations on the nodes of one archive. Thread-safe."""

    def __init__(self, archive: Archive, options: MountOptions, snapshot: int = 0) -> None:
        """`snapshot` is stored in the upper bits of all node ids except the root's."""
        self.archive = archive
        self.served = ServedArchive(archive.blocks.reader)
        self._follows = options.follow
        self.virtual_content = VirtualContent(archive, self.served, options.api, lambda node: self._tree.ino_of(node))
        self._tree = Tree(archive, self.virtual_content, options, snapshot)

    def root(self) -> Inode:
        """See Tree.root."""
        return self._tree.root()

    def statistics(self) -> Inode:
        """See Tree.statistics."""
        return self._tree.statistics()

    def inode(self, node: int) -> Inode:
        """See NodeOperations.inode."""
        return self._tree.inode(node)

    def lookup(self, parent: int, name: bytes, uid: int = 0) -> Inode | None:
        """See NodeOperations.lookup."""
        return self._tree.lookup(parent, name, uid)

    def children(self, node: int) -> Sequence[tuple[bytes, Inode]]:
        """See NodeOperations.children."""
        return self._tree.children(node)

    def directories(self, first: int, max_entries: int) -> PackedRows | None:
        """See NodeOperations.directories."""
        return self._tree.directories(first, max_entries)

    @property
    def mapping(self) -> NodeMapping:
        """See NodeOperations.mapping."""
        return self._tree.mapping

    def has_xattrs(self) -> bool:
        """Returns whether any entry of the archive has extended attributes."""
        return self.archive.has_xattrs()

    def has_acls(self) -> bool:
        """Returns whether any entry of the archive has an access ACL."""
        return self.archive.index.has_acls()

    def stored_sizes(self) -> StoredSizes:
        """See NodeOperations.stored_sizes."""
        return self.archive.stored_sizes()

    def add_read_bytes(self, size: int) -> None:
        """See NodeOperations.add_read_bytes."""
        self.served.add_read_bytes(size)

    def cache_seconds(self, node: int) -> int:
        """Returns how long the kernel may cache the attributes of a node, and the names in a directory, in seconds.

        0 for virtual files, whose size changes when their content is computed; 1 for the root with `follow`, since
        another archive may be shown.
        """
        if self._tree.virtual(node) is not None:
            return 0
        return 1 if node == ROOT_INO and self._follows else CACHE_SECONDS

    def read(self, node: int, file_offset: int, size: int) -> Sequence[bytes | memoryview]:
        """Returns up to `size` bytes of a file, as views of decoded blocks.

        Raises NotReadyError for a virtual file that is still being computed, and what Archive.read raises.
        """
        virtual = self._tree.virtual(node)
        if virtual is not None and virtual.file is not None:
            return (virtual.file.read(file_offset, size),)
        ino = self._tree.ino(node)
        try:
            return self.archive.read_pieces(ino, file_offset, size)
        except GompfsError as error:
            error.path = error.path or display_path(self.archive.path_of(ino))
            raise

    def stored_size(self, inode: Inode) -> int:
        """Returns how many bytes of a node are not in holes. `inode` holds the node's attributes."""
        if not stat.S_ISREG(inode.mode) or self._tree.virtual(inode.ino) is not None:
            return inode.size
        return self.archive.stored_size(inode._replace(ino=self._tree.ino(inode.ino)))

    @property
    def knows_stored_sizes(self) -> bool:
        """Whether `stored_sizes` returns at once."""
        return self.archive.knows_stored_sizes

    def seek(self, node: int, file_offset: int, whence: int) -> int:
        """Returns the offset of the next data or hole at or after `file_offset`. `whence` is that of lseek(2).

        Raises OSError as lseek(2): ENXIO if there is no data after `file_offset`, or if it is not inside the file.
        """
        size = self.inode(node).size
        is_virtual = self._tree.virtual(node) is not None
        extents = [Extent(0, 0, size)] if is_virtual else self.archive.extents(self._tree.ino(node))
        return _seek(extents, size, file_offset, whence)

    def archive_inode(self, node: int) -> Inode | None:
        """Returns the inode of an archive's entry, or None for a virtual entry."""
        return self.archive.inode(self._tree.ino(node)) if self._tree.virtual(node) is None else None

    def readlink(self, node: int) -> bytes:
        """Returns the target of a symlink. Raises OSError (EINVAL) for anything else."""
        inode = self.inode(node)
        if not stat.S_ISLNK(inode.mode) or inode.symlink_target is None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return inode.symlink_target

    def xattrs(self, node: int) -> dict[bytes, bytes]:
        """See NodeOperations.xattrs."""
        return self._tree.xattrs(node)

    def statfs(self) -> FileSystemSize:
        """See NodeOperations.statfs."""
        num_inodes, size = self.archive.index.totals()
        blocks = min(-(-size // STATFS_BLOCK_SIZE), _MAX_STATFS_BLOCKS)
        return FileSystemSize(blocks, num_inodes, self.archive.block_size, MAX_NAME_SIZE, STATFS_BLOCK_SIZE)


def _seek(extents: Sequence[Extent], size: int, file_offset: int, whence: int) -> int:
    """Returns the offset of the next data or hole in a file of `size` bytes. The end of the file counts as a hole.

    Raises OSError: ENXIO if there is none, EINVAL for any other `whence`.
    """
    if whence not in (os.SEEK_DATA, os.SEEK_HOLE):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    index = bisect_right(extents, file_offset, key=lambda extent: extent.file_offset)
    if index > 0 and extents[index - 1].file_offset + extents[index - 1].size > file_offset:
        index -= 1
    found = file_offset
    if whence == os.SEEK_HOLE:
        while index < len(extents) and extents[index].file_offset <= found:
            found = extents[index].file_offset + extents[index].size
            index += 1
        found = min(found, size)
    elif index == len(extents):
        found = size
    else:
        found = max(found, extents[index].file_offset)
    if not 0 <= file_offset < size or (whence == os.SEEK_DATA and found >= size):
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
    return found


def visible_xattrs(names: Iterable[bytes], uid: int) -> list[bytes]:
    """Returns the names of extended attributes that a user may see.

    As in other file systems, only root sees trusted.*.
    """
    return [name for name in names if uid == 0 or not name.startswith(b"trusted.")]
