"""Stores the contents of a segment's regular files: bytes in the stream, words in a grammar, equal files once.

With the codec gompresso-tadoc, text goes to parts that are stored as grammars, and the words of statistics are those of
the parts. With the other codecs, all bytes go to the same blocks, and words to a grammar of their own.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from gompfs._native.sources import KnownContents, LoadedFiles, PieceHashes
from gompfs.codec import BLOCK_HEADER_SIZE, DEFAULT_PART_SIZE, MIN_LEVEL, Codec, CodecOptions, EncodedBlock
from gompfs.codec.words import max_word_bytes, num_word_bytes
from gompfs.engine import Engine
from gompfs.errors import UnreadableFileError, display_path
from gompfs.grammar import PROBE_SIZE, GrammarBuilder, GrammarCollector, is_text
from gompfs.index.writer import IndexWriter
from gompfs.model import GRAMMAR_SECTION, WORD_SECTION, Extent, WrittenBlock, WrittenPart
from gompfs.options import PackOptions
from gompfs.pack.large_contents import LargeContents
from gompfs.pack.sources.base import SourceEntry, fill
from gompfs.pack.sources.local_file import MAX_WHOLE_SIZE
from gompfs.pack.stream import BlockWriter, StreamWriter
from gompfs.pack.text_parts import TextParts
from gompfs.threads import default_threads, threads_limited_to

if TYPE_CHECKING:
    from gompfs._native.codec import Dictionary

_PIECE_SIZE = 1 << 20
_TEXT_AT_ONCE = 8 << 20


def grammar_collector(options: PackOptions, engine: Engine) -> GrammarCollector:
    """Returns a collector that builds the grammar for `options`, on the engine's device if it has one for that."""
    how = options.grammar_builder, options.words, options.jobs
    build_rules = engine.accelerator.build_rules if engine.accelerator else None
    return GrammarCollector(GrammarBuilder(*how, build_rules, engine.allocate))


def grammar_codec(options: PackOptions) -> CodecOptions:
    """Returns the codec options for grammars: the lowest level. Higher levels take twice as long and save only 3%."""
    return replace(options.data_codec(), level=MIN_LEVEL)


def write_grammar(grammar: GrammarCollector, segment: int, section: StreamWriter, index: IndexWriter) -> int:
    """Write the grammar of all collected text as a section of a segment. Returns its compressed size in bytes."""
    for piece in grammar.finish():
        section.append(piece)
    index.add_binary_files(grammar.binary_files)
    blocks = section.finish()
    index.add_section(segment, GRAMMAR_SECTION, section.size, blocks)
    return sum(block.compressed_size for block in blocks)


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
        self.grammar_size = 0
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
        self._grammar: GrammarCollector | None = None
        if options.text_as_grammar:
            self._text = TextParts(
                options.words, block_size, part_size or DEFAULT_PART_SIZE, options.jobs, tempfile.gettempdir()
            )
            part_size = None
        elif options.stats:
            self._grammar = grammar_collector(options, engine)
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
        if self._grammar is not None:
            for ino, (*_, content, _) in enumerate(files.describe(), first_ino):
                if content:
                    self._grammar.add_file(ino, content)

    def add(self, ino: int, entry: SourceEntry) -> int:
        """Store the content of a regular file. Returns the size that was stored."""
        if entry.size == 0 and entry.can_reopen:
            return 0
        if entry.size <= MAX_WHOLE_SIZE and entry.data_ranges is None:
            return self._add_whole(ino, entry)
        with threads_limited_to(self._engine.num_threads):
            if entry.can_reopen and self._refer_if_known(ino, entry.size, self._find(entry)):
                self._feed_grammar(ino, entry)
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
        if self._grammar is not None:
            section = self._section(grammar_codec(self._options))
            self.grammar_size = write_grammar(self._grammar, segment, section, self._index)
        elif self._text is not None:
            self._write_words(segment, self._text.word_section())
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
        text = self._text if self._text is not None and is_text(content) else None
        key = (len(content), entry.sha256 or hashlib.sha256(content).digest())
        if content and not self._refer_if_known(ino, len(content), self._known.find(*key)):
            where = text.add_file(content) if text is not None else self._stream.append(content)
            self._known.add(*key, text is not None, where)
            self._refer(ino, len(content), text is not None, where)
        if self._grammar is not None:
            self._grammar.add_file(ino, content)
        return len(content)

    def _add_pieces(self, ino: int, entry: SourceEntry) -> int:
        """Store a large or sparse file piece by piece."""
        with entry.open() as file:
            head = b""
            if self._text is not None and entry.data_ranges is None:
                probe = memoryview(bytearray(min(PROBE_SIZE, entry.size)))
                head = bytes(probe[: fill(file, probe)])
                if is_text(head):
                    return self._add_text(ino, entry, _Content(entry, file, head), self._text)
            return self._add_data(ino, entry, _Content(entry, file, head))

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
        has_holes = sum(size for _, size in ranges) < entry.size
        extents: list[Extent] = []
        with self._text_of(ino, has_holes=has_holes) as grammar:

            def read_into(memory: memoryview) -> int:
                count = content.read_into(memory)
                if grammar is not None:
                    for start in range(0, count, _PIECE_SIZE):
                        grammar.add_bytes(memory[start : min(start + _PIECE_SIZE, count)])
                return count

            for start, size in ranges:
                content.skip_to(start)
                address = self._stream.address
                count = self._stream.append_from(read_into, size)
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

    def _feed_grammar(self, ino: int, entry: SourceEntry) -> None:
        """Add the words of a file whose bytes are stored already."""
        if self._grammar is None:
            return
        with entry.open() as file, self._text_of(ino, has_holes=False) as grammar:
            memory = memoryview(bytearray(min(_TEXT_AT_ONCE, entry.size)))
            while grammar is not None and (count := fill(file, memory)):
                grammar.add_bytes(memory[:count])

    @contextmanager
    def _text_of(self, ino: int, *, has_holes: bool) -> Iterator[GrammarCollector | None]:
        """Begin a file in the grammar, if there is one, and end it when the body ends or the file cannot be read on.

        Holes read as NULs, which text does not contain.
        """
        grammar = self._grammar
        if self._text is not None:
            self._index.add_binary_files((ino,))
        elif grammar is not None and has_holes:
            grammar.leave_out(ino)
            grammar = None
        if grammar is not None:
            grammar.begin_file(ino)
        try:
            yield grammar
        except UnreadableFileError:
            if grammar is not None:
                grammar.end_file()
            raise
        if grammar is not None:
            grammar.end_file()

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
        if self._text is not None:
            self._index.add_binary_files((ino,))
        self._index.add_extents(ino, self._extents(0, where, size))


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
