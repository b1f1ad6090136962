"""The image of an index in compressed blocks, as archives store it."""

from __future__ import annotations

from xxhash import xxh3_64_intdigest

from gompfs._native import codec as _codec
from gompfs.codec import BLOCK_ALIGNMENT, BLOCK_HEADER_SIZE, MAX_EXPANSION, CodecOptions, align, parse_block_header
from gompfs.errors import ArchiveFormatError, CorruptIndexError
from gompfs.threads import default_threads


def encode_image(image: bytes, block_size: int) -> bytes:
    """Returns the blocks of an index, each on a multiple of 16, without padding after the last."""
    options = CodecOptions()
    blocks = _codec.encode_blocks(
        image, block_size, options.codec, options.level, options.dependency_elimination, default_threads()
    )
    pieces = []
    for block, _, _ in blocks:
        pieces += [block, bytes(-len(block) % BLOCK_ALIGNMENT)]
    return b"".join(pieces[:-1])


def decode_image(stored: bytes, image_size: int, image_xxh3: int, block_size: int) -> memoryview:
    """Returns the image of an index from its blocks. Raises CorruptIndexError unless it has this size and XXH3-64.

    The memory is bounded in proportion to `stored`, whatever `image_size` claims.
    """
    if image_size > MAX_EXPANSION * len(stored):
        raise CorruptIndexError("the index is damaged: its blocks are too small for its size")
    blocks, sizes = _cut(stored, image_size, block_size)
    image = _codec.BufferPool().allocate(image_size)  # not filled with zeros, which takes longer than decoding
    if any(_codec.decode_blocks(blocks, image, False, default_threads(), sizes)):
        raise CorruptIndexError("the index is damaged: one of its blocks cannot be decoded")
    if xxh3_64_intdigest(image) != image_xxh3:
        raise CorruptIndexError("the index is damaged: its checksum does not match")
    return image.toreadonly()


def _cut(stored: bytes, image_size: int, block_size: int) -> tuple[list[memoryview], list[int]]:
    """Returns the blocks of an image, and how many bytes each decodes to."""
    view = memoryview(stored)
    blocks: list[memoryview] = []
    sizes: list[int] = []
    position = end = 0
    for begin in range(0, image_size, block_size):
        try:
            header = parse_block_header(view[position : position + BLOCK_HEADER_SIZE])
        except ArchiveFormatError as error:
            raise CorruptIndexError(f"the index is damaged: block {len(blocks)}: {error.message}") from None
        end = position + header.compressed_size
        size = min(block_size, image_size - begin)
        if end > len(stored) or size > MAX_EXPANSION * header.payload_size:
            raise CorruptIndexError(f"the index is damaged: block {len(blocks)} has an impossible size")
        blocks.append(view[position:end])
        sizes.append(size)
        position = align(end, BLOCK_ALIGNMENT)
    if end != len(stored):
        raise CorruptIndexError("the index is damaged: bytes follow its blocks")
    return blocks, sizes
