"""Builds a segment: writes entries to the index, their content to the stream, and their text to the grammar."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from gompfs.codec import MIN_LEVEL, CodecOptions
from gompfs.engine import Engine
from gompfs.errors import PackError, UnreadableFileError, display_path
from gompfs.grammar import GrammarBuilder, GrammarCollector
from gompfs.index.reader import IndexReader
from gompfs.index.visited import VisitedDirectories
from gompfs.index.writer import IndexWriter
from gompfs.model import GRAMMAR_SECTION, MAX_INO, MAX_TIME_NS, NEXT_INO, ROOT_INO, Extent, Inode
from gompfs.options import PackOptions
from gompfs.pack.sources.base import SourceEntry
from gompfs.pack.stream import BlockWriter, StreamWriter

_WHOLE_FILE_SIZE = 4 << 20
_PIECE_SIZE = 1 << 20
_DEFAULT_DIRECTORY_MODE = stat.S_IFDIR | 0o755


def grammar_collector(options: PackOptions, engine: Engine) -> GrammarCollector:
    """Returns a collector that builds the grammar for `options`, on the engine's device if it has one for that."""
    how = options.grammar_builder, options.words, options.jobs
    build_rules = engine.accelerator.build_rules if engine.accelerator else None
    return GrammarCollector(GrammarBuilder(*how, build_rules, engine.allocate))


def grammar_codec(options: PackOptions) -> CodecOptions:
    """Returns the codec options for grammars: the lowest level. Higher levels take twice as long and save only 3%."""
    return replace(options.codec, level=MIN_LEVEL)


def write_grammar(grammar: GrammarCollector, segment: int, section: StreamWriter, index: IndexWriter) -> int:
    """Write the grammar of all collected text as a section of a segment. Returns its compressed size in bytes."""
    for piece in grammar.finish():
        section.append(piece)
    for ino in grammar.binary_files:
        index.add_binary_file(ino)
    blocks = section.finish()
    index.add_section(segment, GRAMMAR_SECTION, section.size, blocks)
    return sum(block.compressed_size for block in blocks)


class SegmentBuilder:
    """Takes the entries of a segment in any order in which a hard link follows the entry that it names."""

    def __init__(
        self,
        index: IndexWriter,
        writer: BlockWriter,
        engine: Engine,
        options: PackOptions,
        block_size: int,
        *,
        base: IndexReader | None = None,
    ) -> None:
        """Write rows to `index` and blocks to `writer`. `base` is the index that `index` extends."""
        self.writer = writer
        self.warnings: list[str] = []
        self.num_duplicates = 0
        self.grammar_size = 0
        self._index = index
        self._engine = engine
        self._options = options
        self._block_size = block_size
        self._directories: dict[bytes, int] = {}
        self._linkable: dict[bytes, int] = {}
        self._left_out: set[bytes] = set()
        self._contents: dict[tuple[int, bytes], int] = {}
        self._sizes: set[int] = set()
        self._grammar = grammar_collector(options, engine) if options.stats else None
        segments = base.segments() if base is not None else []
        self._number = len(segments)
        self._first_block = sum(len(segment.places) for segment in segments)
        self._next_ino = ROOT_INO
        if base is not None:
            self._take_over(base)
        self.stream = StreamWriter(writer, engine, block_size, options.codec, options.part_size)

    def _take_over(self, base: IndexReader) -> None:
        """Take over the directories and the next inode number of the archive to which the segment is added."""
        names = list(base.names())
        # Inode numbers are never reused: the grammars of older segments still contain files that were replaced.
        self._next_ino = int(base.meta()[NEXT_INO])
        children: dict[int, list[tuple[bytes, int]]] = {}
        for parent, name, ino in names:
            children.setdefault(parent, []).append((name, ino))
        visited = VisitedDirectories()
        pending = [(b"", ROOT_INO)]
        while pending:
            path, ino = pending.pop()
            inode = base.inode(ino)
            if inode is not None and stat.S_ISDIR(inode.mode):
                visited.enter(ino, path)
                self._directories[path] = ino
                prefix = path + b"/" if path else b""
                pending.extend((prefix + name, child) for name, child in children.get(ino, ()))

    def add(self, entry: SourceEntry) -> int:
        """Store an entry. Returns the size of its content in bytes. Raises PackError."""
        kind = stat.S_IFMT(entry.mode)
        if kind != stat.S_IFDIR and entry.path in self._directories:
            raise PackError("the archive has a directory at this path; an entry cannot replace it", path=entry.path)
        if entry.hard_link_to is not None:
            return self._add_link(entry, entry.hard_link_to)
        if kind == stat.S_IFDIR and entry.path in self._directories:
            self._index.remove_xattrs(self._directories[entry.path])
        ino = self._number_for(entry, kind)
        size = entry.size
        if kind == stat.S_IFREG:
            try:
                size = self._add_content(ino, entry)
            except UnreadableFileError as error:
                return self._leave_out(entry, error.message)
        if entry.path:
            self._name(entry.path, ino)
        self._add_inode(ino, entry, size)
        if entry.xattrs:
            self._index.add_xattrs(ino, entry.xattrs)
        if entry.may_be_linked:
            self._linkable[entry.path] = ino
        return size if kind == stat.S_IFREG else 0

    def _add_link(self, entry: SourceEntry, first_path: bytes) -> int:
        """Store another name of an inode."""
        if first_path in self._left_out:
            return self._leave_out(entry, "it is another name of a file that cannot be read")
        ino = self._linkable.get(first_path)
        if ino is None:
            raise PackError(f"hard link to {display_path(first_path)}, which is missing", path=entry.path)
        self._name(entry.path, ino)
        self._linkable[entry.path] = ino
        return 0

    def _leave_out(self, entry: SourceEntry, reason: str) -> int:
        """Skip an entry, with a warning. Its inode number stays unused, and bytes already read belong to no file."""
        self._left_out.add(entry.path)
        self.warnings.append(f"{display_path(entry.path)}: {reason}; left out")
        return 0

    def finish(self) -> None:
        """Write the rest of the stream and the grammar, and store their positions in the index."""
        self._directory(b"")
        blocks = self.stream.finish()
        self._index.add_segment(self._number, self._first_block, blocks, self.stream.parts)
        self._index.set_meta({NEXT_INO: str(self._next_ino)})
        if self._grammar is not None:
            section = StreamWriter(self.writer, self._engine, self._block_size, grammar_codec(self._options))
            self.grammar_size = write_grammar(self._grammar, self._number, section, self._index)

    def abandon(self) -> None:
        """Stop all work in progress."""
        self.stream.abandon()
        self._index.abandon()

    # Names and inodes

    def _number_for(self, entry: SourceEntry, kind: int) -> int:
        if kind == stat.S_IFDIR and entry.path in self._directories:
            return self._directories[entry.path]
        if not entry.path:
            ino = self._directories[b""] = self._take_number()
            return ino
        self._directory(entry.path.rpartition(b"/")[0])
        ino = self._take_number()
        if kind == stat.S_IFDIR:
            self._directories[entry.path] = ino
        return ino

    def _take_number(self) -> int:
        ino = self._next_ino
        if ino >= MAX_INO:
            raise PackError("the archive has no inode numbers left: nothing can be added")
        self._next_ino += 1
        return ino

    def _name(self, path: bytes, ino: int) -> None:
        parent, _, name = path.rpartition(b"/")
        self._index.add_name(self._directory(parent), name, ino)

    def _directory(self, path: bytes) -> int:
        """Returns the inode number of a directory. Creates it with default attributes if no entry did."""
        ino = self._directories.get(path)
        if ino is None:
            entry = SourceEntry(path, _DEFAULT_DIRECTORY_MODE, mtime_ns=self._options.mtime_ns or 0)
            ino = self._number_for(entry, stat.S_IFDIR)
            if path:
                self._name(path, ino)
            self._add_inode(ino, entry, 0)
        return ino

    def _add_inode(self, ino: int, entry: SourceEntry, size: int) -> None:
        options = self._options
        mtime_ns = entry.mtime_ns if options.mtime_ns is None else options.mtime_ns
        if abs(mtime_ns) > MAX_TIME_NS:
            path = display_path(entry.path)
            self.warnings.append(f"{path}: the modification time is out of range; stored the nearest time")
            mtime_ns = MAX_TIME_NS if mtime_ns > 0 else -MAX_TIME_NS
        self._index.add_inode(
            Inode(
                ino,
                entry.mode,
                entry.uid if options.owner is None else options.owner,
                entry.gid if options.group is None else options.group,
                size,
                mtime_ns,
                1,
                entry.rdev,
                entry.symlink_target,
            )
        )

    # Contents

    def _add_content(self, ino: int, entry: SourceEntry) -> int:
        """Store the content of a regular file. Returns the size that was stored."""
        if entry.size == 0 and entry.can_reopen:
            return 0
        if entry.size <= _WHOLE_FILE_SIZE and entry.data_ranges is None:
            return self._add_whole(ino, entry)
        key = self._content_key(entry) if entry.can_reopen and entry.size in self._sizes else None
        if key is not None and key in self._contents:
            self._share(ino, entry.size, self._contents[key])
            self._feed_grammar(ino, entry)
            return entry.size
        return self._add_pieces(ino, entry)

    def _add_whole(self, ino: int, entry: SourceEntry) -> int:
        with entry.open() as file:
            content = file.read(entry.size + 1)
            while len(content) <= entry.size and (more := file.read(entry.size + 1 - len(content))):
                content += more
        if len(content) != entry.size:
            self.warnings.append(f"{display_path(entry.path)}: file changed as we read it")
            content = content[: entry.size]
        key = (len(content), hashlib.sha256(content).digest())
        known = self._contents.get(key)
        if known is not None:
            self._share(ino, len(content), known)
        elif content:
            start = self.stream.append(content)
            self._store(ino, self._extents(0, start, len(content)), key)
        if self._grammar is not None:
            self._grammar.add_file(ino, content)
        return len(content)

    def _add_pieces(self, ino: int, entry: SourceEntry) -> int:
        """Store a large or sparse file piece by piece. Holes get no extent."""
        extents: list[Extent] = []
        digest = hashlib.sha256()
        ranges = entry.data_ranges if entry.data_ranges is not None else [(0, entry.size)]
        grammar = self._grammar
        if grammar is not None and sum(size for _, size in ranges) < entry.size:
            grammar.leave_out(ino)  # holes read as NULs, which text does not contain
            grammar = None
        position = 0
        with entry.open() as file, _text_of(ino, grammar):
            for start, size in ranges:
                if start > position:
                    file.seek(start - position, os.SEEK_CUR)
                position, end = start, start + size
                address = self.stream.address
                while position < end and (piece := file.read(min(_PIECE_SIZE, end - position))):
                    self.stream.append(piece)
                    digest.update(piece)
                    if grammar is not None:
                        grammar.add_bytes(piece)
                    position += len(piece)
                extents += self._extents(start, address, position - start)
                if position < end:
                    path = display_path(entry.path)
                    self.warnings.append(f"{path}: file shrank as we read it; padded with zeros")
                    break
        whole = entry.data_ranges is None and position == entry.size
        self._store(ino, extents, (entry.size, digest.digest()) if whole else None)
        return entry.size

    def _content_key(self, entry: SourceEntry) -> tuple[int, bytes]:
        digest = hashlib.sha256()
        with entry.open() as file:
            while piece := file.read(_PIECE_SIZE):
                digest.update(piece)
        return entry.size, digest.digest()

    def _feed_grammar(self, ino: int, entry: SourceEntry) -> None:
        if self._grammar is None:
            return
        with entry.open() as file, _text_of(ino, self._grammar):
            while piece := file.read(_PIECE_SIZE):
                self._grammar.add_bytes(piece)

    def _extents(self, file_offset: int, address: int, size: int) -> list[Extent]:
        """Returns the extents of `size` bytes of a file that lie in the stream from `address` on: one for each part."""
        extents = []
        for start, count in self.stream.runs(address, size):
            extents.append(Extent(file_offset, self._first_block * self._block_size + start, count))
            file_offset += count
        return extents

    def _store(self, ino: int, extents: list[Extent], key: tuple[int, bytes] | None) -> None:
        """Store the extents of a file. `key` identifies the content of a file that is stored whole."""
        self._index.add_extents(ino, extents)
        if key is not None and extents:
            self._contents[key] = extents[0].stream_offset - self._first_block * self._block_size
            self._sizes.add(key[0])

    def _share(self, ino: int, size: int, address: int) -> None:
        """Give a file the same extents as an identical file."""
        self.num_duplicates += 1
        self._index.add_extents(ino, self._extents(0, address, size))


@contextmanager
def _text_of(ino: int, grammar: GrammarCollector | None) -> Iterator[None]:
    """Begin a file in the grammar, and end it when the body ends, even if the rest of the file cannot be read."""
    if grammar is not None:
        grammar.begin_file(ino)
    try:
        yield
    except UnreadableFileError:
        if grammar is not None:
            grammar.end_file()
        raise
    if grammar is not None:
        grammar.end_file()
