"""A slow reading of an archive from docs/format.md: what gompfs should return if it returns anything.

It reads whole tables, decodes blocks with the decoders of this package, and counts words in Python. Its result is
compared only with gompfs results that are not errors, since gompfs may refuse an archive for reasons that this reading
does not check.
"""

from __future__ import annotations

import functools
import stat
import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from xxhash import xxh3_64, xxh3_64_intdigest

from gompfs.codec import BlockStatus, Codec
from oracle.grammar import split_words
from oracle.index_columns import IndexTables, merge_tables, read_columns
from oracle.part_heads import PartHeads, SegmentHeads
from oracle.payload import PayloadError, decode_payload
from oracle.tadoc import Part, decode_tadoc

BLOCK_FIELDS = struct.Struct("<4sB3sIIQ")  # magic, codec, reserved, payload size, uncompressed size, content checksum
BLOCK_HEADER_SIZE = 32
SUPERBLOCK_FIELDS = struct.Struct("<8sII16sQQQ")
HEADER_FIELDS = struct.Struct("<8sII16sQQQ")
FOOTER_FIELDS = struct.Struct("<8sII16sQQQQQQII")

MAX_SIZE = 8 << 20  # of files whose content is read, in bytes
_MAX_ENTRIES = 200_000
_MAX_PATHS_SIZE = 32 << 20
_MAX_COLUMNS = 32 << 20  # bytes
_FREE_SIZE, _MAX_UNPACKING = 1 << 20, 256
_DICTIONARY_KIND, _TEXT_KINDS = 3, frozenset((1, 2))  # of parts
_WITH_DICTIONARY = (Codec.STORED, Codec.GOMPRESSO_BIT_DICTIONARY)  # codecs of the blocks of such parts
_HEAD = 8192  # the first bytes, which decide whether a file is binary


class OracleError(Exception):
    """The file is not an archive, or not one that this reading supports."""


class TooMuchError(OracleError):
    """The archive is too much work for a slow reading."""


class Entry(NamedTuple):
    """A row of the table inode."""

    ino: int
    mode: int
    uid: int
    gid: int
    size: int
    mtime_ns: int
    nlink: int
    rdev: int
    target: bytes | None


@dataclass
class Reading:
    """The content of an archive."""

    inodes: dict[int, Entry] = field(default_factory=dict)
    children: dict[int, list[tuple[bytes, int]]] = field(default_factory=dict)
    extents: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    blocks: list[tuple[int, bytes, int]] = field(default_factory=list)
    """For each block of the stream: its offset in the stream, its bytes in the file, its uncompressed size."""
    binary: set[int] = field(default_factory=set)
    words: str = ""
    _starts: list[int] = field(default_factory=list)
    _heads: PartHeads | None = None
    _decoded_blocks: dict[int, tuple[bytes, bool] | None] = field(default_factory=dict)

    @functools.cached_property
    def paths(self) -> dict[bytes, Entry]:
        """Returns all entries by path, the root as b"". Raises OracleError if a directory contains itself."""
        paths: dict[bytes, Entry] = {}
        pending, seen, room = [(b"", 1)], set(), _MAX_PATHS_SIZE
        while pending:
            path, ino = pending.pop()
            room -= len(path)
            if ino not in self.inodes:
                raise OracleError(f"no inode {ino}")
            entry = paths[path] = self.inodes[ino]
            if not 0 <= entry.mode < 1 << 16:
                raise OracleError(f"the mode of inode {ino} has more than 16 bits")
            if stat.S_ISDIR(entry.mode):
                if len(paths) > _MAX_ENTRIES or room < 0:
                    raise TooMuchError("there are many paths, or long ones")
                if ino in seen:
                    raise OracleError(f"directory {ino} has two names")
                seen.add(ino)
                prefix = path + b"/" if path else b""
                pending += [(prefix + name, child) for name, child in self.children.get(ino, [])]
        return paths

    def content(self, ino: int, *, verify: bool) -> bytes | None:
        """Returns the bytes of a file, or None if they are damaged. With `verify`, also checks the content checksums.

        Raises OracleError for a file that is too large to be read here.
        """
        size = self.inodes[ino].size
        if not 0 <= size <= MAX_SIZE:
            raise TooMuchError(f"inode {ino} is large, or less than nothing")
        content = bytearray(size)
        for file_offset, stream_offset, extent_size in self.extents.get(ino, []):
            end = min(file_offset + extent_size, size)
            while file_offset < end:
                number = bisect_right(self._starts, stream_offset) - 1
                if number < 0:
                    return None
                start, raw, block_size = self.blocks[number]
                piece_size = min(end - file_offset, start + block_size - stream_offset)
                if number not in self._decoded_blocks:
                    self._decoded_blocks[number] = self._decode(number, raw, block_size)
                block = self._decoded_blocks[number]
                if piece_size <= 0 or file_offset < 0 or block is None or (verify and not block[1]):
                    return None
                at = stream_offset - start
                content[file_offset : file_offset + piece_size] = block[0][at : at + piece_size]
                file_offset, stream_offset = file_offset + piece_size, stream_offset + piece_size
        return bytes(content)

    def _decode(self, number: int, raw: bytes, size: int) -> tuple[bytes, bool] | None:
        if self._heads is None:
            return _decoded(raw, size)
        (part,), (status,) = self._heads.open([number])
        if status != BlockStatus.OK:
            return None
        return _decoded(raw, size) if part is None else _decoded_with(part, raw, size)

    def is_text(self, ino: int) -> bool:
        """Returns whether the words of a file are counted: it has no holes, and no NUL near its beginning."""
        entry = self.inodes[ino]
        covered = sum(size for _, _, size in self.extents.get(ino, []))
        if not stat.S_ISREG(entry.mode) or ino in self.binary or covered < entry.size:
            return False
        content = self.content(ino, verify=False)
        return content is not None and b"\0" not in content[:_HEAD]

    def words_of(self, ino: int) -> list[bytes]:
        """Returns the words of a text file in order, or no words if it is damaged."""
        return split_words(self.content(ino, verify=False) or b"", self.words)

    def counts(self, num_words: int) -> Counter[bytes]:
        """Returns how often each sequence of `num_words` words occurs in the text files."""
        counts: Counter[bytes] = Counter()
        for ino in self.inodes:
            if self.is_text(ino):
                words = self.words_of(ino)
                counts.update(b" ".join(words[at : at + num_words]) for at in range(len(words) - num_words + 1))
        return counts


def count_lines(counts: Counter[bytes]) -> bytes:
    """Formats counts as `wordcount` and `sequence_count` do."""
    lines = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return b"".join(b"%s\t%d\n" % line for line in lines)


def read_archive(content: bytes) -> Reading:
    """Reads an archive that ends with its trailers. Raises OracleError."""
    try:
        return _read(content)
    except (struct.error, ValueError, TypeError, OverflowError, MemoryError) as error:
        raise OracleError(str(error)) from error


def generation_ends(content: bytes) -> list[int]:
    """Returns the ends of the generations of an archive, newest first."""
    return [end for end, *_ in _chain(content)][::-1]


def _read(content: bytes) -> Reading:
    _, version, block_size, *_ = SUPERBLOCK_FIELDS.unpack_from(content)
    if version != 2:
        raise OracleError("another format version")
    return _read_tables(merge_tables(_indexes(content)), content, block_size)


def _chain(content: bytes) -> list[tuple[int, int, int]]:
    """Returns the end of each generation of an archive, and offset and size of its stored index."""
    found: list[tuple[int, int, int]] = []
    start, (offset, size) = 0, struct.unpack_from("<QQ", content, 32)
    while offset % 16 == 0 and offset >= start + 64 and size:
        rounded = -(-size // 16) * 16
        if offset + rounded + 96 > len(content):
            break
        end = offset + 2 * rounded + 192
        found.append((end, offset, size))
        start = -(-end // 64) * 64
        raw = content[start : start + 64]
        if len(raw) < 64 or xxh3_64_intdigest(raw[:56]) != int.from_bytes(raw[56:], "little"):
            break
        magic, generation, _, uuid, offset, size, _ = HEADER_FIELDS.unpack_from(raw)
        if magic != b"\x89GGENER\n" or generation != len(found) + 1 or uuid != content[16:32]:
            break
    return found


def _indexes(content: bytes) -> list[IndexTables]:
    """Returns the newest index: a whole one, and the changes that follow it."""
    chain = _chain(content)
    if not chain:
        raise OracleError("no generation")
    number, found, expected = len(chain), list[IndexTables](), None
    while True:
        tables, num_changes = _index_of(content, chain, number, expected)
        found.insert(0, tables)
        if not num_changes:
            return found
        number, expected = number - 1, num_changes - 1


def _index_of(
    content: bytes, chain: list[tuple[int, int, int]], number: int, expected: int | None
) -> tuple[IndexTables, int]:
    """Returns the rows of the index of a generation, and how many indexes are changes up to it."""
    _, offset, size = chain[number - 1]
    rounded = -(-size // 16) * 16
    start = -(-chain[number - 2][0] // 64) * 64 if number > 1 else 0
    previous = chain[number - 2][0] - 96 if number > 1 else 0
    for copy in (1, 0):
        begin = offset + copy * (rounded + 96)
        raw = content[begin + rounded : begin + rounded + 96]
        if len(raw) < 96 or xxh3_64_intdigest(raw[:88]) != int.from_bytes(raw[88:], "little"):
            continue
        *fields, columns_size, columns_xxh3, before, num_changes, features = FOOTER_FIELDS.unpack_from(raw)
        if fields != [b"GOMPEND2", number, copy, content[16:32], start, begin, size]:
            continue
        if num_changes > 64 or num_changes >= number or expected not in (None, num_changes):
            continue
        if before != previous:
            continue
        if features:
            raise OracleError("the archive needs a feature")
        if columns_size > _FREE_SIZE + _MAX_UNPACKING * size:
            continue
        columns = _columns_of(content[begin : begin + size], columns_size)
        if columns and xxh3_64_intdigest(columns) == columns_xxh3:
            tables = read_columns(columns, is_changes=num_changes > 0)
            if tables.unpacked_size > (0 if num_changes else _FREE_SIZE) + _MAX_UNPACKING * size:
                raise OracleError("the index has too many rows for its stored size")
            return tables, num_changes
    raise OracleError("no whole copy of the index")


def _columns_of(stored: bytes, size: int) -> bytes | None:
    """Returns the content of blocks that lie one after another, or None if they are not whole or have another size."""
    if size > _MAX_COLUMNS:
        raise TooMuchError("the index is large")
    columns, end = b"", 0
    while len(columns) < size:
        begin = -(-end // 16) * 16
        end = begin + BLOCK_HEADER_SIZE + int.from_bytes(stored[begin + 8 : begin + 12], "little")
        uncompressed_size = int.from_bytes(stored[begin + 12 : begin + 16], "little")
        if end > len(stored) or uncompressed_size > 341 * (end - begin - BLOCK_HEADER_SIZE):
            return None
        block = _decoded(stored[begin:end], uncompressed_size)
        if not uncompressed_size or block is None:
            return None
        columns += block[0]
    return columns if end == len(stored) and len(columns) == size else None


def _read_tables(tables: IndexTables, content: bytes, block_size: int) -> Reading:
    reading = Reading(inodes={row[0]: Entry(*row) for row in tables.inode})
    for parent, name, ino in tables.dirent:
        reading.children.setdefault(parent, []).append((name, ino))
    for ino, *extent in tables.extent:
        reading.extents.setdefault(ino, []).append(tuple(extent))
    reading.binary = {ino for (ino,) in tables.binary_file}
    reading.words = dict(tables.meta).get("words", "whitespace")
    _read_parts(tables, content, block_size, reading)
    return reading


def _read_parts(tables: IndexTables, content: bytes, block_size: int, reading: Reading) -> None:
    """Reads the blocks of the stream."""
    start = 0
    heads = []
    parts: list[tuple[int, int, bool]] = []  # for each part: its start, its segment, whether its files have no words
    words = _section_places(tables, "words", block_size)
    for number, _, offset, packed, _, kinds, part_sizes, heads_offset, head_sizes in tables.segment:
        first_blocks = [len(reading.blocks)]
        of_heads = struct.unpack(f"<{len(head_sizes) // 4}I", head_sizes)
        sizes = iter(struct.unpack(f"<{len(packed) // 4}I", packed))
        has_grammars = number in words or not _TEXT_KINDS.isdisjoint(kinds)
        for part, part_size in enumerate(struct.unpack(f"<{len(part_sizes) // 8}Q", part_sizes)):
            parts.append((start, number, has_grammars and _TEXT_KINDS.isdisjoint(kinds[part : part + 1])))
            for begin in range(0, part_size, block_size):
                compressed = next(sizes, None)
                if compressed is None:
                    raise OracleError("a part has more blocks than the segment")
                raw = content[offset : offset + compressed]
                reading.blocks.append((start, raw, min(part_size - begin, block_size)))
                start += block_size
                offset = -(-(offset + compressed) // 16) * 16
            first_blocks.append(len(reading.blocks))
        uses_dictionary = [kind == _DICTIONARY_KIND for kind in kinds]
        if any(of_heads) or any(uses_dictionary):
            offsets, places = _consecutive(heads_offset, of_heads), words.get(number, ([], (), ()))
            heads.append(SegmentHeads(first_blocks, offsets, of_heads, uses_dictionary, places))
    if heads:
        dictionary = _section_places(tables, "dictionary", block_size).get(0, ([], (), ()))[:2]
        reading._heads = PartHeads(heads, dictionary, lambda offset, size: content[offset : offset + size], 1 << 24)
    reading._starts = [block[0] for block in reading.blocks]
    for ino, extents in reading.extents.items():
        found = [parts[max(bisect_right(parts, (offset, 1 << 64)) - 1, 0)] for _, offset, _ in extents if parts]
        is_composed = len({segment for _, segment, _ in found}) > 1
        if not is_composed and any(is_left_out for *_, is_left_out in found):
            reading.binary.add(ino)


def _section_places(
    tables: IndexTables, wanted: str, block_size: int
) -> dict[int, tuple[list[int], tuple[int, ...], list[int]]]:
    """Returns offset, stored size and uncompressed size of each block of the sections of a kind, by segment."""
    places = {}
    for segment, kind, size, offset, packed in tables.section:
        if kind == wanted:
            sizes = struct.unpack(f"<{len(packed) // 4}I", packed)
            uncompressed = [min(block_size, max(size - number * block_size, 0)) for number in range(len(sizes))]
            places[segment] = _consecutive(offset, sizes), sizes, uncompressed
    return places


def _consecutive(offset: int, sizes: Iterable[int]) -> list[int]:
    """Returns the offsets of blocks that lie one after another."""
    offsets = []
    for size in sizes:
        offsets.append(offset)
        offset = -(-(offset + size) // 16) * 16
    return offsets


@functools.lru_cache(20_000)
def _decoded(raw: bytes, uncompressed_size: int) -> tuple[bytes, bool] | None:
    """Decodes a block.

    Returns its content and whether the checksum is right, or None if damaged.
    """
    found = _whole_block(raw, uncompressed_size)
    if found is None or found[0] > Codec.GOMPRESSO_BIT or len(raw) > BLOCK_HEADER_SIZE + uncompressed_size:
        return None
    try:
        content = decode_payload(Codec(found[0]), raw[BLOCK_HEADER_SIZE:], uncompressed_size)
    except PayloadError:
        return None
    return content, xxh3_64_intdigest(content) == found[1]


def _decoded_with(part: Part | bytes, raw: bytes, uncompressed_size: int) -> tuple[bytes, bool] | None:
    """Like _decoded, for a block of a part that has a head, or of one that uses the dictionary `part`."""
    found = _whole_block(raw, uncompressed_size)
    if found is None:
        return None
    payload = raw[BLOCK_HEADER_SIZE:]
    try:
        if isinstance(part, bytes):
            if found[0] not in _WITH_DICTIONARY or len(payload) > uncompressed_size:
                return None
            content = decode_payload(Codec(found[0]), payload, uncompressed_size, part)
        elif found[0] != Codec.GOMPRESSO_TADOC:
            return None
        else:
            content = decode_tadoc(payload, uncompressed_size, part)
    except PayloadError:
        return None
    return content, xxh3_64_intdigest(content) == found[1]


def _whole_block(raw: bytes, uncompressed_size: int) -> tuple[int, int] | None:
    """Returns the codec of a block and the checksum of its content, or None if it is damaged."""
    if len(raw) < BLOCK_HEADER_SIZE:
        return None
    magic, codec, reserved, size, uncompressed, content_xxh3 = BLOCK_FIELDS.unpack_from(raw)
    digest = xxh3_64(raw[: BLOCK_FIELDS.size])
    digest.update(raw[BLOCK_HEADER_SIZE:])
    is_whole = digest.intdigest() == int.from_bytes(raw[24:32], "little") and len(raw) == BLOCK_HEADER_SIZE + size
    if not is_whole or magic != b"GBLK" or any(reserved) or uncompressed != uncompressed_size:
        return None
    return codec, content_xxh3
