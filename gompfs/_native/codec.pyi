"""Native codecs (native/codec). Buffers are contiguous bytes-like objects; the GIL is released."""

from collections.abc import Sequence
from enum import Enum

from typing_extensions import Buffer

from gompfs._native.parts import SymbolTable

class Codec(Enum):
    """The values of gompfs.codec.Codec. Functions take members of either."""

    STORED = 0
    GOMPRESSO_BYTE = 1
    GOMPRESSO_BIT = 2
    GOMPRESSO_TADOC = 3
    HEAD = 4
    GOMPRESSO_BIT_DICTIONARY = 5

class BlockStatus(Enum):
    """The values of gompfs.codec.BlockStatus."""

    OK = 0
    BAD_HEADER = 1
    BAD_CHECKSUM = 2
    BAD_PAYLOAD = 3
    BAD_CONTENT = 4

class DecodeWork:
    """Counts the blocks and bytes decoded, and the time that this took; safe for any number of threads."""

    num_blocks: int
    """Number of blocks decoded."""
    num_bytes: int
    """Number of bytes decoded."""
    @property
    def seconds(self) -> float:
        """Time during which at least one batch was running."""

    def begin(self) -> None:
        """Begins a batch."""

    def end(self, num_blocks: int, num_bytes: int) -> None:
        """Ends a batch that decoded this much; 0 and 0 if it failed."""

    def restart(self) -> None:
        """Resets everything in the child of a fork, where batches of the parent would count as running for ever."""

    def clear(self) -> None:
        """Resets the counts. No batch may be running."""

class BufferPool:
    """Hands out memory, and reuses it once no view of it is left; safe for any number of threads."""

    @property
    def num_free_bytes(self) -> int:
        """Number of bytes that wait to be reused."""

    def allocate(self, size: int) -> memoryview:
        """Returns `size` bytes of undefined content."""

    def drop_free(self) -> None:
        """Returns free memory to the system."""

class Dictionary:
    """Bytes from which matches of all blocks may copy; safe for any number of threads."""

    def __init__(self, content: Buffer) -> None:
        """Copies the bytes. Raises ValueError unless there are 1 byte to 1 MiB."""

    @property
    def content(self) -> bytes:
        """A copy of the bytes."""
    @property
    def table(self) -> SymbolTable:
        """What `decode_blocks` needs, in place of the symbols of a part."""

def choose_dictionary(samples: Sequence[Buffer], size: int, num_threads: int) -> bytes:
    """Returns at most `size` bytes of the samples that blocks of them have in common, the most useful first.

    Returns fewer bytes, or none, if less occurs repeatedly. The same samples always give the same bytes. Raises
    ValueError if `size` exceeds 1 MiB.
    """

def encode_blocks(
    stream: Buffer,
    block_size: int,
    codec: Codec | int,
    level: int,
    dependency_elimination: bool,
    num_threads: int,
    group_size_log2: int = 2,
    strict_sources: bool = False,
    dictionary: Dictionary | None = None,
) -> list[tuple[bytes, int, int]]:
    """Cuts `stream` into blocks and encodes each, with header. A block is stored if no payload would be smaller.

    Returns each block with its codec and its uncompressed size. With a dictionary, which the codec must be
    gompresso-bit for, the codec is gompresso-bit-dictionary.

    Raises ValueError for a block size, a level or a group size that does not exist, and for a dictionary with another
    codec.
    """

def frame_payloads(
    stream: Buffer,
    block_size: int,
    codec: Codec | int,
    level: int,
    dependency_elimination: bool,
    num_threads: int,
    packed: Buffer,
    sizes: Buffer,
    failed: Buffer,
    group_size_log2: int = 2,
    strict_sources: bool = False,
) -> list[tuple[bytes, int, int]]:
    """Returns what `encode_blocks` returns, from payloads that a device made.

    `sizes` has the size of each payload (u32), 0 for a block that is stored; `packed` has the payloads one after
    another, each at a multiple of 16. Encodes block i if `failed[i]` (u8) is not 0.

    Raises ValueError also if there are not as many payloads as blocks, or if a payload is not smaller than its block or
    not inside `packed`.
    """

def decode_blocks(
    blocks: Sequence[Buffer],
    out: Buffer,
    verify: bool,
    num_threads: int,
    sizes: Sequence[int] | None = None,
    symbols: Sequence[SymbolTable | None] | None = None,
) -> bytes:
    """Checks and decodes whole blocks one after another into `out`; returns a status (a BlockStatus) for each.

    With `sizes`, a block that should decode to another number of bytes has a bad header and `sizes[i]` zeros. A block
    of gompresso-tadoc needs the symbols of its part, one of gompresso-bit-dictionary needs its dictionary, and no other
    may have them, except that stored blocks may have a dictionary; otherwise its header is bad. Raises ValueError if
    `out` is too small, or if there are not as many sizes or symbols as blocks.
    """

def read_headers(blocks: Sequence[Buffer], symbols: Sequence[object | None] | None = None) -> bytes:
    """Returns facts of each block, 24 bytes: four u32, then a u64.

    They are the status (a BlockStatus), codec, payload size, uncompressed size, and the checksum. All except the status
    are 0 if the header cannot be read. A header is bad if the codec does not go with the symbols, see
    `decode_blocks`. Raises ValueError if there are not as many symbols as blocks. gompfs.codec.headers reads the facts
    as an array.
    """

def are_possible_block_ranges(offsets: Buffer, sizes: Buffer, data_end: int) -> bool:
    """Returns whether blocks at these columns of archive_offset (u64) and compressed_size (u32) are possible.

    They are if all sizes are possible and all blocks end at `data_end` or before.
    """

def gather_payloads(blocks: Sequence[Buffer], headers: Buffer, offsets: Buffer, out: Buffer, num_threads: int) -> bytes:
    """Checks blocks, and copies their payloads to `offsets` (u64 each) in `out`. `headers` is from read_headers.

    Returns a status for each block. The payload of a damaged block is not copied.
    """

def check_contents(blocks: Sequence[Buffer], offsets: Buffer, out: Buffer, num_threads: int) -> bytes:
    """Returns a byte for each block: 1 if the decoded bytes at its offset (u64) in `out` match its checksum, else 0."""

def decode_payload(codec: Codec | int, payload: Buffer, out: Buffer) -> bool:
    """Decodes one payload, without header and checksums, into exactly `len(out)` bytes; False if it is damaged."""

def parse_sequences(
    content: Buffer,
    codec: Codec | int,
    level: int,
    dependency_elimination: bool,
    group_size_log2: int = 2,
    strict_sources: bool = False,
) -> bytes:
    """Cuts the content of one block into sequences, the first step of encoding. Returns each as a u64.

    Its lowest 32 bits are the match offset, then come the match length (12 bits) and the literal length.

    Raises ValueError for a level or a group size that does not exist.
    """

class ParserSettings:
    """What a parser on a GPU must know about a codec and a level; docs of the fields are in native/codec/parser.h.

    Raises ValueError for a level that does not exist.
    """

    def __init__(self, codec: Codec | int, level: int) -> None: ...
    @property
    def chain_length(self) -> int: ...
    @property
    def nice_length(self) -> int: ...
    @property
    def lazy_steps(self) -> int: ...
    @property
    def finds_short(self) -> bool: ...
    @property
    def later_ends_later(self) -> bool: ...
    @property
    def skips(self) -> bool: ...
    @property
    def backward_chain_length(self) -> int: ...
    @property
    def backward_nice_length(self) -> int: ...
    @property
    def min_match_length(self) -> int: ...
    @property
    def max_match_length(self) -> int: ...
    @property
    def max_match_offset(self) -> int: ...
    @property
    def max_literal_length(self) -> int: ...

def encode_sequences(
    content: Buffer, sequences: Buffer, codec: Codec | int, dependency_elimination: bool, group_size_log2: int = 2
) -> bytes:
    """Writes the payload of one block for sequences as parse_sequences returns them, the second step of encoding.

    Raises ValueError if the sequences have another size than the content, if a payload cannot hold one of them, or if
    the group size does not exist.
    """
