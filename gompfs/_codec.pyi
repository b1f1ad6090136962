"""Native codecs (kernels/cpu/codec). Buffers are contiguous bytes-like objects; the GIL is released."""

from collections.abc import Sequence

from typing_extensions import Buffer

class DecodeWork:
    """Adds up batches; safe for any number of threads."""

    num_blocks: int
    num_bytes: int
    @property
    def seconds(self) -> float:
        """How long there was a batch at work, or more than one."""

    def begin(self) -> None:
        """A batch begins."""

    def end(self, num_blocks: int, num_bytes: int) -> None:
        """End a batch, which has decoded so much: nothing if it failed."""

    def restart(self) -> None:
        """Begin again, in a child of a fork, where batches of the parent may be at work for ever."""

    def clear(self) -> None:
        """Begin again; not while a batch is at work."""

class BufferPool:
    """Lends memory, and takes it back when no view of it is left; safe for any number of threads."""

    @property
    def num_free_bytes(self) -> int:
        """How much memory waits to be lent again."""

    def allocate(self, size: int) -> memoryview:
        """`size` bytes, of any content."""

    def drop_free(self) -> None:
        """Give free memory back to the system."""

def encode_blocks(
    stream: Buffer,
    block_size: int,
    codec: int,
    level: int,
    dependency_elimination: bool,
    num_threads: int,
    group_size_log2: int = 2,
) -> list[bytes]:
    """Whole blocks (header and payload) that hold `stream`; stored where no payload would be smaller.

    Raises ValueError for a block size or a group size that the format does not have.
    """

def decode_blocks(blocks: Sequence[Buffer], out: Buffer, verify: bool, num_threads: int) -> bytes:
    """Check and decode whole blocks one behind the other into `out`; one status (a BlockStatus) for each.

    Raises ValueError when `out` is too small.
    """

def read_headers(blocks: Sequence[Buffer]) -> bytes:
    """Facts of each block, 24 bytes: four u32, then a u64.

    They are the status (a BlockStatus), codec, payload size and uncompressed size, and the checksum; all but the status
    are 0 where the header cannot be read. gompfs.codec.headers reads them as an array.
    """

def uncompressed_sizes(blocks: Sequence[Buffer]) -> list[int]:
    """How many bytes each block decodes to by its header; 0 where it has none."""

def are_possible_places(offsets: Buffer, sizes: Buffer, data_end: int) -> bool:
    """Whether blocks can lie where columns of archive_offset (u64) and compressed_size (u32) say, before `data_end`."""

def gather_payloads(blocks: Sequence[Buffer], places: Buffer, out: Buffer, num_threads: int) -> bytes:
    """Check blocks, and copy their payloads to their places (u64 each) in `out`; a status for each."""

def check_contents(blocks: Sequence[Buffer], places: Buffer, out: Buffer, num_threads: int) -> bytes:
    """1 for each block whose decoded bytes, at its place (u64 each) in `out`, are those that were compressed."""

def decode_payload(codec: int, payload: Buffer, out: Buffer) -> bool:
    """Decode one payload, without header and checksums, into exactly `len(out)` bytes; False if it is damaged."""

def cancel_all() -> None:
    """End all work of this module in all threads, now and later, by KeyboardInterrupt; for a process that ends."""
