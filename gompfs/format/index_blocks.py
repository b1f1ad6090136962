"""The columns of an index in compressed blocks, as archives store them: docs/format.md, sections 1 and 3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xxhash import xxh3_64_intdigest

from gompfs._native import codec as _codec
from gompfs.codec import (
    BLOCK_ALIGNMENT,
    BLOCK_HEADER_SIZE,
    MAX_BLOCK_SIZE,
    MAX_EXPANSION,
    CodecOptions,
    align,
    parse_block_header,
)
from gompfs.errors import ArchiveFormatError, CorruptIndexError
from gompfs.threads import default_threads

_OPTIONS = CodecOptions(level=7)  # level 8 saves another 3%, and takes ten times as long
_LEAST_IN_BLOCK = 1 << 16  # bytes: smaller columns share a block, since a block has code tables of its own


def encode_columns(columns: bytes, ends: Sequence[int]) -> bytes:
    """Returns the blocks of an index, each on a multiple of 16, without padding after the last.

    `ends` are the positions at which columns end. A block does not mix large columns with others, whose bytes have
    other frequencies.
    """
    pieces = []
    for begin, end in _ranges(len(columns), ends):
        blocks = _codec.encode_blocks(
            columns[begin:end],
            MAX_BLOCK_SIZE,
            _OPTIONS.codec,
            _OPTIONS.level,
            _OPTIONS.dependency_elimination,
            default_threads(),
        )
        for block, _, _ in blocks:
            pieces += [block, bytes(-len(block) % BLOCK_ALIGNMENT)]
    return b"".join(pieces[:-1])


def _ranges(size: int, ends: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yields where to cut columns: at ends of columns, so that the pieces have at least _LEAST_IN_BLOCK bytes."""
    begin = 0
    for end in ends:
        if end - begin >= _LEAST_IN_BLOCK:
            yield begin, end
            begin = end
    if begin < size:
        yield begin, size


def decode_columns(stored: bytes, size: int, xxh3: int) -> memoryview:
    """Returns the columns of an index from its blocks. Raises CorruptIndexError unless they have this size and XXH3-64.

    The memory is bounded in proportion to `stored`, whatever `size` claims.
    """
    if size > MAX_EXPANSION * len(stored):
        raise CorruptIndexError("the index is damaged: its blocks are too small for its size")
    blocks, sizes = _cut(stored, size)
    columns = _codec.BufferPool().allocate(size)  # not filled with zeros, which takes longer than decoding
    if any(_codec.decode_blocks(blocks, columns, False, default_threads(), sizes)):
        raise CorruptIndexError("the index is damaged: one of its blocks cannot be decoded")
    if xxh3_64_intdigest(columns) != xxh3:
        raise CorruptIndexError("the index is damaged: its checksum does not match")
    return columns.toreadonly()


def _cut(stored: bytes, columns_size: int) -> tuple[list[memoryview], list[int]]:
    """Returns the blocks of an index, and how many bytes each decodes to."""
    view = memoryview(stored)
    blocks: list[memoryview] = []
    sizes: list[int] = []
    position = end = 0
    left = columns_size
    while left:
        try:
            header = parse_block_header(view[position : position + BLOCK_HEADER_SIZE])
        except ArchiveFormatError as error:
            raise CorruptIndexError(f"the index is damaged: block {len(blocks)}: {error.message}") from None
        end = position + header.compressed_size
        size = header.uncompressed_size
        if end > len(stored) or size > min(left, MAX_EXPANSION * header.payload_size):
            raise CorruptIndexError(f"the index is damaged: block {len(blocks)} has an impossible size")
        blocks.append(view[position:end])
        sizes.append(size)
        left -= size
        position = align(end, BLOCK_ALIGNMENT)
    if end != len(stored):
        raise CorruptIndexError("the index is damaged: bytes follow its blocks")
    return blocks, sizes
