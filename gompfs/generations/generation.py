"""What a search for the newest generation returns."""

from __future__ import annotations

from typing import NamedTuple

from gompfs.codec.block import Buffer
from gompfs.format import Footer, Superblock, TrailerFooter


class Newest(NamedTuple):
    """The generation that readers of an archive see: its last footer and the image of its index.

    `footer` describes the copy of the index that was read; `footer_offset` is the position of the last footer of the
    generation, and `end` follows that footer. All blocks lie before `data_end`. `size` is the file size. `damage` says
    what is wrong with the other copy of the index, if it was tried first.
    """

    superblock: Superblock
    footer: Footer | TrailerFooter
    footer_offset: int
    end: int
    data_end: int
    size: int
    image: Buffer
    damage: str | None = None

    @property
    def num_ignored_bytes(self) -> int:
        """The number of bytes after the last footer, which belong to no generation."""
        return max(self.size - self.end, 0)
