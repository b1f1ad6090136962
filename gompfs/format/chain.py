"""Finds the generations of an archive: a chain that begins at the superblock.

The superblock locates the trailers of generation 1. The header of generation 2 lies right after them, and locates the
trailers of generation 2; and so on. Each link was written by gompfs itself, at a position that follows from the links
before, so no byte of a packed file is ever taken for one. A search for footers could not tell a genuine footer from one
in a packed file: the author of a file that is added later knows everything that earlier generations contain.

The chain ends at the first header that is missing, damaged or not finished, or whose trailers are cut off.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from gompfs._native.index import merge_columns
from gompfs.codec import BLOCK_ALIGNMENT, align
from gompfs.errors import ArchiveFormatError, CorruptIndexError
from gompfs.format.archive_file import ArchiveFile, read_range
from gompfs.format.generation_header import GENERATION_HEADER_SIZE, GenerationHeader
from gompfs.format.index_blocks import decode_columns, least_stored_size
from gompfs.format.superblock import SUPERBLOCK_SIZE, Superblock
from gompfs.format.trailer import MAX_CHANGES, NUM_COPIES, Footer, TrailerPosition
from gompfs.light_types import NamedTuple


class Newest(NamedTuple):
    """The generation that readers of an archive see: its last footer and the columns of its index.

    `footers` describe the copies of the indexes that were read: a whole one, then changes; the last one is that of the
    generation. `footer_offset` is the position of the last footer of the generation, and `end` follows that footer. All
    blocks lie before `data_end`. `size` is the file size. `damage` says what is wrong with another copy of an index, if
    it was tried first.
    """

    superblock: Superblock
    footers: tuple[Footer, ...]
    footer_offset: int
    end: int
    data_end: int
    size: int
    columns: memoryview
    damage: str | None = None

    @property
    def footer(self) -> Footer:
        """The footer of the generation."""
        return self.footers[-1]

    @property
    def num_ignored_bytes(self) -> int:
        """The number of bytes after the last footer, which belong to no generation."""
        return max(self.size - self.end, 0)


class Link(NamedTuple):
    """A generation in the chain. `start` is the archive_offset of its header, 0 for the first generation.

    `previous_footer` is the position of the last footer of the generation before, or 0.
    """

    generation: int
    start: int
    position: TrailerPosition
    previous_footer: int

    @property
    def next_start(self) -> int:
        """The archive_offset of the header of the next generation."""
        return align(self.position.end, GENERATION_HEADER_SIZE)


def walk_chain(file: ArchiveFile, superblock: Superblock, size: int) -> Iterator[Link]:
    """Yields the generations in the first `size` bytes of an archive, in order. Reads their headers only."""
    link = Link(1, 0, TrailerPosition(superblock.index_offset, superblock.index_size), 0)
    while _is_possible(link, size):
        yield link
        try:
            header = GenerationHeader.from_bytes(file.read(GENERATION_HEADER_SIZE, link.next_start))
        except ArchiveFormatError:
            return
        if header.generation != link.generation + 1 or header.uuid != superblock.uuid:
            return
        position = TrailerPosition(header.index_offset, header.index_size)
        link = Link(header.generation, link.next_start, position, link.position.footer_offset(NUM_COPIES - 1))


def _is_possible(link: Link, size: int) -> bool:
    """Returns whether the first copy of the index of a generation is inside the file."""
    position = link.position
    return (
        position.index_offset % BLOCK_ALIGNMENT == 0
        and position.index_offset >= link.start + SUPERBLOCK_SIZE
        and position.index_size > 0
        and position.copy_end(0) <= size
    )


def find_newest(file: ArchiveFile) -> Newest:
    """Returns the last generation of the chain.

    Raises ArchiveFormatError if there is none, UnsupportedFormatError, and CorruptIndexError if both copies of its
    index are damaged. `gompfs repair` can then go back to the previous generation.
    """
    superblock = Superblock.from_bytes(file.read(SUPERBLOCK_SIZE, 0))
    size = file.size()
    links = deque(walk_chain(file, superblock, size), maxlen=1 + MAX_CHANGES)
    if not links:
        position = TrailerPosition(superblock.index_offset, superblock.index_size)
        is_cut = _is_possible(Link(1, 0, position, 0), position.end)
        cut = "the file is truncated: it ends before the end of its index"
        raise ArchiveFormatError(cut if is_cut else "the superblock locates no index")
    return _read_generation(file, superblock, list(links), size)


def _read_generation(file: ArchiveFile, superblock: Superblock, links: list[Link], size: int) -> Newest:
    """Returns the last generation of `links`.

    Each index that it needs is read from its last intact copy. Raises CorruptIndexError if both copies of an index are
    damaged.
    """
    link, position, damages = links[-1], links[-1].position, list[str]()
    last = position.copy_offset(NUM_COPIES - 1)
    file.announce([(last, position.end - last)])
    read = [_read_intact_copy(file, superblock, link, None, damages)]
    num_changes = read[0][0].num_changes
    for distance, earlier in enumerate(reversed(links[len(links) - 1 - num_changes : -1]), 1):
        read.append(_read_intact_copy(file, superblock, earlier, num_changes - distance, damages))
    footers, columns = zip(*reversed(read), strict=True)
    last_footer, damage = position.footer_offset(NUM_COPIES - 1), damages[0] if damages else None
    whole = _merged(footers, columns)
    return Newest(superblock, footers, last_footer, position.end, position.index_offset, size, whole, damage)


def _read_intact_copy(
    file: ArchiveFile, superblock: Superblock, link: Link, num_changes: int | None, damages: list[str]
) -> tuple[Footer, memoryview]:
    """Returns the footer and the columns of the last intact copy of an index; `num_changes` is what it must state.

    `num_changes` is None for the newest generation. Adds a line to `damages` for a damaged copy. Raises
    CorruptIndexError if all copies are damaged.
    """
    for copy in reversed(range(NUM_COPIES)):
        where = f"copy {copy} of the index" + ("" if num_changes is None else f" of generation {link.generation}")
        try:
            footer = read_footer(file, superblock, link, copy)
            if num_changes not in (None, footer.num_changes):
                raise CorruptIndexError("its footer belongs to another index")
            return footer, read_copy(file, footer)
        except CorruptIndexError as error:
            damages.append(f"{where}: {error.message}")
    which = "the index" if num_changes is None else f"the index of generation {link.generation}, which is needed,"
    hint = "; gompfs repair may mend it"
    if link.generation > 1:
        hint += f", or goes back to generation {link.generation - 1}"
    raise CorruptIndexError(f"both copies of {which} are damaged: {damages[-1]}{hint}")


def read_columns(file: ArchiveFile, footers: tuple[Footer, ...]) -> memoryview:
    """Returns the columns of a whole index, given by the footers of Newest. Raises CorruptIndexError."""
    return _merged(footers, [read_copy(file, footer) for footer in footers])


def _merged(footers: Sequence[Footer], columns: Sequence[memoryview]) -> memoryview:
    """Returns the columns of the whole index that `columns` lead to, after a check of how many rows they have."""
    for footer, each in zip(footers, columns, strict=True):
        if least_stored_size(each, is_changes=footer.num_changes > 0) > footer.index_size:
            raise CorruptIndexError("the index is damaged: its blocks are too small for its rows")
    if len(columns) == 1:
        return columns[0]
    try:
        return merge_columns(list(columns))
    except ValueError as error:
        raise CorruptIndexError(f"the index is damaged: {error}") from None


def read_footer(file: ArchiveFile, superblock: Superblock, link: Link, copy: int) -> Footer:
    """Returns the footer of a copy. Raises CorruptIndexError, or UnsupportedFormatError if it needs a feature."""
    position = link.position
    begin = position.footer_offset(copy)
    try:
        footer = Footer.from_bytes(file.read(position.copy_end(copy) - begin, begin))
    except ArchiveFormatError as error:
        raise CorruptIndexError(f"its footer is damaged: {error.message}") from None
    found = footer.generation, footer.copy, footer.uuid, footer.start, footer.previous_footer
    where = footer.index_offset, footer.index_size
    if found != (link.generation, copy, superblock.uuid, link.start, link.previous_footer) or where != (
        position.copy_offset(copy),
        position.index_size,
    ):
        raise CorruptIndexError("its footer belongs to another index")
    footer.check_features()
    return footer


def read_copy(file: ArchiveFile, footer: Footer) -> memoryview:
    """Returns the columns of the index that a footer describes. Raises CorruptIndexError."""
    stored = read_range(file, footer.index_offset, footer.index_size)
    return decode_columns(stored, footer.columns_size, footer.columns_xxh3)


def check_copies(file: ArchiveFile, superblock: Superblock) -> Iterator[str]:
    """Yields the damage of all copies of the indexes of all generations."""
    for link in walk_chain(file, superblock, file.size()):
        yield from _check_copies_of(file, superblock, link)


def check_newest_copies(file: ArchiveFile, superblock: Superblock) -> Iterator[str]:
    """Yields the damage of both copies of the index of the newest generation."""
    for link in deque(walk_chain(file, superblock, file.size()), maxlen=1):
        yield from _check_copies_of(file, superblock, link)


def _check_copies_of(file: ArchiveFile, superblock: Superblock, link: Link) -> Iterator[str]:
    found = set()
    for copy in range(NUM_COPIES):
        try:
            footer = read_footer(file, superblock, link, copy)
            read_copy(file, footer)
            found.add((footer.columns_size, footer.columns_xxh3, footer.num_changes))
        except CorruptIndexError as error:
            yield f"generation {link.generation}: copy {copy} of the index: {error.message}"
    if len(found) > 1:
        yield f"generation {link.generation}: the copies of its index differ"
