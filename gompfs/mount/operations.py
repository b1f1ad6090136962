"""What the mount answers to each request, without any word of FUSE's own types."""

from __future__ import annotations

import errno
import os
import stat

from gompfs.archive import Archive
from gompfs.mount.tree import Node, Tree
from gompfs.options import MountOptions

STATFS_BLOCK_SIZE = 4096


class Operations:
    """Read-only requests on one archive; safe for any number of threads. Errors leave as exceptions."""

    def __init__(self, archive: Archive, options: MountOptions) -> None:
        self.archive = archive
        self._tree = Tree(archive, options)
        self.node = self._tree.node
        self.children = self._tree.children

    def open(self, path: bytes, flags: int) -> Node:
        """The file to read under its handle; a virtual one is computed now."""
        if flags & os.O_ACCMODE != os.O_RDONLY:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        node = self.node(path)
        if node.virtual is not None:
            node.virtual.content()
        return node

    def read_into(self, handle: int, file_offset: int, target: memoryview) -> int:
        """Fill `target` from a file that is open under `handle`; the bytes that there were."""
        virtual = self._tree.virtual_node(handle)
        if virtual is not None and virtual.virtual is not None:
            piece = memoryview(virtual.virtual.content())[file_offset : file_offset + len(target)]
            target[: len(piece)] = piece
            return len(piece)
        size = min(len(target), self.archive.inode(handle).size - file_offset)
        if size <= 0:
            return 0
        position = 0
        for part in self.archive.read_pieces(handle, file_offset, size):
            target[position : position + len(part)] = part
            position += len(part)
        return position

    def size(self, node: Node) -> int:
        """The size to show in bytes."""
        return node.inode.size if node.virtual is None else node.virtual.size

    def readlink(self, path: bytes) -> bytes:
        """The target of a symlink; EINVAL for anything else."""
        inode = self.node(path).inode
        if not stat.S_ISLNK(inode.mode) or inode.symlink_target is None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return inode.symlink_target

    def xattrs(self, path: bytes) -> dict[bytes, bytes]:
        """The extended attributes of an entry."""
        node = self.node(path)
        return {} if node.handle != node.inode.ino or node.virtual else self.archive.xattrs(node.handle)

    def statfs(self) -> dict[str, int]:
        """The figures of statvfs: the space that the files take uncompressed, all of it used."""
        num_inodes, size = self.archive.totals()
        return {
            "f_bsize": self.archive.block_size,
            "f_frsize": STATFS_BLOCK_SIZE,
            "f_blocks": -(-size // STATFS_BLOCK_SIZE),
            "f_files": num_inodes,
            "f_namemax": 255,
        }
