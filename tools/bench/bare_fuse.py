"""Mounts one file whose bytes are in memory, to measure the speed of FUSE without reading and decoding.

It uses the request loop of gompfs. Run it as `python -m tools.bench.bare_fuse NAME SIZE MOUNTPOINT`. The command
returns when the mount answers; a daemon serves the mount until it is unmounted.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Sequence
from typing import Self

from gompfs._native.blocks import BlockReader, StoredSizes
from gompfs._native.fuse import NodeMapping, ReaderTable, ServedArchive
from gompfs.model import ROOT_INO, Inode
from gompfs.mount.fuse.session import Session
from gompfs.mount.system.kernel_tuning import set_read_ahead
from gompfs.mount.tree.content import CACHE_SECONDS, Content, FileSystemSize, NodeOperations
from gompfs.options import MountOptions

_FILE_INO = 2
_CONTENT = 1 << 28  # bytes in memory, the default cache size of a mount; the file repeats them
_PIECE = 1 << 16  # the default block size of an archive


class MemoryFile(Content, NodeOperations):
    """A root directory with one file in memory."""

    def __init__(self, name: bytes, size: int) -> None:
        root = Inode(ROOT_INO, stat.S_IFDIR | 0o755, 0, 0, 0, 0, 2)
        file = Inode(_FILE_INO, stat.S_IFREG | 0o644, 0, 0, size, 0, 1)
        self._name = name
        self._inodes = {root.ino: root, file.ino: file}
        content = memoryview(bytearray(os.urandom(1 << 20) * (_CONTENT >> 20))).toreadonly()
        reader = BlockReader(_CONTENT // _PIECE, _PIECE, _CONTENT // _PIECE)
        for start in range(0, _CONTENT, _PIECE):
            reader.insert([start // _PIECE], [content[start : start + _PIECE]])
        extents = [(start, 0, min(_CONTENT, size - start)) for start in range(0, size, _CONTENT)]
        reader.add_file(file.ino, size, extents)
        self.readers = ReaderTable()
        self.readers.insert(0, ServedArchive(reader))

    # Content

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    @property
    def only(self) -> None:
        """No archive."""

    def of(self, _node: int) -> MemoryFile:
        """See Content.of."""
        return self

    def has_xattrs(self) -> bool:
        """See Content.has_xattrs."""
        return False

    def follow(self) -> None:
        """See Content.follow."""

    # NodeOperations

    def inode(self, node: int) -> Inode:
        """See NodeOperations.inode."""
        return self._inodes[node]

    def lookup(self, parent: int, name: bytes, uid: int = 0) -> Inode | None:
        """See NodeOperations.lookup."""
        return self._inodes[_FILE_INO] if name == self._name else None

    def children(self, node: int) -> list[tuple[bytes, Inode]]:
        """See NodeOperations.children."""
        return [(self._name, self._inodes[_FILE_INO])] if node == ROOT_INO else []

    def directories(self, first: int, max_entries: int) -> None:
        """There is no index."""

    @property
    def mapping(self) -> NodeMapping:
        """See NodeOperations.mapping."""
        return NodeMapping()

    def cache_seconds(self, node: int) -> int:
        """See NodeOperations.cache_seconds."""
        return CACHE_SECONDS

    def stored_size(self, inode: Inode) -> int:
        """See NodeOperations.stored_size."""
        return inode.size

    @property
    def knows_stored_sizes(self) -> bool:
        """See NodeOperations.knows_stored_sizes."""
        return True

    def stored_sizes(self) -> StoredSizes:
        """The file has no holes."""
        return StoredSizes()

    def read(self, node: int, file_offset: int, size: int) -> Sequence[bytes]:
        """C++ answers all reads."""
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def add_read_bytes(self, size: int) -> None:
        """See NodeOperations.add_read_bytes."""

    def seek(self, node: int, file_offset: int, whence: int) -> int:
        """See NodeOperations.seek."""
        return file_offset

    def archive_inode(self, node: int) -> None:
        """See NodeOperations.archive_inode."""

    def readlink(self, node: int) -> bytes:
        """There are no symlinks."""
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    def xattrs(self, node: int) -> dict[bytes, bytes]:
        """See NodeOperations.xattrs."""
        return {}

    def statfs(self) -> FileSystemSize:
        """See NodeOperations.statfs."""
        return FileSystemSize(0, len(self._inodes), 4096, 255, 4096)


def serve(name: str, size: int, mountpoint: str, on_ready: Callable[[], None]) -> None:
    """Mount, and answer requests until it is unmounted."""
    options = MountOptions()
    session = Session(mountpoint, "memory", options)

    def ready() -> None:
        set_read_ahead(mountpoint, options.readahead)
        on_ready()

    try:
        session.serve(MemoryFile(os.fsencode(name), size), ready)
    finally:
        session.close()


def main() -> None:
    """Serve in a child process; return when it is ready, or exit with an error if it has failed."""
    name, size, mountpoint = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        os.setsid()
        serve(name, size, mountpoint, lambda: (os.write(writing, b"+"), os.close(writing))[1])
        return
    os.close(writing)
    if os.read(reading, 1) != b"+":
        sys.exit("the bare FUSE mount did not start")


if __name__ == "__main__":
    main()
