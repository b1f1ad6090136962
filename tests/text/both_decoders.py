"""Decodes gompresso-tadoc with the readable decoder and with the C++ core, and compares the outcomes.

The functions have the names, arguments and results of oracle.tadoc. Each raises AssertionError if the
C++ core accepts what the readable decoder refuses, or the other way round, or gives other bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from oracle import tadoc
from oracle.block import build_block
from oracle.constants import MAX_BLOCK_SIZE, MAX_EXPANSION_SIZE, MAX_POOL_SIZE
from oracle.numbers import class_of
from oracle.sequences import PayloadError
from oracle.tadoc import BlockSymbols, GlobalWords, Part
from tadoc_builder import HeadPlan, differences, make_code
from xxhash import xxh3_64_intdigest

from gompfs._native.codec import decode_blocks
from gompfs._native.text import PartHeads, SymbolTable
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus, Codec

_COUNTS = struct.Struct("<II")
_MANY = 200  # global words and separators that are compared


def frame(codec: Codec, payload: bytes, uncompressed_size: int, content_xxh3: int = 0) -> bytes:
    """Returns a payload after a header whose checksum of the block is right."""
    fields = struct.pack("<4sIIIQ", b"GBLK", codec, len(payload), uncompressed_size, content_xxh3)
    return fields + struct.pack("<Q", xxh3_64_intdigest(fields + payload)) + payload


def open_natively(head: bytes, pool_size: int, section: bytes) -> tuple[SymbolTable | None, BlockStatus]:
    """Returns the symbols of a head and the status that the C++ core gives it."""
    return open_block(frame(Codec.HEAD, head, pool_size), section)


def open_block(head: bytes, section: bytes) -> tuple[SymbolTable | None, BlockStatus]:
    """Like open_natively, with the header of the head."""
    file = bytearray(head)
    offsets, sizes, uncompressed = [], [], []
    for start in range(0, len(section), MAX_BLOCK_SIZE):
        piece = section[start : start + MAX_BLOCK_SIZE]
        offsets.append(len(file))
        file += build_block(Codec.STORED, piece, piece).data
        sizes.append(len(file) - offsets[-1])
        uncompressed.append(len(piece))
    columns = (_column("Q", [0, 1]), _column("Q", [0]), _column("I", [len(head)]))
    segment = (*columns, bytes(1), (_column("Q", offsets), _column("I", sizes), _column("I", uncompressed)))
    heads = PartHeads([segment], lambda offset, size: bytes(file[offset : offset + size]), 1 << 20, 1)
    (symbols,), statuses = heads.open([0])
    return symbols, BlockStatus(statuses[0])


def _column(kind: str, values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}{kind}", *values)


def read_words(section: bytes) -> GlobalWords:
    """See tadoc.read_words."""
    try:
        words = tadoc.read_words(section)
    except PayloadError:
        _check_refused(section)
        raise
    words.section = section  # type: ignore[attr-defined]
    of_words, of_separators = _some(words.num_words), _some(len(words.separators))
    step = MAX_POOL_SIZE // MAX_EXPANSION_SIZE  # so many fit into a pool
    of_words = [number for number in of_words if len(words.word(number)) < MAX_EXPANSION_SIZE]  # heads can use these
    for first in range(0, max(len(of_words), len(of_separators)), step):
        numbers = of_words[first : first + step]
        _compare_tokens(section, numbers, [], [words.word(number) + b" " for number in numbers])
        numbers = of_separators[first : first + step]
        _compare_tokens(section, [], numbers, [words.separator(number) for number in numbers])
    return words


def _compare_tokens(section: bytes, words: Sequence[int], separators: Sequence[int], contents: list[bytes]) -> None:
    """Compares the expansions of some words or separators of a section with what the readable decoder says."""
    if contents:
        table, _ = open_natively(head_of_global_tokens(words, separators), sum(map(len, contents)), section)
        assert table is not None, "the C++ core refuses a valid section"
        assert [content for content, *_ in _expansions(table)] == contents


def _some(count: int) -> list[int]:
    """Returns the first and last numbers below `count`, and some between them."""
    return sorted({*range(min(count, _MANY)), *range(max(count - 5, 0), count), *range(0, count, count // 50 + 1)})


def head_of_global_tokens(words: Sequence[int], separators: Sequence[int]) -> bytes:
    """Returns a head that has these global words and separators only."""
    ranks = [class_of(rank) for rank in range(len(words) + len(separators))]
    arrays = [
        [], [], [], [], differences(words), differences(separators), [], ranks[: len(words)], ranks[len(words) :],
        [], [], [], [],
    ]  # fmt: skip
    return HeadPlan(arrays, b"", [], make_code([0], None), False).write()


def _check_refused(section: bytes) -> None:
    """Checks that no head can use the first word or separator of an invalid section."""
    if len(section) < _COUNTS.size:
        return
    num_words, num_separators = _COUNTS.unpack_from(section)
    if num_words:
        size = section.find(b" ", _COUNTS.size + num_words) + 1 - _COUNTS.size - num_words
        head = head_of_global_tokens([0], [])
    elif num_separators and len(section) >= _COUNTS.size + 2:
        (size,) = struct.unpack_from("<H", section, _COUNTS.size)
        head = head_of_global_tokens([], [0])
    else:
        return
    if 0 < size <= MAX_POOL_SIZE:
        table, _ = open_natively(head, size, section)
        assert table is None, "the C++ core reads an invalid section"


def read_head(payload: bytes, pool_size: int, words: GlobalWords) -> Part:
    """See tadoc.read_head."""
    table, status = open_natively(payload, pool_size, words.section)  # type: ignore[attr-defined]
    try:
        part = tadoc.read_head(payload, pool_size, words)
    except PayloadError:
        assert table is None, "the C++ core reads an invalid head"
        assert status in (BlockStatus.BAD_HEADER, BlockStatus.BAD_PAYLOAD)
        raise
    assert table is not None, f"the C++ core refuses a valid head: {status}"
    found = part.expansions
    assert list(_expansions(table)) == [
        (found.contents[symbol], found.begins_with_separator[symbol], found.ends_with_word[symbol])
        for symbol in part.symbols_by_rank
    ]
    object.__setattr__(part, "native", table)
    return part


def _expansions(table: SymbolTable) -> Iterator[tuple[bytes, bool, bool]]:
    pool = bytes(table.pool)
    for bits in map(int, table.expansions):
        start, size = bits & 0xFFFFFFFF, bits >> 32 & 0x3FFFFFFF
        yield pool[start : start + size], bool(bits >> 63), bool(bits >> 62 & 1)


def decode_tadoc(payload: bytes, uncompressed_size: int, part: Part) -> bytes:
    """See tadoc.decode_tadoc."""
    status, content = decode_natively(payload, uncompressed_size, part)
    try:
        expected = tadoc.decode_tadoc(payload, uncompressed_size, part)
    except PayloadError:
        assert status in (BlockStatus.BAD_HEADER, BlockStatus.BAD_PAYLOAD), "the C++ core decodes an invalid block"
        assert not any(content)
        raise
    assert status is BlockStatus.OK, f"the C++ core refuses a valid block: {status}"
    assert content == expected
    return expected


def decode_natively(payload: bytes, uncompressed_size: int, part: Part) -> tuple[BlockStatus, bytes]:
    """Returns the status and the content of a block of a part that `read_head` returned."""
    out = bytearray(uncompressed_size)
    block = frame(Codec.GOMPRESSO_TADOC, payload, uncompressed_size)
    (status,) = decode_blocks([block], out, False, 1, [uncompressed_size], [part.native])  # type: ignore[attr-defined]
    return BlockStatus(status), bytes(out)


def read_block(payload: bytes, uncompressed_size: int, part: Part) -> BlockSymbols:
    """See tadoc.read_block. The C++ core reads symbols only to decode them."""
    return tadoc.read_block(payload, uncompressed_size, part)


assert len(frame(Codec.HEAD, b"", 1)) == BLOCK_HEADER_SIZE
