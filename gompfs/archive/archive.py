"""One open archive: its entries and the contents of its files."""

from __future__ import annotations

import itertools
import os
import stat
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import add, attrgetter
from types import TracebackType
from typing import TypeVar

from gompfs._native.blocks import StoredSizes
from gompfs._native.codec import BufferPool
from gompfs.archive.block_service import DEFAULT_CACHE_SIZE, Block, BlockService
from gompfs.codec import BLOCK_HEADER_SIZE, MAX_EXPANSION, BlockStatus
from gompfs.engine import Engine, select_engine
from gompfs.errors import (
    CorruptBlockError,
    CorruptIndexError,
    EntryNotDirectoryError,
    EntryNotFoundError,
    GompfsError,
    StatsUnavailableError,
    SymlinkLoopError,
)
from gompfs.forks import call_in_child
from gompfs.format import ArchiveFile, LocalFile, check_earlier_footers, read_index
from gompfs.generations import find_newest
from gompfs.index.reader import IndexReader
from gompfs.index.visited import VisitedDirectories
from gompfs.model import (
    ROOT_INO,
    BlockPlaces,
    DirectoryEntry,
    Extent,
    Inode,
    PackedRows,
    Problem,
    Section,
    Segment,
)

_Found = TypeVar("_Found")
_MAX_SYMLINKS = 40
_SECTION_BATCH = 256  # blocks of a section that are decoded in one call
_LARGE_RUN = 1 << 20  # larger reads go to pooled buffers: touching fresh memory takes as long as reading
_SECTION_READERS = 4
_NEIGHBOURS = 64  # inodes fetched by one query: programs walk a tree in order
_MIN_PATHS_SIZE, _MEAN_PATH_SIZE = 16 << 20, 4096  # limits the memory for all paths: in all, and for each name
_MAX_CACHED_INODES = 1 << 17


class Archive:
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
    ) -> None:
        """Open the archive at `path`. `engine` decodes its blocks; by default, `auto` chooses one.

        `file` supplies the bytes of the archive, and is closed with it; `path` is then only a name. By default, `path`
        is a local file. `verify` also compares decoded bytes with their checksums. `cache_size` limits the cache of
        decoded blocks, in bytes. `decode_ahead` limits the read-ahead for each reader, in bytes (None: the engine's
        batch size). Raises ArchiveFormatError and its subclasses, or OSError.
        """
        self.path = os.fsdecode(path)
        self.warnings: list[str] = []
        self.engine = engine or select_engine()
        self.verifies_content = verify
        self._runs = BufferPool()  # buffers for large reads of the file
        self._file = file or LocalFile.open(self.path)
        self._cache_size = cache_size
        self._decode_ahead = decode_ahead
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

    def _open(self) -> None:
        newest = find_newest(self._file)
        self.superblock, self.footer, self.size = newest.superblock, newest.footer, newest.size
        self.block_size = self.superblock.block_size
        self.num_ignored_bytes = newest.num_ignored_bytes
        if self.num_ignored_bytes:
            self.warnings.append(
                f"{self.path}: this is generation {self.footer.generation}; the {self.num_ignored_bytes} bytes after "
                "it are ignored: an add is running or was interrupted, or they are damaged; see gompfs repair"
            )
        self._opened_index = self._make_index(newest.image)
        self.meta = self._opened_index.meta()
        self.segments: list[Segment] = self._opened_index.segments()
        self.sections: list[Section] = self._opened_index.sections()
        self.num_blocks = sum(len(segment.places) for segment in self.segments)
        self._opened_blocks = self._start_blocks()
        self._inodes: dict[int, Inode] = {}
        self._extents: dict[int, list[Extent]] = {}
        self._stored_sizes: StoredSizes | None = None

    def _read_index(self) -> IndexReader:
        return self._make_index(read_index(self._file, self.footer))

    def _make_index(self, image: bytes) -> IndexReader:
        return IndexReader(image, self.path, self.footer.index_offset, self.block_size)

    def _start_blocks(self) -> BlockService:
        blocks = BlockService(
            self._decode_blocks,
            self.num_blocks,
            self.block_size,
            self._cache_size,
            self.engine,
            self._decode_ahead,
        )
        if isinstance(self._file, LocalFile) and self.engine.decodes_on_cpu(self.block_size):
            blocks.read_from(self._file.duplicate(), self.segments, verify=self.verifies_content)
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
    def _index(self) -> IndexReader:
        if self._is_inherited:
            self._open_again()
        return self._opened_index

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

    # Entries

    def inode(self, ino: int) -> Inode:
        """Returns the inode of a number. Raises EntryNotFoundError."""
        found = self._inodes.get(ino)
        if found is None:
            if len(self._inodes) > _MAX_CACHED_INODES:
                self._inodes.clear()
            self._inodes |= (inodes := _with_neighbours(self._index.inodes, ino))
            found = inodes.get(ino)
            if found is None:
                raise EntryNotFoundError(f"no inode {ino}", archive=self.path)
        return found

    def extents(self, ino: int) -> list[Extent]:
        """Returns the extents of a file by file_offset. Bytes outside them are zeros. Raises CorruptIndexError."""
        found = self._extents.get(ino)
        if found is None:
            if len(self._extents) > _MAX_CACHED_INODES:
                self._extents.clear()
            self._extents |= (extents := _with_neighbours(self._index.extents, ino))
            found = extents[ino]
        return found

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
            for rows in self._index.stored_sizes():
                sizes.add(rows)
        except (CorruptIndexError, ValueError) as error:
            import logging  # takes 3 ms, too long for commands that only read

            log = logging.getLogger(__name__)
            log.warning("%s: some files with holes are shown as if they had none: %s", self.path, error)
        return sizes

    def list_directory(self, ino: int) -> list[DirectoryEntry]:
        """Returns the entries of a directory in byte order of their names, or an empty list for anything else."""
        return self._index.directory(ino)

    def directories(self, first: int, max_entries: int) -> PackedRows:
        """Returns packed rows of the directories from inode number `first` on. Raises CorruptIndexError."""
        return self._index.directories(first, max_entries)

    def layouts(self, first: int, max_extents: int) -> PackedRows:
        """Returns packed rows of the extents of files from inode number `first` on. Raises CorruptIndexError."""
        return self._index.layouts(first, max_extents)

    def lookup(self, parent: int, name: bytes) -> Inode | None:
        """Returns the entry of a directory that has a name, or None."""
        return self._index.child(parent, name)

    def resolve(self, path: str | bytes, *, follow: bool = False) -> Inode:
        """Returns the inode at a path from the archive's root. A leading slash changes nothing.

        With `follow`, a symlink at the end of the path is followed. Symlinks on the way are always followed, inside the
        archive. Raises EntryNotFoundError, EntryNotDirectoryError, SymlinkLoopError.
        """
        inode = self.inode(ROOT_INO)
        parents: list[Inode] = []
        rest = [part for part in os.fsencode(path).split(b"/") if part not in (b"", b".")]
        links = 0
        while rest:
            name = rest.pop(0)
            if not stat.S_ISDIR(inode.mode):
                raise EntryNotDirectoryError("not a directory", archive=self.path, path=path)
            if name == b"..":
                inode = parents.pop() if parents else inode
                continue
            child = self.lookup(inode.ino, name)
            if child is None:
                raise EntryNotFoundError("no such file or directory", archive=self.path, path=path)
            if stat.S_ISLNK(child.mode) and (rest or follow):
                links += 1
                target = child.symlink_target or b""
                if links > _MAX_SYMLINKS:
                    raise SymlinkLoopError("too many levels of symbolic links", archive=self.path, path=path)
                if target.startswith(b"/"):
                    inode, parents = self.inode(ROOT_INO), []
                rest = [part for part in target.split(b"/") if part not in (b"", b".")] + rest
                continue
            parents.append(inode)
            inode = child
        return inode

    def walk(self, path: str | bytes = b"") -> Iterator[tuple[bytes, Inode]]:
        """Yields every entry at and below a path, depth first, with its path from the archive's root."""
        start = self.resolve(path)
        base = b"/".join(part for part in os.fsencode(path).split(b"/") if part not in (b"", b"."))
        return self.walk_from(base, start)

    def walk_from(self, place: bytes, inode: Inode) -> Iterator[tuple[bytes, Inode]]:
        """Like `walk`, but from an entry at the path `place`. Only one path is in memory, at any depth."""
        visited = VisitedDirectories(self.path)
        directory = place
        levels: list[tuple[int, Iterator[DirectoryEntry]]] = []  # size of a directory's path, its remaining entries
        while True:
            yield place, inode
            if stat.S_ISDIR(inode.mode):
                visited.enter(inode.ino, place)
                directory = place
                levels.append((len(place), iter(self._index.directory(inode.ino))))
            entry = None
            while levels and entry is None:
                size, entries = levels[-1]
                entry = next(entries, None)
                if entry is None:
                    levels.pop()
            if entry is None:
                return
            directory = directory[:size]
            place, inode = directory + b"/" + entry.name if directory else entry.name, entry.inode

    def xattrs(self, ino: int) -> dict[bytes, bytes]:
        """Returns the extended attributes of an inode."""
        return self._index.xattrs(ino) if self.has_xattrs() else {}

    def has_xattrs(self) -> bool:
        """Returns whether any entry has extended attributes."""
        if not hasattr(self, "_any_xattrs"):
            self._any_xattrs = self._index.has_xattrs()
        return self._any_xattrs

    def inodes_with_xattrs(self) -> list[int]:
        """Returns the numbers of the inodes that have extended attributes, in ascending order."""
        return self._index.inodes_with_xattrs()

    def totals(self) -> tuple[int, int]:
        """Returns the number of inodes, and the sum of the sizes of regular files in bytes."""
        return self._index.totals()

    def modes(self) -> list[int]:
        """Returns the modes of all inodes, each different one once. Raises CorruptIndexError."""
        return self._index.modes()

    def binary_files(self) -> list[int]:
        """Returns the inodes of the binary files, which the grammar leaves out."""
        return self._index.binary_files()

    def file_sizes(self) -> Iterator[list[tuple[int, int]]]:
        """Yields lists of rows (ino, size) of all regular files, by ino. Raises CorruptIndexError."""
        return self._index.file_sizes()

    def all_extents(self) -> Iterator[list[tuple[int, int, int, int]]]:
        """Yields lists of rows (ino, file_offset, stream_offset, size) of all extents, by ino and file_offset.

        The rows are not checked. Raises CorruptIndexError.
        """
        return self._index.all_extents()

    def inode_numbers(self) -> set[int]:
        """Returns the numbers of all inodes."""
        return {int(number) for numbers in self.inode_number_lists() for number in numbers.split(",")}

    def inode_number_lists(self) -> Iterator[str]:
        """Yields the numbers of all inodes in ascending order, as strings of many numbers with commas between them."""
        return self._index.inode_numbers()

    def path_of(self, ino: int) -> bytes:
        """Returns one path of an inode, or an empty path if it has no name. Slow: meant for messages."""
        parts: list[bytes] = []
        seen: set[int] = set()
        while ino not in seen and (found := self._index.name_of(ino)) is not None:
            seen.add(ino)
            ino, name = found
            parts.append(name)
        return b"/".join(reversed(parts))

    def paths(self) -> dict[int, bytes]:
        """Returns one path of every inode that can be reached from the root.

        Raises StatsUnavailableError if the paths of deep directories would need too much memory.
        """
        parents = {ino: (parent, name) for parent, name, ino in self._index.names()}
        paths: dict[int, bytes | None] = {ROOT_INO: b""}
        room = _MIN_PATHS_SIZE + _MEAN_PATH_SIZE * len(parents)
        for ino in parents:
            chain: list[int] = []
            while ino not in paths and ino in parents:
                chain.append(ino)
                paths[ino] = None  # until its path is known; it stays None in a directory that contains itself
                ino = parents[ino][0]
            path = paths.get(ino)
            for child in reversed(chain):
                name = parents[child][1]
                if path is not None:
                    path = path + b"/" + name if path else name
                    room -= len(path)
                    if room < 0:
                        raise StatsUnavailableError("the paths of its files take too much memory", archive=self.path)
                paths[child] = path
        return {ino: path for ino, path in paths.items() if path is not None}

    def problems(self) -> Iterator[Problem]:
        """Yields violations of the format in superblock, footers and index. Slow."""
        if self.num_ignored_bytes:
            yield Problem(
                f"the {self.num_ignored_bytes} bytes after generation {self.footer.generation} are not a complete "
                "generation: an add is running or was interrupted, or they are damaged; see gompfs repair"
            )
        yield from map(Problem, check_earlier_footers(self._file, self.footer))
        yield from self._index.problems()

    # Contents

    def read(self, ino: int, file_offset: int, size: int) -> bytes:
        """Returns up to `size` bytes of a regular file from `file_offset` on, fewer only at the end of the file.

        Raises EntryNotFoundError, CorruptBlockError, CorruptIndexError.
        """
        inode = self.inode(ino)
        size = max(min(size, inode.size - file_offset), 0)
        pieces = self.read_pieces(ino, file_offset, size)
        return bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)

    def read_pieces(
        self, ino: int, file_offset: int, size: int, *, keep: bool = True
    ) -> list[memoryview | bytes]:
        """Returns the same bytes as `read`, as views of decoded blocks in order. Holes are returned as zeros.

        The range must lie inside the file. With `keep=False`, the blocks bypass the cache.
        """
        pieces: list[memoryview | bytes] = []
        position = file_offset
        end = file_offset + size
        for extent in self._extents_from(ino, file_offset):
            extent_end = extent.file_offset + extent.size
            if extent_end <= position:
                continue
            if extent.file_offset >= end:
                break
            if extent.file_offset > position:
                pieces.append(bytes(extent.file_offset - position))
                position = extent.file_offset
            piece_size = min(extent_end, end) - position
            stream_offset = extent.stream_offset + position - extent.file_offset
            pieces.extend(self._stream(ino, stream_offset, piece_size, keep))
            position += piece_size
        if position < end:
            pieces.append(bytes(end - position))
        return pieces

    def decode_into(self, ino: int, file_offset: int, out: memoryview) -> bool:
        """Decode a range of a file into `out`, which holds zeros, bypassing the cache, as fast as the CPU can.

        Returns False if the CPU does not decode the blocks, or if a block is damaged; `out` then holds arbitrary bytes,
        and `read_pieces` returns the range or raises the error.
        """
        end = file_offset + len(out)
        for extent in self._extents_from(ino, file_offset):
            if extent.file_offset >= end:
                break
            begin = max(extent.file_offset, file_offset)
            size = min(extent.file_offset + extent.size, end) - begin
            stream_offset = extent.stream_offset + begin - extent.file_offset
            target = out[begin - file_offset : begin - file_offset + max(size, 0)]
            if size > 0 and not self.blocks.decode_into(stream_offset, target):
                return False
        return True

    def _extents_from(self, ino: int, file_offset: int) -> Iterator[Extent]:
        """Yields the extents of a file from the last one that begins at or before `file_offset` on."""
        extents = self.extents(ino)
        first = max(bisect_right(extents, file_offset, key=attrgetter("file_offset")) - 1, 0)
        return map(extents.__getitem__, range(first, len(extents)))

    def _stream(self, ino: int, stream_offset: int, size: int, keep: bool) -> Iterator[memoryview]:
        first = stream_offset // self.block_size
        last = (stream_offset + size - 1) // self.block_size
        if last >= self.num_blocks:
            raise CorruptIndexError(f"inode {ino} has bytes outside the stream", archive=self.path)
        numbers = range(first, last + 1)
        blocks = self.blocks.get(ino, stream_offset, size) if keep else self._decode_blocks(numbers)
        for number, block in zip(numbers, blocks, strict=True):
            if block.status is not BlockStatus.OK:
                raise CorruptBlockError(block.status.reason, archive=self.path, block=number)
            start = max(stream_offset - number * self.block_size, 0)
            end = min(stream_offset + size - number * self.block_size, self.block_size)
            if end > len(block.content):
                raise CorruptIndexError(f"inode {ino} has bytes outside its segment", archive=self.path)
            yield block.content[start:end]

    def read_section(self, section: Section) -> memoryview:
        """Returns the content of a section. Raises CorruptBlockError or CorruptIndexError."""
        from concurrent.futures import ThreadPoolExecutor  # only statistics read sections

        self.check_section(section)
        places = section.places
        content = BufferPool().allocate(places.uncompressed_size)

        def decode(first: int) -> list[Block]:
            count = min(_SECTION_BATCH, len(places) - first)
            out = content[first * self.block_size : (first + count) * self.block_size]
            return self.decode_places(places, range(first, first + count), out=out)

        # While one batch is read from the file, others are decoded.
        with ThreadPoolExecutor(_SECTION_READERS, thread_name_prefix="gompfs-section") as executor:
            batches = executor.map(decode, range(0, len(places), _SECTION_BATCH))
            for number, block in enumerate(itertools.chain.from_iterable(batches)):
                if block.status is not BlockStatus.OK:
                    raise CorruptBlockError(
                        f"section {section.kind} of segment {section.segment}: {block.status.reason}",
                        archive=self.path,
                        block=number,
                    )
        self._runs.drop_free()
        return content.toreadonly()

    def check_section(self, section: Section) -> None:
        """Raise CorruptIndexError unless the blocks of a section can hold as many bytes as the index says.

        This bounds the memory for a section in proportion to the size of the archive, whatever the index claims.
        """
        places = section.places
        blocks = sorted(zip(places.archive_offsets, places.compressed_sizes, strict=True))
        reason = ""
        if any(offset + size > other for (offset, size), (other, _) in itertools.pairwise(blocks)):
            reason = "blocks that overlap"
        payload_sizes = (size - BLOCK_HEADER_SIZE for size in places.compressed_sizes)
        sizes = self._sizes(places, range(len(places)))
        if any(size > MAX_EXPANSION * payload for size, payload in zip(sizes, payload_sizes, strict=True)):
            reason = "blocks that are too small for their content"
        if reason:
            name = f"section {section.kind} of segment {section.segment}"
            raise CorruptIndexError(f"the index is damaged: {name} has {reason}", archive=self.path)

    def decode_stream_blocks(self, first: int, count: int) -> list[Block]:
        """Decode blocks of the stream, bypassing the cache. A damaged block is returned with its status."""
        return self._decode_blocks(range(first, first + count))

    def _decode_blocks(self, numbers: Sequence[int]) -> list[Block]:
        decoded: list[Block] = []
        for segment, places in self._parts_of_segments(numbers):
            decoded += self.decode_places(segment.places, places)
        return decoded

    def read_stream_blocks(self, first: int, count: int) -> tuple[list[memoryview], list[int]]:
        """Returns stored blocks of the stream without checking them, and how many bytes each should decompress to."""
        blocks: list[memoryview] = []
        sizes: list[int] = []
        for segment, numbers in self._parts_of_segments(range(first, first + count)):
            blocks += self._read_blocks(segment.places, numbers)
            sizes += self._sizes(segment.places, numbers)
        return blocks, sizes

    def _parts_of_segments(self, numbers: Sequence[int]) -> Iterator[tuple[Segment, list[int]]]:
        """Yields segments, and block numbers relative to them, for ascending block numbers of the stream."""
        for segment in self.segments:
            start = bisect_left(numbers, segment.first_block)
            end = bisect_left(numbers, segment.first_block + len(segment.places))
            if start < end:
                yield segment, [number - segment.first_block for number in numbers[start:end]]

    def _sizes(self, places: BlockPlaces, numbers: Sequence[int]) -> list[int]:
        return [min(places.uncompressed_size - number * self.block_size, self.block_size) for number in numbers]

    def decode_places(
        self, places: BlockPlaces, numbers: Sequence[int], *, verify: bool = False, out: memoryview | None = None
    ) -> list[Block]:
        """Decode the blocks of `places` that have the ascending indexes `numbers`. A damaged block has its status.

        The contents returned are views of `out`, which must be large enough for all, or of memory from the engine.
        """
        sizes = self._sizes(places, numbers)
        raw = self._read_blocks(places, numbers)
        if out is None:
            out = self.engine.allocate(sum(sizes))
        statuses = self.engine.decode_blocks(raw, out, sizes=sizes, verify=verify or self.verifies_content)
        decoded = out.toreadonly()
        ends = itertools.accumulate(sizes)
        return [
            Block(decoded[end - size : end], status) for end, size, status in zip(ends, sizes, statuses, strict=True)
        ]

    def _read_blocks(self, places: BlockPlaces, numbers: Sequence[int]) -> list[memoryview]:
        """Returns the compressed bytes of blocks. Adjacent blocks are read at once.

        A block that extends beyond the end of the file is returned in part.
        """
        offsets = [places.archive_offsets[number] for number in numbers]
        sizes = [places.compressed_sizes[number] for number in numbers]
        start, end = offsets[0], max(map(add, offsets, sizes))
        if offsets == sorted(offsets) and end - start <= sum(sizes) + len(sizes) * BLOCK_HEADER_SIZE:
            run = self._read_run(end - start, start)
            return [
                run[offset - start : offset - start + size]
                for offset, size in zip(offsets, sizes, strict=True)
            ]
        return [
            memoryview(self._file.read(size, offset))
            for offset, size in zip(offsets, sizes, strict=True)
        ]

    def _read_run(self, size: int, archive_offset: int) -> memoryview:
        if size < _LARGE_RUN:
            return memoryview(self._file.read(size, archive_offset))
        buffer = self._runs.allocate(size)
        return buffer[: self._file.read_into(buffer, archive_offset)]


def _with_neighbours(look_up: Callable[[int, int], dict[int, _Found]], ino: int) -> dict[int, _Found]:
    """Returns `look_up(first, count)` for an inode and some after it, or for it alone if one of them is damaged."""
    try:
        return look_up(ino, _NEIGHBOURS)
    except CorruptIndexError:
        return look_up(ino, 1)
