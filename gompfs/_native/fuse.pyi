"""The FUSE server of a mount (native/fuse): listings, replies, and the loop of requests.

All classes may be used by any number of threads. Functions that wait release the interpreter's lock.
"""

from collections.abc import Callable, Iterable, Sequence

from gompfs._native.blocks import BlockReader, StoredSizes
from gompfs.model import Inode

SNAPSHOT_SHIFT: int
"""The bits of a node number from this one on are the number of its snapshot."""
MAX_SNAPSHOTS: int
"""Snapshot numbers are below this."""

class ReaderTable:
    """The readers of all snapshots that a mount shows."""

    def insert(self, snapshot: int, reader: BlockReader) -> None:
        """Adds a snapshot's reader, and makes it the current one."""

    def erase(self, snapshot: int) -> None:
        """Removes a snapshot's reader. Its nodes are unknown from then on."""

class ListingTable:
    """The cache of directory listings of a mount, and requests to list directories ahead."""

    num_bytes: int
    """Memory that the cached listings take."""
    def __init__(self, max_bytes: int) -> None:
        """Makes a table of up to `max_bytes` bytes. The oldest listings are dropped first."""

    def __contains__(self, node: int) -> bool:
        """Returns whether the listing of a directory is cached."""

    def entries(self, node: int, position: int, capacity: int) -> bytes | None:
        """Returns the entries of a directory from `position` on as READDIRPLUS replies, in at most `capacity` bytes.

        Returns None if the listing is not cached.
        """

    def insert(
        self,
        node: int,
        children: Iterable[tuple[bytes, Inode]],
        cache_seconds: int,
        stored_sizes: StoredSizes = ...,
    ) -> None:
        """Caches the listing of a directory. The kernel may cache its entries for `cache_seconds`.

        `stored_sizes` is indexed by inode number.
        """

    def insert_columns(
        self,
        columns: Sequence[bytes],
        first: int,
        end: int,
        mapping: tuple[int, int | None, int | None, int],
        cache_seconds: int,
        num_following: int,
        stored_sizes: StoredSizes = ...,
    ) -> None:
        """Caches the listings of the directories with inode numbers `first` to `end` - 1, from rows of the index.

        `mapping` is the number to add to inode numbers, the user and the group to show (or None), and a umask. The
        first use of one of these listings requests the directories from `end` on, with `num_following` entries; 0 for
        no request. Raises ValueError if the rows are inconsistent (see native/fuse/index_columns.h).
        """

    def want(self, node: int, num_entries: int) -> None:
        """Requests that a directory and those after it in the index are listed ahead, up to `num_entries` entries."""

    def wait_wanted(self) -> tuple[int, int] | None:
        """Waits for a request to list ahead, as node and number of entries. Returns None once the table is closed."""

    def close(self) -> None:
        """Ends all waits of `wait_wanted`."""

class ReplyCache:
    """Replies of the interpreter that stay true for the life of a mount, by request."""

    def __init__(self, max_bytes: int) -> None:
        """Makes a table of up to `max_bytes` bytes. When it is full, all replies are dropped."""

    def insert(self, request: bytes, error: int, content: bytes) -> None:
        """Caches a reply to the same request on the same node; `error` is 0 or a negative errno."""

    def set_nodes_with_xattrs(self, nodes: Sequence[int]) -> None:
        """Sets the nodes that have extended attributes, sorted; no other node has any."""

def pack_listing(
    node: int,
    children: Iterable[tuple[bytes, Inode]],
    cache_seconds: int,
    position: int,
    capacity: int,
    stored_sizes: StoredSizes = ...,
) -> bytes:
    """Returns the entries of a directory as `ListingTable.entries` does, without keeping them."""

def entry_reply(inode: Inode | None, cache_seconds: int, stored_size: int | None = None) -> bytes:
    """Returns the reply to LOOKUP; for None, one that lets the kernel cache that the name does not exist.

    Without `stored_size`, a file has no holes.
    """

def attributes_reply(inode: Inode, cache_seconds: int, stored_size: int | None = None) -> bytes:
    """Returns the reply to GETATTR. Without `stored_size`, a file has no holes."""

def answer_requests(
    device: int,
    readers: ReaderTable,
    listings: ListingTable,
    replies: ReplyCache,
    buffer_size: int,
    answer: Callable[[bytes], None],
) -> int:
    """Reads requests from a FUSE device and answers them until the mount is gone; calls `answer` for all others.

    `buffer_size` is the size of the largest request. Any number of threads may run this at once. Returns 0 at the end
    of the mount, or the errno if the device cannot be read.
    """

def mount_read_only(source: bytes, mountpoint: bytes, file_system: bytes, data: bytes) -> int:
    """Calls mount(2), read-only, without devices and set-user-ID programs. Returns 0 or an errno."""

def unmount(mountpoint: bytes, lazy: bool, force: bool) -> int:
    """Calls umount2(2). `lazy` detaches a mount in use, `force` makes its requests fail. Returns 0 or an errno."""
