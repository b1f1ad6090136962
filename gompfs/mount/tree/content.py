"""What a mount shows, as the connection to the kernel uses it: interfaces of Snapshots, ArchiveSet and Operations."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from gompfs._native.blocks import StoredSizes
from gompfs._native.fuse import NodeMapping, ReaderTable, ServedArchive
from gompfs.archive import Archive
from gompfs.light_types import TYPE_CHECKING, NamedTuple, Protocol
from gompfs.model import Inode, PackedRows
from gompfs.mount.virtual_content import VirtualContent

if TYPE_CHECKING:
    from typing import Self

CACHE_SECONDS = 3600
"""How long the kernel caches names, attributes, and the absence of names: an archive never changes."""


class FileSystemSize(NamedTuple):
    """The figures of statvfs(3). The file system is full: it has no free blocks and inodes."""

    num_blocks: int
    num_inodes: int
    io_size: int
    """The best size of a read, in bytes."""
    max_name_size: int
    block_size: int
    """The unit of `num_blocks`, in bytes."""


class NodeOperations(Protocol):
    """Read-only operations on nodes. Thread-safe.

    All raise OSError or a GompfsError for a node that does not exist or has the wrong type.
    """

    def inode(self, node: int) -> Inode:
        """Returns the attributes of a node. Raises NotReadyError for a virtual file that is being computed."""

    def lookup(self, parent: int, name: bytes, uid: int = 0) -> Inode | None:
        """Returns the entry of a directory that has a name, or None.

        Raises PermissionError for a statistic that the user `uid` may not read, so that it is not computed for its
        size; and NotReadyError for one that is being computed.
        """

    def children(self, node: int) -> Sequence[tuple[bytes, Inode]]:
        """Returns the entries of a directory in byte order of their names."""

    def directories(self, first: int, max_entries: int) -> PackedRows | None:
        """Returns directories as the index holds them, to which the caller must apply `mapping`.

        `first` is the node of the first directory. Returns None if the mount shows that directory differently.
        """

    @property
    def mapping(self) -> NodeMapping:
        """How the rows of `directories` must be changed."""

    def cache_seconds(self, node: int) -> int:
        """Returns how long the kernel may cache the attributes of a node, and the names in a directory, in seconds."""

    def stored_size(self, inode: Inode) -> int:
        """Returns how many bytes of a node are not in holes. `inode` holds the node's attributes."""

    @property
    def knows_stored_sizes(self) -> bool:
        """Whether `stored_sizes` returns at once."""

    def stored_sizes(self) -> StoredSizes:
        """Returns the stored sizes of all files that have holes, by inode number."""

    def read(self, node: int, file_offset: int, size: int) -> Sequence[bytes | memoryview]:
        """Returns up to `size` bytes of a file, in pieces. Raises NotReadyError for bytes that are being computed."""

    def add_read_bytes(self, size: int) -> None:
        """Count bytes that the kernel was given, for the metrics."""

    def seek(self, node: int, file_offset: int, whence: int) -> int:
        """Returns the offset of the next data or hole at or after `file_offset`. `whence` is that of lseek(2).

        Raises OSError as lseek(2): ENXIO if there is no data after `file_offset`, or if it is not inside the file.
        """

    def archive_inode(self, node: int) -> Inode | None:
        """Returns the inode of an archive's entry, or None for a node that belongs to no single archive."""

    def readlink(self, node: int) -> bytes:
        """Returns the target of a symlink."""

    def xattrs(self, node: int) -> dict[bytes, bytes]:
        """Returns the extended attributes of a node. An ACL gives no more rights than the mode that is shown."""

    def statfs(self) -> FileSystemSize:
        """Returns the size of all archives. The file system is as large as its files uncompressed, and full."""


class ArchiveOperations(NodeOperations, Protocol):
    """Operations on the nodes of one archive."""

    archive: Archive
    served: ServedArchive
    virtual_content: VirtualContent


class Content(Protocol):
    """Maps the nodes of a mount to operations. Thread-safe. A context manager that closes the archives."""

    readers: ReaderTable

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    @property
    def only(self) -> ArchiveOperations | None:
        """The operations on the archive, if there is one and every node is an inode number of it, or else None.

        This holds for as long as the mount lasts.
        """

    def of(self, node: int) -> NodeOperations:
        """Returns the operations on a node. Raises OSError (ESTALE) if its archive is no longer shown."""

    def statistics(self) -> Sequence[Inode]:
        """Returns the directory of statistics of each archive. Must not be called with stats=off."""

    def has_xattrs(self) -> bool:
        """Returns whether any entry has extended attributes, or may have some later."""

    def has_acls(self) -> bool:
        """Returns whether any entry has an access ACL, or may have one later."""

    def follow(self) -> None:
        """Start checking whether the archive's file changes, if the options ask for it."""
