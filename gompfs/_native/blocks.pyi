"""Decoded blocks and the files in them (native/blocks).

All classes may be used by any number of threads. Functions that wait or decode release the GIL.
"""

from collections.abc import Callable, Sequence
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from gompfs._native.codec import DecodeWork
from gompfs._native.parts import PartHeads
from gompfs._native.sources import LoadedFiles
from gompfs.model import Inode

class FailureReason(Enum):
    """Why a file cannot be read."""

    NO_SUCH_FILE = ...
    IMPOSSIBLE_EXTENTS = ...
    OUTSIDE_STREAM = ...
    OUTSIDE_SEGMENT = ...
    DAMAGED_BLOCK = ...
    MISSING_BLOCK = ...

class ReadFailure:
    """Why a read returned nothing."""

    reason: FailureReason
    block: int
    """The number of the damaged block."""
    status: int
    """The BlockStatus of the damaged block."""

class BlockReader:
    """Reads of the files of one archive, through a cache of decoded blocks."""

    num_hits: int
    """Number of blocks that reads found in the cache."""
    num_misses: int
    """Number of blocks that were decoded for reads."""
    max_ahead: int
    """The number of blocks that are worth decoding ahead at once."""
    has_wanted: bool
    """Whether `wait_ahead` would return blocks at once."""
    def __init__(self, num_blocks: int, block_size: int, capacity: int) -> None:
        """Makes an empty cache of up to `capacity` blocks, for a stream of `num_blocks` blocks."""

    def __len__(self) -> int:
        """Returns the number of cached blocks."""

    def __contains__(self, number: int) -> bool:
        """Returns whether a block is cached."""

    def read_from(
        self,
        descriptor: int,
        segments: Sequence[tuple[int, Buffer, Buffer, Buffer]],
        heads: PartHeads,
        verify: bool,
        work: DecodeWork,
    ) -> None:
        """Lets reads decode missing blocks from an open file, which is closed with the reader.

        Each segment is its first block, and a value for each block in three columns: archive_offset (u64),
        compressed_size and uncompressed_size (u32). `heads` opens the heads of parts. `verify` checks the decoded
        bytes. `work` counts what is decoded.
        """

    def decode_with(
        self,
        decode: Callable[[list[int]], tuple[Sequence[Buffer], bytes]],
        num_threads: int,
        batch_bytes: int = 32 << 20,
    ) -> None:
        """Sets the function that decodes blocks, by ascending numbers, where `read_from` does not apply.

        It returns the content and the BlockStatus of each block; the content of a damaged block is not used. Large
        reads ask for `batch_bytes` of blocks at once. Up to `num_threads` threads copy the contents. Must be called
        before other threads use the reader, as `find_layouts_with` must.
        """

    def find_layouts_with(self, find: Callable[[int, bool], tuple[Sequence[bytes], int]]) -> None:
        """Sets the function that reads the layout of an unknown file from the index.

        It gets the inode number, and whether to read this file alone because the rows of another were impossible. It
        returns columns and their end as for `add_columns`.
        """

    def read(self, ino: int, file_offset: int, size: int) -> list[memoryview] | ReadFailure:
        """Returns up to `size` bytes of a file as views of decoded blocks, in order; fewer only at its end.

        Raises what the functions of `decode_with` and `find_layouts_with` raise, and OSError.
        """

    def decode_into(
        self, ino: int, file_offset: int, out: Buffer, num_threads: int, use_source: bool
    ) -> ReadFailure | None:
        """Decodes a part of a file into `out`, which holds zeros, without using the cache. Raises as `read` does.

        Without `use_source`, the function of `decode_with` decodes the blocks. If it fails, `out` has arbitrary bytes.
        """

    def extents(self, ino: int) -> list[tuple[int, int, int]] | ReadFailure:
        """Returns the extents of a file: file_offset, stream_offset and size of each, by file_offset."""

    def load(self, numbers: Sequence[int], num_threads: int, use_source: bool) -> None:
        """Decodes blocks that are neither cached nor claimed. Numbers must ascend. Other arguments as `decode_into`."""

    # Tests need these, to take the parts of several threads, of read-ahead and of the index: claim, insert, give_up,
    # wait, note, add_columns, add_file and knows.

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

    def note(self, ino: int, stream_offset: int, size: int) -> int:
        """Reports a read of at least one byte to read-ahead, as `read` does.

        Returns the number of blocks to decode at once, of at most `max_ahead`: negative for a backward reader, 0 if no
        pattern was recognised.
        """

    def wait_ahead(self) -> list[int] | None:
        """Waits for blocks to decode ahead. Returns None once the reader is closed."""

    def close(self) -> None:
        """Stops decoding, ahead and for reads. The file of `read_from` is closed when its last read ends."""

    def add_columns(self, columns: Sequence[bytes], end: int) -> None:
        """Adds the layouts of many files, from rows of the index in columns (see native/blocks/file_layouts.h).

        Leaves out files with inode numbers from `end` on. Raises ValueError if the rows are inconsistent.
        """

    def knows(self, ino: int) -> bool:
        """Returns whether the layout of a file was added."""

    def add_file(self, ino: int, size: int, extents: Sequence[tuple[int, int, int]]) -> None:
        """Adds the layout of a file: extents as file_offset, stream_offset and size, sorted by file_offset."""

class RangePlan:
    """Where the bytes of many ranges of files are, see native/blocks/range_plan.h. Columns are arrays of integers."""

    failure: ReadFailure | None
    """Why the plan cannot be used: a file cannot be found."""
    failed_range: int
    """The range of `failure`, or of the failure that `locate` has returned."""
    offsets: NDArray[np.int64]
    """The offset of each range in the output, and the size of the output."""
    blocks: NDArray[np.uint64]
    """The different blocks that have bytes of the ranges, ascending."""
    first_pieces: NDArray[np.uint32]
    """For each block, the number of its first piece; then the number of pieces."""
    begins: NDArray[np.uint32]
    """For each piece, its offset in its block."""
    sizes: NDArray[np.uint32]
    """For each piece, its size in bytes."""
    targets: NDArray[np.uint64]
    """For each piece, its offset in the output."""
    holes: NDArray[np.uint64]
    """The offsets of the holes in the output, then their sizes."""

    def __init__(
        self, reader: BlockReader, inos: NDArray[np.uint64], begins: NDArray[np.uint64], ends: NDArray[np.uint64]
    ) -> None:
        """Finds files by inode number. Bytes of ranges that are after the end of a file do not exist.

        Raises what the function of `find_layouts_with` raises, and ValueError if the output would be too large.
        """

    def locate(self, memory: int) -> ReadFailure | None:
        """Finds the pieces. They take memory in proportion to the output: allocate the output first.

        Raises MemoryError if they need more than `memory` bytes. Then it may be called again.
        """

    def overrun_block(self, uncompressed_sizes: NDArray[np.uint32]) -> int | None:
        """Returns the first block with a piece that ends after the end of the block, or None.

        Then an extent crosses the end of a segment. `uncompressed_sizes` has a value for each block of the stream.
        """

    def range_of(self, block: int) -> int:
        """Returns the first range that has bytes of a block."""

    def decode(self, reader: BlockReader, out: Buffer, num_threads: int, use_source: bool) -> ReadFailure | None:
        """Decodes all ranges into `out`, each block once, without using the cache. Raises OSError.

        `use_source` as in `BlockReader.decode_into`. If it fails, `out` has arbitrary bytes.
        """

class SliceColumns:
    """The arrays that kernels need to read some blocks of a plan, see native/blocks/slice_columns.h.

    Blocks that the device decodes come first, grouped by codec; then stored and damaged ones.
    """

    bounds: list[tuple[int, int]]
    """Where each column begins and ends in the memory that `write` fills: tasks (see gompfs.gpu.batch.describe); of
    each block, the address of its content (u64), BlockStatus (u8), size (u32) and checksum (u64); of each piece, the
    block, begin and size (u32), and the offset in the output (u64)."""
    size: int
    """The number of bytes of all columns."""
    content_size: int
    """The number of bytes of memory for the contents of the blocks that the device decodes."""
    num_decoded: list[int]
    """How many blocks of each codec the device decodes, by the codec's number."""
    num_pieces: int
    """The number of pieces."""
    has_checksums: bool
    """Whether the checksum of any content is known."""
    indexes: NDArray[np.int64]
    """The indexes of the blocks in the plan, in the order of the columns."""

    def __init__(
        self,
        plan: RangePlan,
        indexes: NDArray[np.int64],
        facts: Buffer,
        head_statuses: NDArray[np.uint8],
        heads: NDArray[np.uint64],
        payloads: NDArray[np.uint64],
    ) -> None:
        """Lays out the columns for the blocks of `plan` with these indexes.

        Each block has a record (gompfs.gpu.block_source.STAGED), a BlockStatus and the device address of what it needs
        to be decoded, and the device address of its payload. Raises ValueError if there is no such block.
        """

    def write(self, out: Buffer, content: int) -> None:
        """Writes the columns to `out`, of `size` bytes. Contents will be decoded to the device address `content`."""

class BlockStaging:
    """Compressed blocks that threads are reading from a file, see native/blocks/staged_blocks.h."""

    def __init__(
        self,
        descriptor: int | None,
        archive_offsets: NDArray[np.uint64],
        compressed_sizes: NDArray[np.uint32],
        uncompressed_sizes: NDArray[np.uint32],
        supplements: NDArray[np.uint8],
        targets: NDArray[np.uint64],
        out: Buffer,
        num_threads: int,
    ) -> None:
        """Begins to read blocks to their targets in `out`, and to check them against their checksums.

        `descriptor` is closed once it is no longer needed. Without it, the blocks are there already. `supplements` says
        what each block needs: nothing (0), the symbols of its part (1) or the dictionary (2).
        """

    def wait(self) -> bytes:
        """Waits until all blocks were read. Returns a record for each, see gompfs.gpu.block_source. Raises OSError."""

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

class AnnouncedContents:
    """Files of a directory that a ContentLoader reads."""

    def take(self) -> LoadedFiles | int | None:
        """Returns the next files, the index of the next one if it cannot be read, or None if all have been taken."""

class ContentLoader:
    """Reads files of an archive before they are needed."""

    def __init__(self, reader: BlockReader, capacity: int, max_threads: int) -> None:
        """Up to `capacity` bytes are read ahead."""

    def load(self, files: list[tuple[bytes, Inode, dict[bytes, bytes]]]) -> AnnouncedContents:
        """Announce files of one directory, in byte order: names, inodes and extended attributes.

        They must be regular files of one name and without holes.
        """
