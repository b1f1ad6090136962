"""One open archive: its entries and the contents of its files."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from itertools import pairwise
from types import TracebackType

from gompfs._native.blocks import FailureReason, ReadFailure, StoredSizes
from gompfs._native.text import PartHeads
from gompfs.archive.block_service import DEFAULT_CACHE_SIZE, BlockService
from gompfs.archive.entries import Entries
from gompfs.archive.part_heads import open_part_heads
from gompfs.archive.stored_blocks import StoredBlocks
from gompfs.codec import BlockStatus
from gompfs.codec.block import Buffer
from gompfs.engine import Engine, select_engine
from gompfs.errors import (
    CorruptBlockError,
    CorruptIndexError,
    EntryTypeError,
    GompfsError,
)
from gompfs.forks import call_in_child
from gompfs.format import ArchiveFile, LocalFile, check_copies, find_newest, read_columns, walk_chain
from gompfs.index.image import image_file
from gompfs.index.reader import IndexReader
from gompfs.light_types import TYPE_CHECKING
from gompfs.log import Logger
from gompfs.model import (
    Extent,
    Inode,
    Problem,
    Section,
    Segment,
)
from gompfs.remote import open_file, shown_url

if TYPE_CHECKING:
    from typing import NoReturn

    from gompfs._native.index import FileRows
    from gompfs.archive.announcements import Announcements

log = Logger(__name__)

_IMAGE_PIECE = 1 << 20


class Archive(Entries):
    """An archive opened for reading. Thread-safe.

    It can also be used in a child of os.fork. State that the parent's threads may have been using is not touched there;
    it is read again on first use, from the same file and for the same generation.
    """

    def __init__(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        *,
        file: ArchiveFile | None = None,
        engine: Engine | None = None,
        verify: bool = False,
        cache_size: int = DEFAULT_CACHE_SIZE,
        decode_ahead: int | None = None,
        keeps_columns: bool = False,
    ) -> None:
        """Open the archive at `path`. `engine` decodes its blocks; by default, `auto` chooses one.

        `file` supplies the bytes of the archive, and is closed with it; `path` is then only a name. By default, `path`
        is a local file, or the URL of a remote one. `verify` also compares decoded bytes with their checksums.
        `cache_size` limits the cache of decoded blocks, in bytes. `decode_ahead` limits the read-ahead for each reader,
        in bytes (None: the engine's batch size). `keeps_columns` keeps the columns of the index, for `file_rows`.
        Raises ArchiveFormatError and its subclasses, or OSError.
        """
        given = os.fsdecode(path)
        super().__init__(shown_url(given))
        self.warnings: list[str] = []
        self.engine = engine or select_engine()
        self.verifies_content = verify
        self._file = file or open_file(given)
        self._cache_size = cache_size
        self._decode_ahead = decode_ahead
        self._keeps_columns = keeps_columns
        self._is_inherited = False  # True in a child of a fork until the archive is opened again
        self._opening = threading.Lock()
        self._reading_sizes = threading.Lock()
        self.is_closed = False
        try:
            self._open()
        except GompfsError as error:
            self._file.close()
            error.archive = error.archive or self.path
            raise
        except BaseException:
            self._file.close()
            raise
        call_in_child(self, Archive._inherit)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an open archive cannot be pickled: open it in each process by its path; gompfs.torch.ArchiveDataset and "
            "the fsspec file system can be pickled"
        )

    def _open(self) -> None:
        newest = find_newest(self._file)
        self.superblock, self.footer, self.size = newest.superblock, newest.footer, newest.size
        self.index_footers = newest.footers
        self.block_size = self.superblock.block_size
        self._data_end = newest.data_end
        self.num_ignored_bytes = newest.num_ignored_bytes
        if newest.damage is not None:
            self.warnings.append(f"{self.path}: {newest.damage}; the other copy is used; see gompfs repair")
        if self.num_ignored_bytes:
            self.warnings.append(
                f"{self.path}: this is generation {self.footer.generation}; the {self.num_ignored_bytes} bytes after "
                "it are ignored: an add is running or was interrupted, or they are damaged; see gompfs repair"
            )
        self._columns = newest.columns if self._keeps_columns else None
        self._opened_index = self._make_index(newest.columns)
        self.meta = self._opened_index.meta()
        self.segments: list[Segment] = self._opened_index.segments()
        self.sections: list[Section] = self._opened_index.sections()
        self.num_blocks = sum(len(segment.blocks) for segment in self.segments)
        self.stored = StoredBlocks(
            self._file,
            self.engine,
            self.block_size,
            self.segments,
            self.path,
            verify=self.verifies_content,
            heads=self._open_heads(),
            announcements=self._make_announcements(),
        )
        self._opened_blocks = self._start_blocks()
        self._stored_sizes: StoredSizes | None = None

    def _read_index(self) -> IndexReader:
        return self._make_index(read_columns(self._file, self.index_footers))

    def _make_index(self, columns: Buffer) -> IndexReader:
        return IndexReader(columns, self.path, self._data_end, self.block_size)

    def _open_heads(self) -> PartHeads:
        threads = self.engine.num_threads
        return open_part_heads(self._file, threads, self.segments, self.sections, self.block_size, self._cache_size)

    def _make_announcements(self) -> Announcements | None:
        if isinstance(self._file, LocalFile):
            return None
        from gompfs.archive.announcements import Announcements

        return Announcements(self._file, self.block_size, self.segments, self.sections)

    def _start_blocks(self) -> BlockService:
        blocks = BlockService(
            self.stored,
            self._opened_index,
            self.num_blocks,
            self.block_size,
            self._cache_size,
            self.engine,
            self._decode_ahead,
        )
        if isinstance(self._file, LocalFile):
            blocks.read_from(self._file, self.segments, self.stored.heads, verify=self.verifies_content)
        return blocks

    @property
    def blocks(self) -> BlockService:
        """The decoded blocks of the stream.

        In a child of a fork, it may raise the same errors as opening the archive.
        """
        if self._is_inherited:
            self._open_again()
        return self._opened_blocks

    @property
    def index(self) -> IndexReader:
        """Queries on the entries. In a child of a fork, it may raise the same errors as opening the archive."""
        if self._is_inherited:
            self._open_again()
        return self._opened_index

    def file_rows(self) -> FileRows:
        """Returns the names, regular files and extents of the index. Raises CorruptIndexError."""
        return self.index.file_rows(self.index_columns())

    def index_columns(self) -> Buffer:
        """Returns the columns of the index. Raises CorruptIndexError."""
        return self._columns or read_columns(self._file, self.index_footers)

    def index_image(self) -> Iterator[bytes]:
        """Yields the bytes of a SQLite database with the rows of the index, in pieces. Raises CorruptIndexError.

        They are written to a temporary file first. Raises OSError if the disk is full.
        """
        with image_file(self.index_columns()) as file:
            file.seek(0)
            while piece := file.read(_IMAGE_PIECE):
                yield piece

    def _inherit(self) -> None:
        """Prepare for use in a child of a fork: drop all state of the parent's threads. The file stays open."""
        self._is_inherited = True
        self._opening = threading.Lock()
        self._reading_sizes = threading.Lock()

    def _open_again(self) -> None:
        with self._opening:
            if not self._is_inherited:
                return
            if self.is_closed:
                raise ValueError("the archive is closed")
            try:
                self._opened_index = self._read_index()
                self.stored.heads = self._open_heads()
                self._opened_blocks = self._start_blocks()
            except GompfsError as error:
                error.archive = error.archive or self.path
                raise
            self._is_inherited = False

    def close(self) -> None:
        """Release the file and the cache. A second call does nothing."""
        with self._opening:
            was_closed, self.is_closed = self.is_closed, True
            is_inherited = self._is_inherited
        if not was_closed:
            if not is_inherited:
                self._opened_blocks.close()
                self._opened_index.close()
            self._file.close()

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Contents

    def extents(self, ino: int) -> list[Extent]:
        """Returns the extents of a file by file_offset. Bytes outside them are zeros. Raises CorruptIndexError.

        They do not overlap; they are not checked against the stream. An inode that is not a regular file has none.
        """
        found = self.blocks.reader.extents(ino)
        if isinstance(found, ReadFailure):
            if found.reason is FailureReason.NO_SUCH_FILE:
                return []
            raise self.read_error(ino, found)
        return list(map(Extent._make, found))

    def stored_size(self, inode: Inode) -> int:
        """Returns how many bytes of an entry are not in holes. If its extents are damaged, that is its size."""
        if not stat.S_ISREG(inode.mode):
            return inode.size
        if self._stored_sizes is not None:
            return self._stored_sizes.of(inode.ino, inode.size)
        try:
            return min(inode.size, sum(extent.size for extent in self.extents(inode.ino)))
        except CorruptIndexError:
            return inode.size

    @property
    def knows_stored_sizes(self) -> bool:
        """Whether the stored sizes of all files have been read, which takes 15 ms per 100,000 files."""
        return self._stored_sizes is not None

    def stored_sizes(self) -> StoredSizes:
        """Returns the stored sizes of all files that have holes, by inode number. The first call reads the index.

        If the index is damaged, it returns the sizes before the damage. Attributes of files can then still be shown;
        reading a file with damaged extents raises the error.
        """
        sizes = self._stored_sizes
        if sizes is None:
            with self._reading_sizes:
                sizes = self._stored_sizes
                if sizes is None:
                    sizes = self._stored_sizes = self._read_stored_sizes()
        return sizes

    def _read_stored_sizes(self) -> StoredSizes:
        sizes = StoredSizes()
        try:
            for rows in self.index.stored_sizes():
                sizes.add(rows)
        except (CorruptIndexError, ValueError) as error:
            log.warning("%s: some files with holes are shown as if they had none: %s", self.path, error)
        return sizes

    def problems(self) -> Iterator[Problem]:
        """Yields violations of the format in superblock, footers and index. Slow."""
        if self.num_ignored_bytes:
            yield Problem(
                f"the {self.num_ignored_bytes} bytes after generation {self.footer.generation} are not a complete "
                "generation: an add is running or was interrupted, or they are damaged; see gompfs repair"
            )
        yield from map(Problem, check_copies(self._file, self.superblock))
        yield from self.index.problems(self.footer.generation)

    def generation_sizes(self) -> list[int]:
        """Returns the size of each generation in bytes, with its header and trailers."""
        ends = [0, *(link.position.end for link in walk_chain(self._file, self.superblock, self.size))]
        return [end - before for before, end in pairwise(ends)]

    def read(self, ino: int, file_offset: int, size: int) -> bytes:
        """Returns up to `size` bytes of a regular file from `file_offset` on, fewer only at the end of the file.

        Raises EntryNotFoundError, EntryTypeError, CorruptBlockError, CorruptIndexError.
        """
        pieces = self.read_pieces(ino, file_offset, max(size, 0))
        return bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)

    def read_pieces(self, ino: int, file_offset: int, size: int) -> list[memoryview]:
        """Returns the same bytes as `read`, as views of decoded blocks in order. Holes are views of zeros."""
        pieces = self.blocks.read(ino, file_offset, size)
        if isinstance(pieces, ReadFailure):
            raise self.read_error(ino, pieces)
        return pieces

    def decode_into(self, ino: int, file_offset: int, out: memoryview) -> None:
        """Decode a part of a file into `out`, which holds zeros, bypassing the cache.

        Raises what `read` raises, and OSError if there is no memory; `out` then holds arbitrary bytes.
        """
        failure = self.blocks.decode_into(ino, file_offset, out)
        if failure is not None:
            raise self.read_error(ino, failure)

    def read_error(self, ino: int, failure: ReadFailure) -> GompfsError:
        """Returns the error for a file that could not be read."""
        match failure.reason:
            case FailureReason.DAMAGED_BLOCK:
                reason = BlockStatus(failure.status).reason
                return CorruptBlockError(reason, archive=self.path, block=failure.block)
            case FailureReason.NO_SUCH_FILE:
                self.inode(ino)  # raises an error if there is none
                return EntryTypeError("is not a regular file", archive=self.path)
            case FailureReason.IMPOSSIBLE_EXTENTS:
                reason = f"the index is damaged: inode {ino} has impossible extents"
            case FailureReason.OUTSIDE_STREAM:
                reason = f"inode {ino} has bytes outside the stream"
            case _:
                reason = f"inode {ino} has bytes outside its segment"
        return CorruptIndexError(reason, archive=self.path)

    def announce_text(self) -> None:
        """Have a remote file fetch the words and heads of all parts, which the caller will read."""
        if self.stored.announcements is not None:
            self.stored.announcements.text()

    def read_section(self, section: Section) -> memoryview:
        """Returns the content of a section. Raises CorruptBlockError or CorruptIndexError."""
        return self.stored.read_section(section)
