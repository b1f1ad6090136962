"""The FUSE server of a mount (native/fuse): listings, replies, and the loop of requests.

All classes may be used by any number of threads. Functions that wait release the GIL.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from gompfs._native.blocks import BlockReader, StoredSizes
from gompfs.model import Inode

SNAPSHOT_SHIFT: int
"""The bits of a node number from this one on are the number of its snapshot."""
MAX_SNAPSHOTS: int
"""Snapshot numbers are below this."""
FIRST_VIRTUAL: int
"""Node numbers of virtual entries begin here. Inode numbers are smaller."""

FIRST_TIME_LOG2: int
"""Class 0 of a histogram of `ServedArchive.request_times` has the times of up to 2 to this power nanoseconds."""

class ServedArchive:
    """One archive that a mount shows, and what the mount counts about it."""

    num_read_bytes: int
    """Number of bytes that read requests returned."""
    def __init__(self, reader: BlockReader) -> None:
        """Serves the files of `reader`."""

    def add_read_bytes(self, size: int) -> None:
        """Adds bytes that Python returned to `num_read_bytes`."""

    def request_times(self) -> dict[tuple[str, str], tuple[list[int], float]]:
        """Returns a histogram of the time that requests took, and the total seconds.

        Keys are ("read" or "other", "fast" or "slow"): slow requests needed Python. Class i of a histogram counts the
        requests that took at most 2 ** (FIRST_TIME_LOG2 + i) nanoseconds; the last class counts all longer ones.
        """

class ReaderTable:
    """The archives of all snapshots that a mount shows."""

    def insert(self, snapshot: int, archive: ServedArchive) -> None:
        """Adds the archive of a snapshot, and makes it the current one."""

    def open_files_below(self, size: int) -> None:
        """Lets FuseServer open known files of less than `size` bytes without a file handle; 0 for none."""

    def erase(self, snapshot: int) -> None:
        """Removes a snapshot's reader. Its nodes are unknown from then on."""

class Listing:
    """The entries of one directory, in the form of replies."""

    def __init__(
        self,
        node: int,
        children: Iterable[tuple[bytes, Inode]],
        cache_seconds: int,
        stored_sizes: StoredSizes = ...,
    ) -> None:
        """Makes a listing. The kernel may cache its entries for `cache_seconds`; if that is 0, it gets no attributes.

        `stored_sizes` is indexed by node.
        """

    def pack(self, position: int, capacity: int) -> bytes:
        """Returns the entries from `position` on as a READDIRPLUS reply of at most `capacity` bytes."""

class NodeMapping:
    """How a mount changes the inodes of an archive."""

    def __init__(self, first_node: int = 0, uid: int | None = None, gid: int | None = None, umask: int = 0) -> None:
        """Adds `first_node` to inode numbers. `uid` and `gid` replace the owners, unless they are None."""

class ListingTable:
    """The cache of directory listings of a mount, and requests to list directories ahead."""

    num_bytes: int
    """Memory that the cached listings take."""
    def __init__(self, max_bytes: int) -> None:
        """Makes a table of up to `max_bytes` bytes. The oldest listings are dropped first."""

    def __contains__(self, node: int) -> bool:
        """Returns whether the listing of a directory is cached."""

    def use(self, node: int) -> Listing | None:
        """Returns the listing of a directory, or None if it is not cached."""

    def insert(self, node: int, listing: Listing) -> None:
        """Caches the listing of a directory."""

    def insert_columns(
        self,
        columns: Sequence[bytes],
        first: int,
        end: int,
        mapping: NodeMapping,
        cache_seconds: int,
        num_following: int,
        stored_sizes: StoredSizes = ...,
    ) -> None:
        """Caches the listings of the directories with inode numbers `first` to `end` - 1, from rows of the index.

        The first use of one of these listings requests the directories from `end` on, with `num_following` entries; 0
        for no request. Raises ValueError if the rows are inconsistent (see native/fuse/index_columns.h).
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
        """Sets the nodes that have extended attributes, sorted; no other entry of the archive has any."""

class Handlers(Protocol):
    """Answers the requests that C++ cannot answer. Any number of threads may call the methods.

    A method that raises gives an error reply: see `failed`. A node is described by its inode, by the number of seconds
    that the kernel may cache the inode, and by its stored size, or None if it has no holes.
    """

    def lookup(self, parent: int, name: bytes, uid: int, /) -> tuple[Inode | None, int, int | None]:
        """Returns the entry of a directory that has a name, for a user. None as inode: there is no such name."""

    def getattr(self, node: int, /) -> tuple[Inode | None, int, int | None]:
        """Returns the node, which exists."""

    def readlink(self, node: int, /) -> bytes:
        """Returns the target of a symlink."""

    def readdir(self, node: int, /) -> Listing:
        """Returns the entries of a directory."""

    def statfs(self, node: int, /) -> tuple[int, int, int, int, int]:
        """Returns the size of the file system: blocks, inodes; best size of a read, of a name; size of a block."""

    def getxattr(self, node: int, name: bytes, /) -> bytes:
        """Returns the value of an extended attribute."""

    def listxattr(self, node: int, uid: int, /) -> tuple[list[bytes], bool]:
        """Returns the names of extended attributes that a user may see, and whether all users see the same ones."""

    def open(self, node: int, /) -> tuple[bool, int | None]:
        """Opens a file. Returns whether `release` must be called for it, and the number of its backing file or None."""

    def release(self, node: int, /) -> None:
        """Closes a file."""

    def read(self, node: int, file_offset: int, size: int, /) -> Sequence[bytes | memoryview]:
        """Returns up to `size` bytes of a file, in pieces."""

    def seek(self, node: int, file_offset: int, whence: int, /) -> int:
        """Returns the offset of the next data or hole. `whence` is that of lseek(2)."""

    def lasts(self, node: int, /) -> bool:
        """Returns whether replies about a node stay true for the life of the mount, so that they can be cached."""

    def failed(self, operation: str, error: BaseException, answer_again: Callable[[], None], /) -> int | None:
        """Called when the method for a request has raised. Returns the errno to reply with.

        Returns None if the request is to wait: `answer_again` must then be called once, when it can be answered.
        """

    def refused(self, number: int, /) -> None:
        """Called with an errno if the kernel did not take a reply."""

class FuseServer:
    """Answers the requests from a FUSE device, without the interpreter where the tables suffice."""

    def __init__(
        self, device: int, readers: ReaderTable, listings: ListingTable, replies: ReplyCache, handlers: Handlers
    ) -> None:
        """`readers` must have a current reader. Calls `handlers` for requests that the tables cannot answer."""

    def run(self) -> int:
        """Answers requests until the mount is gone. Any number of threads may run this at once.

        Returns 0 at the end of the mount, or the errno if the device cannot be read.
        """

    def close(self) -> None:
        """Leaves waiting requests unanswered."""

def answer_init(device: int, wants_passthrough: bool, wants_acls: bool) -> tuple[bool, bool]:
    """Answers the first request of the kernel, in which both sides agree on features.

    Returns whether the kernel supports passthrough, and whether it applies the POSIX ACLs of files; False if it is not
    wanted. Raises OSError if the device cannot be used, and RuntimeError if the kernel's version of the protocol is not
    supported.
    """

def mount_read_only(source: bytes, mountpoint: bytes, file_system: bytes, data: bytes, noexec: bool) -> int:
    """Calls mount(2), read-only, without devices and set-user-ID programs. Returns 0 or an errno."""

def unmount(mountpoint: bytes, lazy: bool, force: bool) -> int:
    """Calls umount2(2). `lazy` detaches a mount in use, `force` makes its requests fail. Returns 0 or an errno."""

def register_backing_file(device: int, descriptor: int) -> int:
    """Registers an open file as a backing file of a mount, and returns its number.

    Raises OSError if the kernel does not support or permit passthrough.
    """

def unregister_backing_file(device: int, backing_id: int) -> None:
    """Lets the kernel close a backing file once no open file of the mount uses it. Raises OSError."""
