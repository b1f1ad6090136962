"""The C++ core of a mount (native/blocks and native/fuse): blocks, listings, replies, and the loop of requests.

All classes may be used by any number of threads. Functions that wait or decode release the interpreter's lock.
"""

from collections.abc import Callable, Iterable, Sequence

from typing_extensions import Buffer

from gompfs._native.codec import DecodeWork
from gompfs.model import Inode

FIRST_TIME_LOG2: int
"""Class 0 of a histogram of `BlockReader.request_times` has the times of up to 2 to this power nanoseconds."""
SNAPSHOT_SHIFT: int
"""The bits of a node number from this one on are the number of its snapshot."""
MAX_SNAPSHOTS: int
"""Snapshot numbers are below this."""

class BlockReader:
    """The cache of decoded blocks of one archive, and reads of its files from that cache."""

    num_hits: int
    """Number of blocks that reads found in the cache."""
    num_misses: int
    """Number of blocks that reads decoded in C++."""
    num_read_bytes: int
    """Number of bytes that reads returned."""
    def __init__(self, num_blocks: int, block_size: int, capacity: int) -> None:
        """Makes an empty cache of up to `capacity` blocks, for a stream of `num_blocks` blocks."""

    def __len__(self) -> int:
        """Returns the number of cached blocks."""

    def __contains__(self, number: int) -> bool:
        """Returns whether a block is cached."""

    def read_from(
        self, descriptor: int, segments: Sequence[tuple[int, int, Buffer, Buffer]], verify: bool, work: DecodeWork
    ) -> None:
        """Lets reads decode missing blocks from an open file, which is closed with the reader.

        Each segment is its first block, its uncompressed size, and columns of archive_offset (u64) and
        compressed_size (u32). `verify` checks the decoded bytes. `work` counts what is decoded.
        """

    def find_or_load(self, first: int, end: int) -> list[memoryview]:
        """Returns the blocks `first` to `end` - 1, up to the first that is not cached and cannot be decoded here."""

    def load(self, numbers: Sequence[int], num_threads: int) -> None:
        """Decodes blocks that are neither cached nor claimed. Numbers must ascend. Does nothing without `read_from`."""

    def decode_into(self, stream_offset: int, out: Buffer, num_threads: int) -> bool:
        """Decodes a part of the stream into `out` without using the cache.

        Returns False, with undefined bytes in `out`, if a block is damaged or there is no file to read from.
        """

    def claim(self, number: int) -> bool:
        """Claims a block for decoding. Returns False if it is cached or another thread has claimed it.

        Every claim must end with `insert` or `give_up`.
        """

    def insert(self, numbers: Sequence[int], contents: Sequence[Buffer], num_threads: int = 1) -> None:
        """Copies decoded blocks into the cache, and ends their claims."""

    def give_up(self, number: int) -> None:
        """Ends the claim on a block that could not be decoded."""

    def wait(self, number: int) -> None:
        """Waits until no thread has a claim on a block. The block may be cached or not then."""

    def set_capacity(self, capacity: int) -> None:
        """Sets the number of blocks to cache, evicts blocks above it, and limits read-ahead accordingly."""

    def clear(self) -> None:
        """Drops all cached blocks; claims stay."""

    def note(self, node: int, stream_offset: int, size: int, max_ahead: int) -> int:
        """Reports a read of at least one byte to read-ahead.

        Returns the number of blocks to decode at once, of at most `max_ahead`: negative for a backward reader, 0 if no
        pattern was recognised.
        """

    def wait_ahead(self, max_ahead: int) -> list[int] | None:
        """Waits for blocks to decode ahead. Returns None once the reader is closed.

        `max_ahead` is the number of blocks that are worth decoding at once, for reads from now on.
        """

    def close(self) -> None:
        """Stops decoding, ahead and for reads. The file of `read_from` is closed when its last read ends."""

    def add_columns(self, columns: Sequence[bytes], end: int) -> None:
        """Adds the layouts of many files, from rows of the index in columns (see native/fuse/index_columns.h).

        Leaves out files with inode numbers from `end` on. Raises ValueError if the rows are inconsistent.
        """

    def knows(self, node: int) -> bool:
        """Returns whether the layout of a file was added."""

    def add_file(self, node: int, size: int, extents: Sequence[tuple[int, int, int]]) -> None:
        """Adds the layout of a file: extents as file_offset, stream_offset and size, sorted by file_offset."""

    def open_files_below(self, size: int) -> None:
        """Lets `answer_requests` open files of less than `size` bytes without a file handle; 0 for none."""

    def add_read_bytes(self, size: int) -> None:
        """Adds bytes that were read elsewhere to `num_read_bytes`."""

    def request_times(self) -> dict[tuple[str, str], tuple[list[int], float]]:
        """Returns a histogram of the time that requests took, and the total seconds.

        Keys are ("read" or "other", "cpp" or "python": who answered). Class i of a histogram counts the requests that
        took at most 2 ** (FIRST_TIME_LOG2 + i) nanoseconds; the last class counts all longer ones.
        """

class ReaderTable:
    """The readers of all snapshots that a mount shows."""

    def insert(self, snapshot: int, reader: BlockReader) -> None:
        """Adds a snapshot's reader, and makes it the current one."""

    def erase(self, snapshot: int) -> None:
        """Removes a snapshot's reader. Its nodes are unknown from then on."""

class StoredSizes:
    """How many bytes an archive stores of its files with holes; other files are stored whole."""

    def __init__(self) -> None:
        """Makes an empty table."""

    def __len__(self) -> int:
        """Returns the number of files with holes."""

    def add(self, files: Sequence[tuple[int, int]]) -> None:
        """Adds files as pairs of key and stored size. Keys must ascend, also from call to call, else ValueError."""

    def of(self, key: int, size: int) -> int:
        """Returns the stored size of a file of `size` bytes; never more than `size`."""

class ListingTable:
    """The directory listings that a mount keeps, and requests to list directories ahead."""

    num_bytes: int
    """Memory that the kept listings take."""
    def __init__(self, max_bytes: int) -> None:
        """Makes a table of up to `max_bytes` bytes. The oldest listings are dropped first."""

    def __contains__(self, node: int) -> bool:
        """Returns whether the listing of a directory is kept."""

    def entries(self, node: int, position: int, room: int) -> bytes | None:
        """Returns the entries of a directory from `position` on as READDIRPLUS replies, in at most `room` bytes.

        Returns None if the listing is not kept.
        """

    def insert(
        self,
        node: int,
        children: Iterable[tuple[bytes, Inode]],
        cache_seconds: int,
        stored_sizes: StoredSizes = ...,
    ) -> None:
        """Keeps the listing of a directory. The kernel may cache its entries for `cache_seconds`.

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
        """Keeps the listings of the directories with inode numbers `first` to `end` - 1, from rows of the index.

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

class KeptReplies:
    """Replies of the interpreter that stay true for the life of a mount, by request."""

    def __init__(self, max_bytes: int) -> None:
        """Makes a table of up to `max_bytes` bytes. When it is full, all replies are dropped."""

    def insert(self, request: bytes, error: int, content: bytes) -> None:
        """Keeps a reply to the same request on the same node; `error` is 0 or a negative errno."""

    def set_nodes_with_xattrs(self, nodes: Sequence[int]) -> None:
        """Sets the nodes that have extended attributes, sorted; no other node has any."""

def pack_listing(
    node: int,
    children: Iterable[tuple[bytes, Inode]],
    cache_seconds: int,
    position: int,
    room: int,
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
    replies: KeptReplies,
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
