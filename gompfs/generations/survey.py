"""Finds the newest generation of an archive of format version 1.

An attacker may control a packed file and store whole archives in it, with footers whose offsets are valid. If the end
of the archive itself is truncated, damaged, or not written yet, such a footer must not be accepted as its own.
There are two ways to find a generation:

* `accept_end`, which is fast: the last 64 bytes are a footer, and no block covers the beginning of its index. Then the
  index is genuine: a block that covered it would have its header in the bytes before the index, and the pages inside an
  index never begin like a SQLite image. The image states its own size, so the footer after it is genuine too.
* `survey`, if `accept_end` fails: a walk through the archive from its beginning (`gompfs.format.walk`). A footer is
  accepted only if its index lists exactly the blocks of the walk. A damaged size can lead the walk into a packed file,
  but the author of that file cannot predict the damage, so an index in the file does not list these blocks.
"""

from __future__ import annotations

from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from gompfs.codec import BLOCK_HEADER_SIZE
from gompfs.errors import ArchiveFormatError, CorruptIndexError
from gompfs.format import (
    FOOTER_SIZE,
    INDEX_ALIGNMENT,
    SUPERBLOCK_SIZE,
    ArchiveFile,
    ArchiveWalk,
    Footer,
    Superblock,
    WalkedGeneration,
    check_index,
    database_size,
    ends_in_block,
    footer_at,
    read_image,
    read_index,
)
from gompfs.generations.generation import Newest
from gompfs.index.reader import IndexReader

_NO_FOOTER = "no valid footer: the file is truncated or damaged"
_SMALL_INDEX = 1 << 20  # an index up to this size is read in one request with the bytes before it


class Unfinished(NamedTuple):
    """A generation whose index is intact and whose footer is missing or damaged: the footer to write, and its offset.

    `blocks` are the blocks that the generation added, as (archive_offset, compressed_size).
    """

    footer: Footer
    footer_offset: int
    blocks: list[tuple[int, int]]


class Survey(NamedTuple):
    """The result of a walk through a whole archive.

    `newest` is the last intact generation. `damaged` describes the damage if a later generation has a footer but a
    damaged index. `unfinished` is the generation directly after `newest`, if its index is intact and its footer is
    damaged or was not written.
    """

    newest: Newest | None
    damaged: str | None
    unfinished: Unfinished | None


def find_newest(file: ArchiveFile, superblock: Superblock) -> Newest:
    """Returns the newest generation. Raises ArchiveFormatError, or CorruptIndexError if its index is damaged."""
    size = file.size()
    newest = accept_end(file, superblock, size)
    if newest is not None:
        return newest
    found = survey(file, superblock, size)
    if found.damaged is not None:
        hint = f"; gompfs repair goes back to generation {found.newest.footer.generation}" if found.newest else ""
        raise CorruptIndexError(found.damaged + hint)
    if found.newest is None:
        if found.unfinished:
            raise ArchiveFormatError(f"{_NO_FOOTER}; its index is intact, so gompfs repair can write the footer")
        footer = footer_at(file, size - FOOTER_SIZE)
        if footer is not None and footer.index_offset % INDEX_ALIGNMENT:
            raise ArchiveFormatError(f"the index does not start at a multiple of {INDEX_ALIGNMENT}")
        raise ArchiveFormatError(f"{_NO_FOOTER}, and its index cannot be found")
    return found.newest


def accept_end(file: ArchiveFile, superblock: Superblock, size: int) -> Newest | None:
    """Returns the generation whose footer is the last 64 bytes, or None if that is not certain."""
    footer_offset = size - FOOTER_SIZE
    footer = footer_at(file, footer_offset)
    if footer is None or footer.index_offset % INDEX_ALIGNMENT:
        return None
    start = max(footer.index_offset - superblock.block_size - BLOCK_HEADER_SIZE, SUPERBLOCK_SIZE)
    num_before = footer.index_offset - start
    try:
        if footer.index_size <= _SMALL_INDEX:
            content = file.read(num_before + footer.index_size, start)
            before, image = content[:num_before], content[num_before:]
            check_index(image, footer)
        else:
            before, image = file.read(num_before, start), read_index(file, footer)
    except CorruptIndexError:
        return None
    if database_size(image) != footer.index_size or ends_in_block(before, superblock.block_size):
        return None
    return _newest(superblock, footer, footer_offset, size, image)


def _newest(superblock: Superblock, footer: Footer, footer_offset: int, size: int, image: bytes) -> Newest:
    end = footer_offset + FOOTER_SIZE
    return Newest(superblock, footer, footer_offset, end, footer.index_offset, size, image)


def survey(file: ArchiveFile, superblock: Superblock, size: int) -> Survey:
    """Walk through the first `size` bytes of an archive. Reads all block headers and all indexes."""
    walk = ArchiveWalk(file, superblock.block_size, size)
    newest, damaged = None, _damage_at_end(file, walk, size)
    for found in reversed(walk.generations):
        assert found.footer is not None
        try:
            image = read_index(file, found.footer)
        except CorruptIndexError as error:
            damaged = damaged or error.message
            continue
        if _lists_blocks(image, found, walk, superblock.block_size):
            newest = _newest(superblock, found.footer, found.footer_offset, size, image)
            break
    unfinished = None
    if not damaged and walk.last_footer == (newest.footer_offset if newest else 0):
        unfinished = _find_unfinished(file, walk, superblock.block_size)
    return Survey(newest, damaged, unfinished)


def _damage_at_end(file: ArchiveFile, walk: ArchiveWalk, size: int) -> str | None:
    """Returns what is wrong with the index at which the walk ended, if the file ends with the footer of this index."""
    footer = footer_at(file, size - FOOTER_SIZE)
    if footer is None or not walk.ends_at_index_of(footer):
        return None
    try:
        image = read_index(file, footer)
    except CorruptIndexError as error:
        return error.message
    if database_size(image) is None:
        return "the index is damaged: file is not a database"
    return "the index is damaged: it does not have the size that its header states"


def _find_unfinished(file: ArchiveFile, walk: ArchiveWalk, block_size: int) -> Unfinished | None:
    """Returns the generation at whose missing footer the walk ended, if its index is intact."""
    found = walk.unfinished
    if found is None:
        return None
    image = read_image(file, found.index_offset, found.index_size)
    if not _lists_blocks(image, found, walk, block_size):
        return None
    index = IndexReader(image, "", 1, found.index_offset, block_size)
    try:
        if next(iter(index.problems()), None) is not None:
            return None
    finally:
        index.close()
    checksum = xxh3_64_intdigest(image)
    footer = Footer(found.number, found.index_offset, found.index_size, checksum, found.previous_footer)
    first = walk.generations[-1].num_blocks if walk.generations else 0
    blocks = list(zip(walk.block_offsets[first:], walk.block_sizes[first:], strict=True))
    return Unfinished(footer, found.footer_offset, blocks)


def _lists_blocks(image: bytes, generation: WalkedGeneration, walk: ArchiveWalk, block_size: int) -> bool:
    """Returns whether an index lists exactly the blocks that the walk passed before it."""
    import numpy as np

    index = None
    try:
        index = IndexReader(image, "", 1, generation.index_offset, block_size)
        runs = [segment.blocks for segment in index.segments()] + [section.blocks for section in index.sections()]
    except CorruptIndexError:
        return False
    finally:
        if index is not None:
            index.close()
    offsets = np.concatenate([np.zeros(0, np.uint64), *(run.archive_offsets for run in runs)])
    sizes = np.concatenate([np.zeros(0, np.uint32), *(run.compressed_sizes for run in runs)])
    order = np.lexsort((sizes, offsets))
    offsets, sizes = offsets[order], sizes[order]
    # Several entries may refer to the same block.
    is_first = np.append(True, (offsets[1:] != offsets[:-1]) | (sizes[1:] != sizes[:-1]))[: len(offsets)]
    walked = generation.num_blocks
    return np.array_equal(offsets[is_first], np.array(walk.block_offsets[:walked], np.uint64)) and np.array_equal(
        sizes[is_first], np.array(walk.block_sizes[:walked], np.uint32)
    )
