"""The blocks of a segment or section, as they are written: a segment may have millions."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from gompfs.codec import BLOCK_ALIGNMENT, align
from gompfs.errors import PackError
from gompfs.model import WrittenBlock

MAX_BLOCKS = 50_000_000
"""A row of the table segment then has less than 10^9 bytes, SQLite's limit, even if each block is a part."""


class WrittenBlocks:
    """Blocks that lie one after another; 5 bytes of memory for each.

    `archive_offset` is that of the first block, 0 if there is none.
    """

    def __init__(self, blocks: Sequence[WrittenBlock] = ()) -> None:
        self.archive_offset = 0
        self.compressed_sizes = array("I")
        self.codecs = bytearray()
        self._end = 0  # an archive_offset
        self.extend(blocks)

    def __len__(self) -> int:
        return len(self.codecs)

    def extend(self, blocks: Sequence[WrittenBlock]) -> None:
        """Add blocks. Raises PackError if they are too many for a segment."""
        if len(self) + len(blocks) > MAX_BLOCKS:
            raise PackError(f"one pack or add stores at most {MAX_BLOCKS:,} blocks; larger blocks are fewer")
        for archive_offset, compressed_size, codec in blocks:
            if not len(self):
                self.archive_offset = archive_offset
            elif archive_offset != align(self._end, BLOCK_ALIGNMENT):
                raise ValueError("the blocks do not lie one after another")
            self.compressed_sizes.append(compressed_size)
            self.codecs.append(codec)
            self._end = archive_offset + compressed_size
