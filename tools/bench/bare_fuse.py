"""Mounts one file whose bytes are in memory, to measure the speed of FUSE without reading and decoding.

It uses the request loop of gompfs. Run it as `python -m tools.bench.bare_fuse NAME SIZE MOUNTPOINT`. The command
returns when the mount answers; a daemon serves the mount until it is unmounted.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from typing import cast

from gompfs._native.blocks import BlockReader, StoredSizes
from gompfs._native.fuse import ReaderTable
from gompfs.model import ROOT_INO, Inode
from gompfs.mount.fuse.protocol import CACHE_SECONDS
from gompfs.mount.fuse.session import Session
from gompfs.mount.system.kernel_tuning import set_read_ahead
from gompfs.mount.tree.snapshots import Snapshots
from gompfs.options import MountOptions

_FILE_INO = 2
_CONTENT = 1 << 28  # bytes in memory, the default cache size of a mount; the file repeats them
_PIECE = 1 << 16  # the default block size of an archive


class MemoryOperations:
    """The part of Snapshots and Operations (gompfs.mount) that a request loop uses, for one file in memory."""

    def __init__(self, name: bytes, size: int) -> None:
        root = Inode(ROOT_INO, stat.S_IFDIR | 0o755, 0, 0, 0, 0, 2)
        file = Inode(_FILE_INO, stat.S_IFREG | 0o644, 0, 0, size, 0, 1)
        self._name = name
        self.owner = (None, None, 0)
        self.only = None  # see Snapshots.only
        self._inodes = {root.ino: root, file.ino: file}
        content = memoryview(bytearray(os.urandom(1 << 20) * (_CONTENT >> 20))).toreadonly()
        self.reader = BlockReader(_CONTENT // _PIECE, _PIECE, _CONTENT // _PIECE)
        for start in range(0, _CONTENT, _PIECE):
            self.reader.insert([start // _PIECE], [content[start : start + _PIECE]])
        extents = [(start, 0, min(_CONTENT, size - start)) for start in range(0, size, _CONTENT)]
        self.reader.add_file(file.ino, size, extents)
        self.readers = ReaderTable()
        self.readers.insert(0, self.reader)

    def of(self, _node: int) -> MemoryOperations:
        """See Snapshots.of."""
        return self

    def has_xattrs(self) -> bool:
        """See Snapshots.has_xattrs."""
        return False

    def directories(self, _first: int, _max_entries: int) -> None:
        """See Operations.directories."""

    def cache_seconds(self, _node: int) -> int:
        """See Operations.cache_seconds."""
        return CACHE_SECONDS

    knows_stored_sizes = True  # see Operations.knows_stored_sizes

    def stored_size(self, inode: Inode) -> int:
        """See Operations.stored_size."""
        return inode.size

    def stored_sizes(self) -> StoredSizes:
        """See Archive.stored_sizes; the file has no holes."""
        return StoredSizes()

    def inode(self, node: int) -> Inode:
        """See Operations.inode."""
        return self._inodes[node]

    def lookup(self, _node: int, name: bytes) -> Inode | None:
        """See Operations.lookup."""
        return self._inodes[_FILE_INO] if name == self._name else None

    def children(self, node: int) -> list[tuple[bytes, Inode]]:
        """See Operations.children."""
        return [(self._name, self._inodes[_FILE_INO])] if node == ROOT_INO else []

    def xattrs(self, _node: int) -> dict[bytes, bytes]:
        """See Operations.xattrs."""
        return {}

    def statfs(self) -> tuple[int, ...]:
        """See Operations.statfs."""
        return 0, 0, 0, len(self._inodes), 0, 4096, 255, 4096, 0


def serve(name: str, size: int, mountpoint: str, on_ready: Callable[[], None]) -> None:
    """Mount, and answer requests until it is unmounted."""
    options = MountOptions()
    session = Session(mountpoint, "memory", options)

    def ready() -> None:
        set_read_ahead(mountpoint, options.readahead)
        on_ready()

    try:
        session.serve(cast(Snapshots, MemoryOperations(os.fsencode(name), size)), ready)
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
