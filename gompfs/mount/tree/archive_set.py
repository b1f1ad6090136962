"""Several archives in one mount: merged into one tree, or each in a directory of its own.

The archives are numbered from 1. The upper bits of a node id hold the number of the archive, in the same way as they
hold the number of a snapshot (see ReaderTable in native/fuse). Requests for files, and for directories that
only one archive has, go to the Operations of that archive. Merged directories have node ids of their own, whose upper
bits are 0. The statistics of each archive are in stats/NAME, where NAME is the file name of the archive without its
extension.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType

from gompfs._native.blocks import StoredSizes
from gompfs._native.fuse import FIRST_VIRTUAL, MAX_SNAPSHOTS, SNAPSHOT_SHIFT, NodeMapping, ReaderTable
from gompfs.archive import Archive
from gompfs.errors import OptionError, display_path
from gompfs.light_types import TYPE_CHECKING
from gompfs.model import ROOT_INO, Inode
from gompfs.mount.tree.content import CACHE_SECONDS, Content, FileSystemSize, NodeOperations
from gompfs.mount.tree.operations import Operations
from gompfs.mount.tree.snapshots import warn
from gompfs.mount.tree.tree import PRIVATE, STATS
from gompfs.options import MountOptions

if TYPE_CHECKING:
    from typing import Self

_PRIVATE_NODE = FIRST_VIRTUAL
_STATS_NODE = FIRST_VIRTUAL + 1
_Layers = list[tuple[Operations, Inode]]
"""The directories that are merged into one, each with its archive. The attributes of the first are shown."""


class ArchiveSet(Content):
    """Maps node ids to the operations of several archives. Thread-safe."""

    def __init__(self, paths: Sequence[str], open_archive: Callable[[str], Archive], options: MountOptions) -> None:
        """Open the archives, and merge them as a union or give each one a directory.

        In a union, the entries of a later archive hide those of the earlier ones.

        Raises OptionError if two archives have the same name, if there are too many, or with `follow`; and what
        `open_archive` raises.
        """
        names = [os.fsencode(os.path.splitext(os.path.basename(path))[0]) for path in paths]
        if clashes := {name for name in names if names.count(name) > 1}:
            raise OptionError(f"two archives have the name {display_path(min(clashes))!r}")
        if len(paths) >= MAX_SNAPSHOTS:
            raise OptionError(f"a mount shows at most {MAX_SNAPSHOTS - 1} archives")
        if options.follow:
            raise OptionError("follow works only with one archive")
        self.readers = ReaderTable()
        self._operations: dict[int, Operations] = {}
        with ExitStack() as stack:
            for number, path in enumerate(paths, 1):
                archive = stack.enter_context(open_archive(path))
                self._operations[number] = Operations(archive, options, number)
                stack.callback(self._operations[number].virtual_content.close)
                warn(archive)
                self.readers.insert(number, self._operations[number].served)
                archive.blocks.start_reading_ahead()
            self._merged = _Directories(dict(zip(names, self._operations.values(), strict=True)), options)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def only(self) -> None:
        """Always None: there are several archives (see Content.only)."""

    def of(self, node: int) -> NodeOperations:
        """Returns the operations of the archive that a node belongs to, or of the merged directories."""
        operations = self._operations.get(node >> SNAPSHOT_SHIFT & MAX_SNAPSHOTS - 1)
        return self._merged if operations is None else operations

    def statistics(self) -> list[Inode]:
        """See Content.statistics."""
        return [operations.statistics() for operations in self._operations.values()]

    def has_xattrs(self) -> bool:
        """Returns whether any entry of any archive has extended attributes."""
        return any(operations.has_xattrs() for operations in self._operations.values())

    def has_acls(self) -> bool:
        """Returns whether any entry of any archive has an access ACL."""
        return any(operations.has_acls() for operations in self._operations.values())

    def follow(self) -> None:
        """Does nothing: a mount of several archives does not follow changes (see Content.follow)."""


class _Directories(NodeOperations):
    """Operations on the root, the `stats` directories, and the directories that are merged from several archives."""

    def __init__(self, archives: dict[bytes, Operations], options: MountOptions) -> None:
        self._archives = archives
        self._options = options
        roots = {name: operations.root() for name, operations in archives.items()}
        self._layers: dict[int, _Layers] = {}
        self._numbers: dict[tuple[int, ...], int] = {}
        self._unused_numbers = itertools.count(ROOT_INO + 1)
        self._fixed: dict[int, dict[bytes, Inode]] = {}
        last = list(roots.values())[-1]._replace(ino=ROOT_INO, nlink=1)
        if options.several == "union":
            self._layers[ROOT_INO] = [(archives[name], roots[name]) for name in reversed(roots)]
            self._inodes = {ROOT_INO: last}
        else:
            self._fixed[ROOT_INO] = roots
            self._inodes = {ROOT_INO: last._replace(mode=stat.S_IFDIR | 0o555)}
        self._beside_root: dict[bytes, Inode] = {}
        if options.stats != "off":
            self._add_statistics(last._replace(mode=stat.S_IFDIR | 0o555))

    def _add_statistics(self, inode: Inode) -> None:
        private, statistics = inode._replace(ino=_PRIVATE_NODE), inode._replace(ino=_STATS_NODE)
        self._inodes |= {_PRIVATE_NODE: private, _STATS_NODE: statistics}
        self._fixed[_PRIVATE_NODE] = {STATS: statistics}
        self._fixed[_STATS_NODE] = {name: operations.statistics() for name, operations in self._archives.items()}
        shown = self.lookup(ROOT_INO, STATS)
        self._beside_root = {PRIVATE: private} if shown is not None else {PRIVATE: private, STATS: statistics}

    def inode(self, node: int) -> Inode:
        """See NodeOperations.inode."""
        inode = self._inodes.get(node)
        if inode is not None:
            return inode
        return _merged(node, self._layers_of(node))

    def lookup(self, parent: int, name: bytes, _uid: int = 0) -> Inode | None:
        """See NodeOperations.lookup. The user id is not needed: no entry here is a statistic."""
        if parent == ROOT_INO and name in self._beside_root:
            return self._beside_root[name]
        if parent in self._fixed:
            return self._fixed[parent].get(name)
        found = ((operations, operations.lookup(inode.ino, name)) for operations, inode in self._layers_of(parent))
        return self._merge((operations, inode) for operations, inode in found if inode is not None)

    def children(self, node: int) -> Sequence[tuple[bytes, Inode]]:
        """See NodeOperations.children."""
        entries = dict(self._fixed[node]) if node in self._fixed else self._merged_children(node)
        if node == ROOT_INO and self._options.stats == "visible":
            entries |= self._beside_root
        return sorted(entries.items())

    def _merged_children(self, node: int) -> dict[bytes, Inode]:
        found: dict[bytes, _Layers] = {}
        for operations, directory in self._layers_of(node):
            for name, inode in operations.children(directory.ino):
                found.setdefault(name, []).append((operations, inode))
        merged = ((name, self._merge(iter(layers))) for name, layers in found.items())
        return {name: inode for name, inode in merged if inode is not None}

    def _merge(self, found: Iterator[tuple[Operations, Inode]]) -> Inode | None:
        """Merges the entries that several archives have under one name, in the order of `found`.

        The first entry wins. If it is a directory, the following directories are merged into it, up to the first entry
        that is not a directory. Returns None if there are no entries.
        """
        first = next(found, None)
        if first is None or not stat.S_ISDIR(first[1].mode):
            return None if first is None else first[1]
        layers = [first]
        for layer in found:
            if not stat.S_ISDIR(layer[1].mode):
                break
            layers.append(layer)
        if len(layers) == 1:
            return first[1]
        # A merged directory needs a node id of its own: listings are cached by node id, and the id of one of the
        # directories stands for the entries of that directory only.
        key = tuple(inode.ino for _, inode in layers)
        node = self._numbers.setdefault(key, next(self._unused_numbers))
        self._layers[node] = layers
        return _merged(node, layers)

    def _layers_of(self, node: int) -> _Layers:
        layers = self._layers.get(node)
        if layers is None:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return layers

    @property
    def mapping(self) -> NodeMapping:
        """Changes nothing: the inodes here are already in the form that the mount shows."""
        return NodeMapping()

    def directories(self, _first: int, _max_entries: int) -> None:
        """Always None: no index holds the merged directories (see NodeOperations.directories)."""

    def cache_seconds(self, _node: int) -> int:
        """See NodeOperations.cache_seconds."""
        return CACHE_SECONDS

    def read(self, _node: int, _file_offset: int, _size: int) -> Sequence[bytes | memoryview]:
        """Raises IsADirectoryError: all nodes here are directories."""
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))

    def stored_size(self, inode: Inode) -> int:
        """See NodeOperations.stored_size: directories have no holes."""
        return inode.size

    knows_stored_sizes = True

    def stored_sizes(self) -> StoredSizes:
        """Returns an empty table: there are no regular files here."""
        return StoredSizes()

    def seek(self, _node: int, _file_offset: int, _whence: int) -> int:
        """Raises IsADirectoryError: all nodes here are directories."""
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))

    def archive_inode(self, _node: int) -> None:
        """Always None: no node here belongs to one archive (see Operations.archive_inode)."""

    def readlink(self, _node: int) -> bytes:
        """Raises OSError (EINVAL): no node here is a symlink."""
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    def xattrs(self, node: int) -> dict[bytes, bytes]:
        """See NodeOperations.xattrs. A merged directory has those of its first directory."""
        if node not in self._layers:
            return {}
        operations, inode = self._layers[node][0]
        return operations.xattrs(inode.ino)

    def statfs(self) -> FileSystemSize:
        """Returns the sums over all archives."""
        sizes = [operations.statfs() for operations in self._archives.values()]
        num_blocks = sum(size.num_blocks for size in sizes)
        num_inodes = sum(size.num_inodes for size in sizes)
        return sizes[0]._replace(num_blocks=num_blocks, num_inodes=num_inodes)

    def add_read_bytes(self, _size: int) -> None:
        """Does nothing: no file here can be read (see Operations.add_read_bytes)."""


def _merged(node: int, layers: _Layers) -> Inode:
    # The link count of the first directory is wrong for the merged one. A count of 1 means that it is unknown.
    return layers[0][1]._replace(ino=node, nlink=1)
