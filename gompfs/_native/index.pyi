"""Checks of an index in C++ (native/index), and columns that follow from its other columns."""

from collections.abc import Sequence

from typing_extensions import Buffer

def check_pages(image: Buffer, roots: Sequence[tuple[int, int]]) -> None:
    """Checks that the pages of a SQLite image form b-trees whose keys ascend, and that no page is used twice.

    `roots` are the root page and the number of key fields of each b-tree other than that of the schema. Raises
    ValueError, naming what is wrong. The GIL is released. See native/index/pages.h.
    """

class FileRows:
    """The names, regular files and extents of an index: its tables dirent, inode and extent, read by C++."""

    def __init__(self, image: Buffer, *, dirent: int, inode: int, extent: int) -> None:
        """Read the tables with these root pages from a SQLite image.

        The GIL is released. Raises ValueError if a page or a field is impossible. See native/index/file_rows.h.
        """

def consecutive_offsets(archive_offset: int, compressed_sizes: Buffer, data_end: int) -> bytes:
    """Returns the archive_offset (u64) of each of the blocks with these sizes (u32); the first is at `archive_offset`.

    Each of the others begins at the next multiple of 16. Raises ValueError if `archive_offset` is not a
    multiple of 16, or if a block ends after `data_end`.
    """

def uncompressed_sizes(part_sizes: Buffer, block_size: int, num_blocks: int) -> bytes:
    """Returns the uncompressed size (u32) of each block of parts with these sizes (u64).

    Raises ValueError if a part is empty, or if the parts do not have `num_blocks` blocks.
    """

def integer_rows(columns: Sequence[Buffer]) -> bytes:
    """Returns rows of integers (i64), row after row, for columns of integers as text with commas between them.

    Raises ValueError if a field is no integer of 64 bits, or if the columns have different numbers of fields.
    """
