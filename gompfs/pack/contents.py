"""Stores the contents of a segment's regular files, equal files once.

With the codec gompresso-tadoc, text goes to parts that are stored as grammars. With the other codecs, all bytes go to
the same blocks.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from gompfs._native.sources import KnownContents, LoadedFiles, PieceHashes
from gompfs.codec import BLOCK_HEADER_SIZE, DEFAULT_PART_SIZE, Codec, CodecOptions, EncodedBlock
from gompfs.codec.words import max_word_bytes, num_word_bytes
from gompfs.engine import Engine
from gompfs.errors import display_path
from gompfs.index.writer import IndexWriter
from gompfs.model import WORD_SECTION, Extent, WrittenBlock, WrittenPart
from gompfs.options import PackOptions
from gompfs.pack.large_contents import LargeContents
from gompfs.pack.sources.base import SourceEntry, fill
from gompfs.pack.sources.local_file import MAX_WHOLE_SIZE
from gompfs.pack.stream import BlockWriter, StreamWriter
from gompfs.pack.text_parts import TextParts
from gompfs.text import PROBE_SIZE, is_text
from gompfs.threads import default_threads, threads_limited_to

if TYPE_CHECKING:
    from gompfs._native.codec import Dictionary

_TEXT_AT_ONCE = 8 << 20


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
        dictionary: Dictionary | None = None,
    ) -> None:
        """Write extents to `index` and blocks to `writer`. The first block gets the number `first_block`.

        `dictionary` is that of the archive, which the blocks of gompresso-bit use.
        """
        self.warnings: list[str] = []
        self.num_duplicates = 0
        self._num_wrong = 0
        self._index = index
        self._writer = writer
        self._engine = engine
        self._num_reencoded = engine.num_reencoded
        self._options = options
        self._block_size = block_size
        self._first_block = first_block
        self._known = KnownContents()
        self._large = LargeContents()  # contents of more than MAX_WHOLE_SIZE bytes
        self._text_files: list[tuple[int, int]] = []  # inode number, and number of a text file
        part_size = options.part_size
        self._text: TextParts | None = None
        if options.text_as_grammar:
            self._text = TextParts(
                options.words, block_size, part_size or DEFAULT_PART_SIZE, options.jobs, tempfile.gettempdir()
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

    def add_files(self, first_ino: int, files: LoadedFiles) -> None:
        """Store the contents of files that have been read. They get inode numbers from `first_ino` on."""
        text = self._text
        placed = self._known.place(files, first_ino, self._stream.address, text.num_files if text is not None else None)
        self.num_duplicates += placed.num_duplicates
        if text is not None:
            text.add_contents(placed.new_in_text)
            self._text_files += placed.in_text
        self._index.add_binary_files(placed.binary)
        self._stream.append_contents(placed.new_in_stream)
        start = self._first_block * self._block_size
        self._index.add_extent_rows([(ino, 0, start + address, size) for ino, address, size in placed.in_stream])

    def add(self, ino: int, entry: SourceEntry) -> int:
        """Store the content of a regular file. Returns the size that was stored."""
        if entry.size == 0 and entry.can_reopen:
            return 0
        if entry.size <= MAX_WHOLE_SIZE and entry.data_ranges is None:
            return self._add_whole(ino, entry)
        with threads_limited_to(self._engine.num_threads):
            if entry.can_reopen and self._refer_if_known(ino, entry.size, self._find(entry)):
                with entry.open() as file:
                    self._note_kind(ino, _head_of(entry, file))
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
            self._index.add_extent_rows(self._text.extent_rows(self._text_files, start))
            blocks += self._write_text(self._text, parts)
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
        codec = replace(self._options.data_codec(), dependency_elimination=False)
        # Words that share long prefixes with their neighbours may be too many for compressed blocks.
        for options in (codec, CodecOptions(Codec.STORED)):
            section = self._section(options)
            section.append(words)
            blocks = section.finish()
            self._num_wrong += section.num_wrong
            num_stored = sum(block.compressed_size - BLOCK_HEADER_SIZE for block in blocks)
            if num_word_bytes(words) <= max_word_bytes(num_stored):
                break
        self._index.add_section(segment, WORD_SECTION, section.size, blocks)

    def _write_text(self, text: TextParts, parts: list[WrittenPart]) -> list[WrittenBlock]:
        """Write the blocks of all text, then the heads of its parts. Appends to `parts`, and returns the blocks."""
        blocks: list[WrittenBlock] = []
        heads: list[EncodedBlock | None] = []
        first = len(parts)
        for kind, size, head, encoded in text.encoded():
            blocks += self._writer.write(encoded)
            parts.append(WrittenPart(kind, size))
            heads.append(head)
        for number, head in enumerate(heads, first):
            if head is not None:
                parts[number] = parts[number]._replace(head=self._writer.write([head])[0])
        return blocks

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
        text = self._text if self._note_kind(ino, content) else None
        key = (len(content), entry.sha256 or hashlib.sha256(content).digest())
        if content and not self._refer_if_known(ino, len(content), self._known.find(*key)):
            where = text.add_file(content) if text is not None else self._stream.append(content)
            self._known.add(*key, text is not None, where)
            self._refer(ino, len(content), text is not None, where)
        return len(content)

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
        memory = memoryview(bytearray(min(_TEXT_AT_ONCE, entry.size)))
        try:
            while content.position < entry.size and (
                count := content.read_into(memory[: entry.size - content.position])
            ):
                text.add_bytes(memory[:count])
        finally:
            number = text.end_file()
        size = content.position
        if size < entry.size:
            self._warn_of_shrinking(entry)
        else:
            self._large.add(size, content.hashes, True, number)
        self._refer(ino, size, True, number)
        return entry.size

    def _add_data(self, ino: int, entry: SourceEntry, content: _Content) -> int:
        """Store a large or sparse file in the stream, piece by piece. Holes get no extent."""
        ranges = entry.data_ranges if entry.data_ranges is not None else [(0, entry.size)]
        extents: list[Extent] = []
        for start, size in ranges:
            content.skip_to(start)
            address = self._stream.address
            count = self._stream.append_from(content.read_into, size)
            extents += self._extents(start, address, count)
            if count < size:
                self._warn_of_shrinking(entry)
                break
        self._index.add_extents(ino, extents)
        if entry.data_ranges is None and content.position == entry.size and extents:
            start = extents[0].stream_offset - self._first_block * self._block_size
            self._large.add(entry.size, content.hashes, False, start)
        return entry.size

    def _warn_of_shrinking(self, entry: SourceEntry) -> None:
        self.warnings.append(f"{display_path(entry.path)}: file shrank as we read it; padded with zeros")

    def _find(self, entry: SourceEntry) -> tuple[bool, int] | None:
        """Returns where the content of an entry that can be reopened is stored, see KnownContents.find."""
        if entry.size > MAX_WHOLE_SIZE:
            return self._large.find(entry)
        if not self._known.has_size(entry.size):
            return None
        return self._known.find(entry.size, hashlib.sha256(entry.read_all()).digest())

    # Extents

    def _extents(self, file_offset: int, address: int, size: int) -> list[Extent]:
        """Returns the extents of `size` bytes of a file that lie in the stream from `address` on: one for each part."""
        extents = []
        for start, count in self._stream.runs(address, size):
            extents.append(Extent(file_offset, self._first_block * self._block_size + start, count))
            file_offset += count
        return extents

    def _refer_if_known(self, ino: int, size: int, known: tuple[bool, int] | None) -> bool:
        """Give a file a content that is `known`: where it is stored, or None. Returns whether it is."""
        if known is not None:
            self.num_duplicates += 1
            self._refer(ino, size, *known)
        return known is not None

    def _refer(self, ino: int, size: int, in_text: bool, where: int) -> None:
        """Give a file bytes that are stored: as the text file of a number, or in the stream from an address on."""
        if in_text:
            self._text_files.append((ino, where))
            return
        self._index.add_extents(ino, self._extents(0, where, size))


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
        self.position = 0
        self.hashes = PieceHashes()

    def skip_to(self, position: int) -> None:
        """Leave out the bytes up to `position`, which are a hole."""
        if position > self.position:
            self._file.seek(position - self.position, os.SEEK_CUR)
            self.position = position

    def read_into(self, memory: memoryview) -> int:
        """Write the next bytes to `memory`. Returns their number, which is smaller only at the end of the file."""
        count = min(len(self._head), len(memory))
        memory[:count] = self._head[:count]
        self._head = self._head[count:]
        count += fill(self._file, memory[count:])
        if not self._has_holes:
            self.hashes.append(memory[:count], default_threads())
        self.position += count
        return count
