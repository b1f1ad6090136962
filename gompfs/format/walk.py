"""Walks through an archive from its start, without searching: every structure says where the next one is.

A block's header gives the block's size, a SQLite image gives its own size, and a footer follows at the next multiple of
64. So the walk never looks at the bytes inside packed files, which may contain forged blocks, indexes and footers. The
walk ends at the first structure that is neither a block at the next multiple of 16 nor an index at the next multiple of
4096.

A page of zeros may be a page that was lost, and with it the header of a block; the bytes after it would then be the
content of a packed file. So a gap never covers a whole page. If the page before an index is nevertheless all zeros, the
last block, which ends on that page, must match its checksum. In addition, it must not be a stored block of the full
size: a packed file can choose the last bytes of such a block, and another block may follow it.
"""

from __future__ import annotations

import struct
from array import array
from typing import NamedTuple

from gompfs.codec import BLOCK_ALIGNMENT, BLOCK_HEADER_SIZE, BlockStatus, Codec, align, check_block
from gompfs.codec.block import BLOCK_MAGIC
from gompfs.format.archive_file import ArchiveFile, LocalFile
from gompfs.format.footer import FOOTER_SIZE, INDEX_ALIGNMENT, Footer, footer_at
from gompfs.format.superblock import SUPERBLOCK_SIZE

DATABASE_MAGIC = b"SQLite format 3\0"
_DATABASE_HEADER_SIZE = 100
_MIN_PAGE_SIZE, _MAX_PAGE_SIZE = 512, 65536

# The fields of a block header: magic, codec, reserved bytes, payload size, uncompressed size.
_BLOCK_FIELDS = struct.Struct("<4sB3sII")
_NO_RESERVED = bytes(3)
_MAX_CODEC = Codec.GOMPRESSO_BIT  # of format version 1
_ZEROS = bytes(INDEX_ALIGNMENT)
# Bytes to read at once: remote storage answers a few large requests sooner than many small ones.
_LOCAL_READ_SIZE, _STORE_READ_SIZE = 4096, 1 << 20


class WalkedGeneration(NamedTuple):
    """One generation found by the walk. `num_blocks` is the number of blocks in the archive up to its index.

    `footer` is None if the index is not followed by a valid footer for this index and generation.
    """

    number: int
    index_offset: int
    index_size: int
    previous_footer: int
    num_blocks: int
    footer: Footer | None

    @property
    def footer_offset(self) -> int:
        """The offset of the footer, whether or not it is valid."""
        return align(self.index_offset + self.index_size, FOOTER_SIZE)


class ArchiveWalk:
    """The structures that a walk through the first `size` bytes of an archive finds.

    `generations` holds the generations with a footer, in order; `unfinished` the index after them that has none.
    `block_offsets` and `block_sizes` describe all blocks in order; sizes include the headers. `position` is the end of
    the last structure that could be read. `is_in_block` is whether a block follows that is cut off by the end of the
    file.
    """

    def __init__(self, file: ArchiveFile, block_size: int, size: int) -> None:
        self.generations: list[WalkedGeneration] = []
        self.unfinished: WalkedGeneration | None = None
        self.block_offsets = array("Q")
        self.block_sizes = array("I")
        self.position = SUPERBLOCK_SIZE
        self.is_in_block = False
        self._file = file
        self._block_size = block_size
        self._size = size
        self._window = b""
        self._window_start = 0
        self._read_size = _LOCAL_READ_SIZE if isinstance(file, LocalFile) else _STORE_READ_SIZE
        while self._take_generation():
            pass

    @property
    def last_footer(self) -> int:
        """The archive_offset of the last footer, or 0 if there is none."""
        return self.generations[-1].footer_offset if self.generations else 0

    def ends_at_index_of(self, footer: Footer) -> bool:
        """Returns whether the walk ended where the index of `footer` begins, with the right generations before it."""
        return not self.is_in_block and (
            footer.generation == len(self.generations) + 1
            and footer.previous_footer == self.last_footer
            and footer.index_offset == align(self.position, INDEX_ALIGNMENT)
        )

    def _take_generation(self) -> bool:
        """Walk to the end of a generation. Returns False if the walk ends before."""
        self._take_blocks()
        index_offset = align(self.position, INDEX_ALIGNMENT)
        if self.is_in_block or not self._is_index_start(index_offset):
            return False
        index_size = database_size(self._read(index_offset, _DATABASE_HEADER_SIZE))
        if index_size is None or index_offset + index_size > self._size:
            return False
        number, num_blocks = len(self.generations) + 1, len(self.block_offsets)
        found = WalkedGeneration(number, index_offset, index_size, self.last_footer, num_blocks, None)
        footer = footer_at(self._file, found.footer_offset) if found.footer_offset + FOOTER_SIZE <= self._size else None
        if footer is None or footer.index_size != index_size or not self.ends_at_index_of(footer):
            self.unfinished = found
            return False
        self.generations.append(found._replace(footer=footer))
        self.position = found.footer_offset + FOOTER_SIZE
        return True

    def _take_blocks(self) -> None:
        """Walk through consecutive blocks."""
        while True:
            start = align(self.position, BLOCK_ALIGNMENT)
            raw = self._read(self.position, BLOCK_ALIGNMENT + BLOCK_HEADER_SIZE)
            gap = start - self.position
            size = self._block_size_at(raw, gap)
            if size is None or raw[:gap] != _ZEROS[:gap]:
                return
            if start + size > self._size:
                self.is_in_block = True
                return
            self.block_offsets.append(start)
            self.block_sizes.append(size)
            self.position = start + size

    def _block_size_at(self, raw: bytes, begin: int) -> int | None:
        """Returns the size of the block whose header begins at index `begin` of `raw`, or None if it is invalid."""
        if len(raw) < begin + BLOCK_HEADER_SIZE:
            return None
        magic, codec, reserved, payload_size, uncompressed_size = _BLOCK_FIELDS.unpack_from(raw, begin)
        if magic != BLOCK_MAGIC or reserved != _NO_RESERVED or codec > _MAX_CODEC:
            return None
        if not payload_size <= uncompressed_size <= self._block_size or uncompressed_size == 0:
            return None
        return BLOCK_HEADER_SIZE + int(payload_size)

    def _is_index_start(self, index_offset: int) -> bool:
        """Returns whether the zeros before `index_offset` are a gap rather than a lost page."""
        gap = index_offset - self.position
        if self._read(self.position, gap) != _ZEROS[:gap]:
            return False
        page = max(index_offset - INDEX_ALIGNMENT, 0)
        if gap == 0 or self._read(page, index_offset - page).strip(b"\0"):
            return True
        if not self.block_offsets or self.block_offsets[-1] + self.block_sizes[-1] != self.position:
            return False
        header, status = check_block(self._file.read(self.block_sizes[-1], self.block_offsets[-1]))
        if header is None or status is not BlockStatus.OK:
            return False
        return header.codec is not Codec.STORED or header.uncompressed_size < self._block_size

    def _read(self, archive_offset: int, size: int) -> bytes:
        """Returns up to `size` bytes, fewer at the end of the archive. Nearby ranges share one read."""
        size = max(min(size, self._size - archive_offset), 0)
        start = archive_offset - self._window_start
        if start < 0 or start + size > len(self._window):
            self._window = self._file.read(max(size, self._read_size), archive_offset)
            self._window_start, start = archive_offset, 0
        return self._window[start : start + size]


def database_size(image: bytes) -> int | None:
    """Returns the size in bytes that the first 100 bytes of a SQLite image give, or None if they are not valid."""
    if len(image) < _DATABASE_HEADER_SIZE or not image.startswith(DATABASE_MAGIC):
        return None
    page_size = int.from_bytes(image[16:18], "big")
    page_size = _MAX_PAGE_SIZE if page_size == 1 else page_size
    num_pages = int.from_bytes(image[28:32], "big")
    if page_size < _MIN_PAGE_SIZE or page_size & (page_size - 1) or num_pages == 0:
        return None
    return page_size * num_pages


def ends_in_block(content: bytes, max_payload_size: int) -> bool:
    """Returns whether `content` may end inside a block: whether it holds what may be the header of a cut-off block."""
    begin = content.find(BLOCK_MAGIC)
    while begin >= 0:
        # A header that is itself cut off may belong to a block of any size.
        payload_size = int.from_bytes(content[begin + 8 : begin + 12], "little")
        is_cut = begin + BLOCK_HEADER_SIZE > len(content)
        if is_cut or (payload_size <= max_payload_size and begin + BLOCK_HEADER_SIZE + payload_size > len(content)):
            return True
        begin = content.find(BLOCK_MAGIC, begin + 1)
    return False
