"""The columns of an index in compressed blocks, as archives store them: docs/format.md, sections 1 and 3."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xxhash import xxh3_64_intdigest

from gompfs._native import codec as _codec
from gompfs._native.index import unpacked_size
from gompfs.codec import (
    BLOCK_ALIGNMENT,
    BLOCK_HEADER_SIZE,
    MAX_BLOCK_SIZE,
    MAX_EXPANSION,
    Codec,
    CodecOptions,
    align,
    parse_block_header,
)
from gompfs.codec.block import Buffer
from gompfs.errors import ArchiveFormatError, CorruptIndexError
from gompfs.threads import default_threads

_OPTIONS = CodecOptions(level=7)  # level 8 saves another 3%, and takes ten times as long
_LEAST_IN_BLOCK = 1 << 16  # bytes: smaller columns share a block, since a block has code tables of its own
_FREE_SIZE, _MAX_UNPACKING = 1 << 20, 256  # limits of what a stored index becomes: docs/format.md, section 3


def encode_columns(columns: Buffer, ends: Sequence[int], least: int = 0) -> bytes:
    """Returns the blocks of an index, each on a multiple of 16, without padding after the last.

    `ends` are the positions at which columns end. A block does not mix large columns with others, whose bytes have
    other frequencies. The blocks have at least `least` bytes, which must not be more than the columns: if they would be
    smaller, the first bytes of the columns are not compressed.
    """
    stored = _blocks(columns, _ranges(0, len(columns), ends), _OPTIONS.codec)
    if len(stored) >= least:
        return stored
    first = _blocks(columns, [(0, least)], Codec.STORED)
    rest = _blocks(columns, _ranges(least, len(columns), ends), _OPTIONS.codec)
    return first + bytes(-len(first) % BLOCK_ALIGNMENT) + rest if rest else first


def _blocks(columns: Buffer, ranges: Iterable[tuple[int, int]], codec: Codec) -> bytes:
    pieces = []
    view = memoryview(columns)
    for begin, end in ranges:
        content, level, eliminates = view[begin:end], _OPTIONS.level, _OPTIONS.dependency_elimination
        for block, _, _ in _codec.encode_blocks(content, MAX_BLOCK_SIZE, codec, level, eliminates, default_threads()):
            pieces += [block, bytes(-len(block) % BLOCK_ALIGNMENT)]
    return b"".join(pieces[:-1])


def least_stored_size(columns: Buffer, *, is_changes: bool = False) -> int:
    """Returns how many bytes the blocks of an index with these columns must have at least.

    Without such a minimum, a small file could describe any number of very regular rows. Raises CorruptIndexError if the
    bytes are not columns.
    """
    try:
        size = unpacked_size(columns, is_changes) - (0 if is_changes else _FREE_SIZE)
    except ValueError as error:
        raise CorruptIndexError(f"the index is damaged: {error}") from None
    return -(-max(size, 0) // _MAX_UNPACKING)


def _ranges(begin: int, size: int, ends: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yields where to cut columns after `begin`: at ends of columns, so that the pieces have _LEAST_IN_BLOCK bytes."""
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
    if size > _FREE_SIZE + _MAX_UNPACKING * len(stored):
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
