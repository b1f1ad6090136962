"""Stores the contents of a segment's regular files, equal files once, and equal bytes of the stream once.

A file whose content is in the archive that is added to gets the extents of the file that has it. Of a new version of a
file of the archive, what that has is not stored again, and the new bytes go to the stream. Other contents are stored:
with the codec gompresso-tadoc, text goes to parts that are stored as grammars; with the other codecs, all bytes go to
the same blocks.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from array import array
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

from gompfs._native.sources import KnownContents, LoadedFiles, PieceHashes, Place
from gompfs.codec import BLOCK_HEADER_SIZE, Codec, CodecOptions, EncodedBlock
from gompfs.codec.words import max_word_bytes, num_word_bytes
from gompfs.engine import Engine
from gompfs.errors import display_path
from gompfs.index.writer import IndexWriter
from gompfs.index.written_blocks import WrittenBlocks
from gompfs.light_types import replaced
from gompfs.model import WORD_SECTION, Extent, WrittenPart
from gompfs.options import PackOptions
from gompfs.pack.large_contents import LargeContents
from gompfs.pack.sources.base import SourceEntry, fill
from gompfs.pack.sources.local_file import MAX_WHOLE_SIZE
from gompfs.pack.stream import BlockWriter, ChooseDictionary, StreamWriter
from gompfs.pack.text_parts import TextParts
from gompfs.text import PROBE_SIZE, is_text
from gompfs.threads import default_threads, threads_limited_to

if TYPE_CHECKING:
    from gompfs._native.codec import Dictionary
    from gompfs.pack.archived_contents import ArchivedContents
    from gompfs.pack.archived_files import ArchivedFiles

_PIECE_SIZE = 8 << 20  # of large files
_HEADS_IN_MEMORY = 64 << 20  # bytes; all others wait in a file


class ContentWriter:
    """Takes the contents of files in any order. Extents of text are known, and written, only in `finish`."""

    def __init__(
        self,
        index: IndexWriter,
        writer: BlockWriter,
        engine: Engine,
        options: PackOptions,
        block_size: int,
        first_block: int,
        dictionary: Dictionary | ChooseDictionary | None = None,
        archived: ArchivedFiles | None = None,
    ) -> None:
        """Write extents to `index` and blocks to `writer`. The first block gets the number `first_block`.

        `dictionary` is that of the archive, which the blocks of gompresso-bit use, or chooses it. `archived` are the
        files of the archive that is added to.
        """
        self.warnings: list[str] = []
        self.num_duplicates = 0
        self.num_archived = 0
        self.num_unchanged = 0
        self._num_wrong = 0
        self._index = index
        self._writer = writer
        self._engine = engine
        self._num_threads = engine.num_threads or default_threads()
        self._num_reencoded = engine.num_reencoded
        self._options = options
        self._block_size = block_size
        self._first_block = first_block
        self._known = KnownContents(tempfile.gettempdir())
        self._large = LargeContents()  # contents of more than MAX_WHOLE_SIZE bytes
        self._archived_files = archived
        self._archived = self._large_archived = self._versions = None
        self._composed: list[array[int]] = []  # of each composed content: file_offset, stream_offset, size of extents
        if archived is not None:
            # Only `add` needs these modules, which import NumPy: that takes longer than a small pack.
            from gompfs.pack.archived_contents import ArchivedContents
            from gompfs.pack.archived_large import LargeArchivedContents
            from gompfs.pack.older_versions import OlderVersions

            self._versions = OlderVersions(archived)
            self._archived = ArchivedContents(archived, self._known, engine.num_threads)
            self._large_archived = LargeArchivedContents(archived)
        part_size = options.part_size
        self._text: TextParts | None = None
        if options.text_as_grammar:
            self._text = TextParts(
                options.words, block_size, part_size, options.jobs, tempfile.gettempdir(), options.level
            )
            part_size = None
        codec = options.data_codec()
        used = dictionary if codec.codec is Codec.GOMPRESSO_BIT else None
        # A GPU decodes the blocks that it encodes, and compares them.
        self._check = options.check and engine.name != "gpu"
        self._stream = StreamWriter(writer, engine, block_size, codec, part_size, used, check=self._check)

    @property
    def takes_files(self) -> bool:
        """Whether `add_files` can be called."""
        return self._stream.has_one_part

    def add_files(self, first_ino: int, directory: bytes, files: LoadedFiles) -> None:
        """Store the contents of files of a directory. They get inode numbers from `first_ino` on."""
        text = self._text
        num_composed = len(self._composed)
        if self._archived is not None:
            self._look_up(self._archived, directory, files)
        num_composed = len(self._composed) - num_composed
        text_file = text.num_files if text is not None else None
        placed = self._known.place(files, first_ino, text_file, self._num_threads)
        self.num_duplicates += placed.num_duplicates + len(placed.composed) - num_composed
        if text is not None:
            text.add_contents(placed.new_in_text)
            text.add_inodes(placed.in_text)
        self._index.add_binary_files(placed.binary)
        self._stream.append_contents(placed.new_in_stream)
        start = self._first_block * self._block_size
        self._index.add_extent_rows(
            [(ino, file_offset, start + position, size) for ino, file_offset, position, size in placed.in_stream]
        )
        for ino, archived_ino in placed.in_archive:
            self._refer_to_archived(ino, archived_ino)
        for ino, number in placed.composed:
            self._refer(ino, Place.COMPOSED, number)
        num_found = len(placed.in_archive) - placed.num_unchanged
        self.num_unchanged += placed.num_unchanged
        self.num_archived += num_found
        if self._archived is not None and num_found:
            self._archived.note_found(placed.in_archive[-1][1])

    def _look_up(self, archived: ArchivedContents, directory: bytes, files: LoadedFiles) -> None:
        """Look for the contents of files that are not known: first at the same paths."""
        archived.allow_for(files.size_read)
        if unknown := self._known.unknown(files):
            archived.look_up(directory, unknown)
        if unknown := self._known.unknown(files):
            archived.look_up_sizes([size for _, size in unknown])
        for name, content, sha256 in self._known.unknown_contents(files):
            # Two files of the directory may have the same content.
            if content is not None and sha256 is not None and self._known.find(sha256) is None:
                self._compose(directory, name, content, sha256)

    def _compose(self, directory: bytes, name: bytes, content: bytes | memoryview, sha256: bytes) -> bool:
        """Store only what is new in a file, if the archive has most of it. Returns whether it has."""
        if self._versions is None or (found := self._versions.compose(directory, name, content)) is None:
            return False
        extents = found.shared
        for begin, size in found.new:
            self._append(content[begin : begin + size])
            extents += self._extents(begin, self._known.end_content())
        extents.sort()
        self._known.add(sha256, Place.COMPOSED, len(self._composed))
        self._composed.append(array("Q", chain.from_iterable(extents)))
        return True

    def add(self, ino: int, entry: SourceEntry) -> int:
        """Store the content of a regular file. Returns the size that was stored."""
        if entry.archived_ino is not None:
            self.num_unchanged += 1
            self._refer_to_archived(ino, entry.archived_ino)
            return entry.size
        if entry.size == 0 and entry.can_reopen:
            return 0
        if entry.size <= MAX_WHOLE_SIZE and entry.data_ranges is None:
            return self._add_whole(ino, entry)
        with threads_limited_to(self._engine.num_threads):
            if entry.can_reopen and (known := self._find(entry)) is not None:
                if known[0] is not Place.ARCHIVE:
                    with entry.open() as file:
                        self._note_kind(ino, _head_of(entry, file))
                self._refer_to_known(ino, known)
                return entry.size
            return self._add_pieces(ino, entry)

    @property
    def size(self) -> int:
        """The number of bytes stored, each once; complete after `finish`."""
        return self._stream.size + (self._text.size if self._text is not None else 0)

    def finish(self, segment: int) -> None:
        """Write what is left, and the rows of the segment and its sections."""
        blocks = self._stream.finish()
        parts = [WrittenPart(kind, size) for kind, size in self._stream.parts]
        if self._text is not None:
            self._text.finish()
            # Parts of text follow the last block of the stream.
            start = self._first_block * self._block_size + self._stream.address
            for rows in self._text.extent_rows(start):
                self._index.add_extent_rows(rows)
            self._write_text(self._text, parts, blocks)
        self._index.add_segment(segment, self._first_block, blocks, parts)
        if self._text is not None:
            words = self._text.word_section()
            # Without words that parts share, only a segment without text needs the section.
            if any(words) or not self._text.size:
                self._write_words(segment, words)
        self._num_wrong += self._stream.num_wrong + (self._text.num_wrong if self._text is not None else 0)
        if self._num_wrong:
            self.warnings.append(
                f"{self._num_wrong} blocks did not decode to their content, and were stored in another codec; "
                "this is a defect of gompfs or of this computer"
            )
        if num_wrong := self._engine.num_reencoded - self._num_reencoded:
            self.warnings.append(f"the GPU encoded {num_wrong} blocks wrongly; the CPU encoded them again")

    def _write_words(self, segment: int, words: bytes) -> None:
        codec = replaced(self._options.data_codec(), dependency_elimination=False)
        # Words that share long prefixes with their neighbours may be too many for compressed blocks.
        for options in (codec, CodecOptions(Codec.STORED)):
            section = self._section(options)
            section.append(words)
            blocks = section.finish()
            self._num_wrong += section.num_wrong
            num_stored = sum(blocks.compressed_sizes) - BLOCK_HEADER_SIZE * len(blocks)
            if num_word_bytes(words) <= max_word_bytes(num_stored):
                break
        self._index.add_section(segment, WORD_SECTION, section.size, blocks)

    def _write_text(self, text: TextParts, parts: list[WrittenPart], blocks: WrittenBlocks) -> None:
        """Write the blocks of all text, then the heads of its parts. Appends to `parts` and `blocks`."""
        head_sizes = []
        first = len(parts)
        with tempfile.SpooledTemporaryFile(_HEADS_IN_MEMORY) as heads:
            for kind, size, head, encoded in text.encoded():
                blocks.extend(self._writer.write(encoded))
                parts.append(WrittenPart(kind, size))
                head_sizes.append(heads.write(head.data) if head is not None else 0)
            heads.seek(0)
            for number, size in enumerate(head_sizes, first):
                if size:
                    written = self._writer.write([EncodedBlock(heads.read(size), Codec.HEAD, 0)])
                    parts[number] = parts[number]._replace(head=written[0])

    def _section(self, codec: CodecOptions) -> StreamWriter:
        return StreamWriter(self._writer, self._engine, self._block_size, codec, check=self._check)

    def abandon(self) -> None:
        """Stop all work in progress."""
        self._stream.abandon()

    def _add_whole(self, ino: int, entry: SourceEntry) -> int:
        content = entry.read_all() if entry.size else b""
        if len(content) != entry.size:
            self.warnings.append(f"{display_path(entry.path)}: file changed as we read it")
            content = content[: entry.size]
        known = None
        sha256 = entry.sha256 or hashlib.sha256(content).digest()
        if content:
            known = self._find_whole(entry.path, len(content), sha256)
        if known is None or known[0] is not Place.ARCHIVE:
            text = self._text if self._note_kind(ino, content) else None
        if known is not None:
            self._refer_to_known(ino, known)
        elif content and self._compose(*_directory_and_name(entry.path), content, sha256):
            self._refer(ino, Place.COMPOSED, len(self._composed) - 1)
        elif content:
            known = self._store_whole(content, text)
            self._known.add(sha256, *known)
            self._refer(ino, *known)
        return len(content)

    def _find_whole(self, path: bytes, size: int, sha256: bytes) -> tuple[Place, int] | None:
        """Returns where a content of a size and a hash is stored, or None. The archive is searched for it."""
        if self._archived is not None:
            self._archived.allow_for(size)
        known = self._known.find(sha256)
        if known is None and self._archived is not None:
            directory, name = _directory_and_name(path)
            self._archived.look_up(directory, [(name, size)])
            known = self._known.find(sha256)
            if known is None:
                self._archived.look_up_sizes([size])
                known = self._known.find(sha256)
        if self._archived is not None and known is not None and known[0] is Place.ARCHIVE:
            self._archived.note_found(known[1])
        return known

    def _store_whole(self, content: bytes | memoryview, text: TextParts | None) -> tuple[Place, int]:
        if text is not None:
            return Place.TEXT, text.add_file(content)
        self._append(content)
        return Place.STREAM, self._known.end_content()

    def _append(self, piece: bytes | memoryview) -> None:
        """Add bytes of a content to the stream, without what it has already."""
        view = memoryview(piece)
        for begin, size in self._known.add_piece(view, self._num_threads):
            self._stream.append(view[begin : begin + size])

    def _add_pieces(self, ino: int, entry: SourceEntry) -> int:
        """Store a large or sparse file piece by piece."""
        with entry.open() as file:
            if entry.data_ranges is not None:
                self._index.add_binary_files((ino,))
                return self._add_data(ino, entry, _Content(entry, file, b""))
            head = _head_of(entry, file)
            content = _Content(entry, file, head)
            if self._note_kind(ino, head) and self._text is not None:
                return self._add_text(ino, entry, content, self._text)
            return self._add_data(ino, entry, content)

    def _note_kind(self, ino: int, head: bytes | memoryview) -> bool:
        """List a file as binary unless it is text. Returns whether it is."""
        found = is_text(head)
        if not found:
            self._index.add_binary_files((ino,))
        return found

    def _add_text(self, ino: int, entry: SourceEntry, content: _Content, text: TextParts) -> int:
        """Store a large file as text, piece by piece."""
        try:
            while content.position < entry.size and (
                piece := content.read(min(_PIECE_SIZE, entry.size - content.position))
            ):
                text.add_bytes(piece)
        finally:
            number = text.end_file()
        size = content.position
        if size < entry.size:
            self._warn_of_shrinking(entry)
        else:
            self._large.add(size, content.hashes, Place.TEXT, number)
        self._refer(ino, Place.TEXT, number)
        return entry.size

    def _add_data(self, ino: int, entry: SourceEntry, content: _Content) -> int:
        """Store a large or sparse file in the stream, piece by piece. Holes get no extent."""
        number = -1
        for start, size in entry.data_ranges if entry.data_ranges is not None else [(0, entry.size)]:
            content.skip_to(start)
            while content.position < start + size:
                piece = content.read(min(_PIECE_SIZE, start + size - content.position))
                if not piece:
                    break
                self._append(piece)
            number = self._known.end_content()
            self._index.add_extents(ino, self._extents(start, number))
            if content.position < start + size:
                self._warn_of_shrinking(entry)
                break
        if entry.data_ranges is None and content.position == entry.size:
            self._large.add(entry.size, content.hashes, Place.STREAM, number)
        return entry.size

    def _warn_of_shrinking(self, entry: SourceEntry) -> None:
        self.warnings.append(f"{display_path(entry.path)}: file shrank as we read it; padded with zeros")

    def _find(self, entry: SourceEntry) -> tuple[Place, int] | None:
        """Returns where the content of a large or sparse entry that can be reopened is stored, or None."""
        found = self._find_in_segment(entry)
        if found is None and self._large_archived is not None:
            ino = self._large_archived.find(entry)
            return None if ino is None else (Place.ARCHIVE, ino)
        return found

    def _find_in_segment(self, entry: SourceEntry) -> tuple[Place, int] | None:
        if entry.size > MAX_WHOLE_SIZE:
            return self._large.find(entry)
        return self._known.find(hashlib.sha256(entry.read_all()).digest())

    # Extents

    def _extents(self, file_offset: int, number: int) -> list[Extent]:
        """Returns the extents of a file whose bytes from `file_offset` on are a content of the stream."""
        extents = []
        start = self._first_block * self._block_size
        for position, size in self._known.runs(number):
            for address, count in self._stream.runs(position, size):
                extents.append(Extent(file_offset, start + address, count))
                file_offset += count
        return extents

    def _refer_to_known(self, ino: int, known: tuple[Place, int]) -> None:
        """Give a file a content that was stored before."""
        if known[0] is Place.ARCHIVE:
            self.num_archived += 1
        else:
            self.num_duplicates += 1
        self._refer(ino, *known)

    def _refer(self, ino: int, place: Place, where: int) -> None:
        """Give a file a content that is stored; see KnownContents."""
        match place:
            case Place.TEXT:
                assert self._text is not None
                self._text.add_inodes([(ino, where)])
            case Place.STREAM:
                self._index.add_extents(ino, self._extents(0, where))
            case Place.COMPOSED:
                numbers = iter(self._composed[where])
                self._index.add_extents(ino, map(Extent._make, zip(numbers, numbers, numbers, strict=True)))
            case _:
                self._refer_to_archived(ino, where)

    def _refer_to_archived(self, ino: int, archived_ino: int) -> None:
        """Give a file the extents of a file of the archive, which is also text or binary as that is."""
        files = self._archived_files
        assert files is not None
        index = files.columns.index_of(archived_ino)
        assert index is not None
        self._index.add_extents(ino, files.columns.extents(index))
        if files.is_binary(archived_ino):
            self._index.add_binary_files((ino,))


def _directory_and_name(path: bytes) -> tuple[bytes, bytes]:
    directory, _, name = path.rpartition(b"/")
    return directory, name


def _head_of(entry: SourceEntry, file: BinaryIO) -> bytes:
    """Returns the first bytes of the content of an entry, which say whether it is text."""
    probe = memoryview(bytearray(min(PROBE_SIZE, entry.size)))
    return bytes(probe[: fill(file, probe)])


class _Content:
    """The content of a file that is read forward. `hashes` are those of the bytes read so far, unless it has holes."""

    def __init__(self, entry: SourceEntry, file: BinaryIO, head: bytes) -> None:
        """`file` is the content of `entry`. `head` has been read from it already, and is returned first."""
        self._file = file
        self._has_holes = entry.data_ranges is not None
        self._head = head
        self._memory = memoryview(b"")
        self.position = 0
        self.hashes = PieceHashes()

    def skip_to(self, position: int) -> None:
        """Leave out the bytes up to `position`, which are a hole."""
        if position > self.position:
            self._file.seek(position - self.position, os.SEEK_CUR)
            self.position = position

    def read(self, size: int) -> memoryview:
        """Returns the next bytes, fewer only at the end of the file. The next call overwrites them."""
        if len(self._memory) < size:
            self._memory = memoryview(bytearray(size))
        memory = self._memory[:size]
        count = min(len(self._head), size)
        memory[:count] = self._head[:count]
        self._head = self._head[count:]
        count += fill(self._file, memory[count:])
        if not self._has_holes:
            self.hashes.append(memory[:count], default_threads())
        self.position += count
        return memory[:count]
