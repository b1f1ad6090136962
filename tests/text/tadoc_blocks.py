"""Blocks of gompresso-tadoc with the symbols of their parts: of parts that pack builds, of random ones, and damaged."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from mutations import mutate
from oracle.block import build_block as frame
from oracle.constants import (
    BIT_PADDING,
    BLOCK_HEADER_SIZE,
    NUM_CLASSES,
    NUM_SUB_BLOCKS,
    TADOC_HEADER_SIZE,
    TADOC_MAX_OVERHEAD,
)
from payloads import CORPUS
from tadoc_builder import GlobalTokens, build_block, build_part
from tadoc_grammar import Piece, make_grammar, tokens_of

from gompfs._native.text import PartHeads, PartsBuilder, SymbolTable
from gompfs.codec import Codec, CodecOptions
from gompfs.codec.block import parse_block_header
from gompfs.engine import select_engine
from gompfs.text.word_characters import WORD_RULE_KINDS, word_characters


@dataclass(frozen=True)
class TadocBlock:
    """A payload, the size of its content, and the symbols of its part."""

    payload: bytes
    size: int
    symbols: SymbolTable

    @property
    def block(self) -> bytes:
        """The payload with a header, whose checksum of the content is wrong."""
        return frame(Codec.GOMPRESSO_TADOC, self.payload, bytes(self.size)).data


def open_heads(heads: Sequence[bytes], section: bytes) -> list[SymbolTable]:
    """Returns the symbols of parts from their heads, each with its header, and the section `words`."""
    words = [block.data for block in select_engine("cpu").encode_blocks(section, 1 << 14, CodecOptions())]
    in_headers = b"".join(block[12:16] for block in words)  # the uncompressed sizes
    blocks = [*heads, *words]
    file = b"".join(blocks)
    offsets = [sum(map(len, blocks[:index])) for index in range(len(blocks))]

    def column(kind: str, values: Sequence[int]) -> bytes:
        return struct.pack(f"<{len(values)}{kind}", *values)

    count = len(heads)
    columns = (
        column("Q", range(count + 1)), column("Q", offsets[:count]), column("I", list(map(len, heads))),
        bytes(count), (column("Q", offsets[count:]), column("I", list(map(len, words))), in_headers),
    )  # fmt: skip
    opened = PartHeads([columns], lambda offset, size: file[offset : offset + size], 1 << 30, 1)
    symbols, statuses = opened.open(range(count))
    assert not any(statuses)
    return [table for table in symbols if table is not None]


def packed_parts(
    files: Sequence[bytes], block_size: int, part_size: int
) -> tuple[list[tuple[bytes, list[bytes]]], bytes]:
    """Returns the head and the blocks of each part that pack writes for files of text, and the section `words`.

    Parts that are smaller without a grammar are left out.
    """
    rule = "identifiers"
    builder = PartsBuilder(WORD_RULE_KINDS[rule], word_characters(rule), block_size, part_size, 1, "/tmp")
    builder.add_files(files)
    builder.finish()
    parts = []
    while more := builder.next_parts():
        parts += [(head, [block for block, _, _ in blocks]) for head, blocks in more if head]
    assert parts, "all parts are smaller without a grammar"
    return parts, builder.word_section()


def packed_blocks(files: Sequence[bytes], block_size: int, part_size: int) -> list[TadocBlock]:
    """Returns the blocks that pack writes for files of text."""
    parts, section = packed_parts(files, block_size, part_size)
    tables = open_heads([head for head, _ in parts], section)
    return [
        TadocBlock(block[BLOCK_HEADER_SIZE:], parse_block_header(block).uncompressed_size, table)
        for (_, blocks), table in zip(parts, tables, strict=True)
        for block in blocks
    ]


def symbols_of_text(text: bytes) -> SymbolTable:
    """Returns the symbols of a part of one file."""
    part = build_part([Piece(text)], block_size=1 << 9)
    (table,) = open_heads([frame(Codec.HEAD, part.head, part.pool).data], GlobalTokens().section())
    return table


def short_files(rng: random.Random) -> list[bytes]:
    """Returns files of few words, with separators of several kinds."""
    words = [bytes(rng.choices(b"abcdefgh", k=rng.randint(1, 9))) for _ in range(40)]
    pieces = [*words, *(b" " + word for word in words), b"\n", b"; ", b"  "]
    return [b"".join(rng.choices(pieces, k=rng.randint(1, 20))) for _ in range(300)]


@cache
def blocks_of_texts() -> list[TadocBlock]:
    """Returns blocks of texts of several kinds, in small and large blocks and parts."""
    rng = random.Random(2)
    alice = (CORPUS / "carroll" / "alice29.txt").read_bytes()
    short = short_files(rng)
    long = [b"word" + b" " * 30_000 + b"next\n" + b"w" * 20_000 + b" x " + b"a b c d e f g h " * 5000, b" ", b"x"]
    return [
        *packed_blocks([alice[:30_000], alice[30_000:50_000]], 1 << 14, 1 << 15),
        *packed_blocks([alice[50_000:80_000]], 1 << 16, 1 << 17),
        *packed_blocks(short, 1 << 9, 1 << 11),
        *packed_blocks(long, 1 << 14, 1 << 17),
    ]


PIECES = (b"a", b"ab", b"abc", b" ", b"  ", b"\n", b"; ", b"x_", b"the ", b"longer_word_of_some_bytes " * 2)


def random_blocks(num_parts: int, rng: random.Random) -> Iterator[TadocBlock]:
    """Yields blocks of random parts, in which all choices that the format leaves are random."""
    for number in range(num_parts):
        pieces = [Piece(b"".join(rng.choices(PIECES, k=rng.randint(1, 60)))) for _ in range(rng.randint(1, 6))]
        tokens = tokens_of(pieces)
        grammar = make_grammar(tokens, rng.randint(0, 20), rng.randint(1, 4))
        block_size = rng.choice((1, 7, 31, 32, 33, 64, 100, 500))
        part = build_part(pieces, block_size=block_size, rng=rng if number % 2 else None, grammar=grammar)
        (table,) = open_heads([frame(Codec.HEAD, part.head, part.pool).data], GlobalTokens().section())
        for payload, content in zip(part.blocks, part.contents, strict=True):
            yield TadocBlock(payload, len(content), table)


def damaged(blocks: Sequence[TadocBlock], count: int, rng: random.Random) -> Iterator[TadocBlock]:
    """Yields blocks with random damage to their payloads, or with another size."""
    for _ in range(count):
        intact = rng.choice(blocks)
        size = rng.randint(1, 2 * intact.size) if rng.random() < 0.1 else intact.size
        payload = mutate(intact.payload, rng) if size == intact.size else intact.payload
        yield TadocBlock(payload[: size + TADOC_MAX_OVERHEAD], size, intact.symbols)


def crafted() -> dict[str, TadocBlock]:
    """Returns blocks that keep or break one rule each. The part has short symbols and long ones, and a splitter."""
    pieces = [Piece(b"foo bar; foo bar x; foo bar" + b"\n" * 200), Piece(b"foo " + b"w" * 65_534 + b" x")]
    part = build_part(pieces, grammar=make_grammar(tokens_of(pieces), 1))
    (table,) = open_heads([frame(Codec.HEAD, part.head, part.pool).data], GlobalTokens().section())
    # the expansions of the symbols tell them apart
    pool, rank_of = table.pool.tobytes(), {}
    for rank, bits in enumerate(table.expansions.tolist()):
        offset, size = bits & 0xFFFFFFFF, bits >> 32 & 0x3FFFFFFF
        rank_of[pool[offset : offset + size]] = rank
    splitter, foo, bar, semicolon = rank_of[b""], rank_of[b"foo "], rank_of[b"bar "], rank_of[b"; "]
    rule, line, long = rank_of[b"foo bar "], rank_of[b"\n" * 200], rank_of[b"w" * 65_534 + b" "]

    def block(ranks: list[int], size: int, skip: int = 0, **fields: int) -> TadocBlock:
        payload = bytearray(build_block(ranks, skip, part.plan.rank_code))
        for name, value in fields.items():
            form, offset = {"count": ("I", 0), "base": ("I", 4), "width": ("B", 10), "reserved": ("B", 11)}[name]
            struct.pack_into(f"<{form}", payload, offset, value)
        return TadocBlock(bytes(payload), size, table)

    row = [foo] * 32
    payload = block([foo] * 100, 400).payload
    return {
        "valid": block([foo, semicolon, bar, splitter], 8),
        "rules": block([rule, rule, semicolon, foo, splitter], 8 + 7 + 2 + 3),
        "the longest symbols": block([long] * 17, 1 << 20),
        "the longest symbols, and one more": block([long] * 18, 1 << 20),
        "the longest symbols, which lose their spaces": block([long, semicolon] * 15, 15 * 65_536),
        "the longest skip": block([long, foo], 4, 65_534),
        "a row of longest symbols after the end": block([foo, *[long] * 100], 100),
        "splitter first": block([splitter, foo], 4),
        "only a splitter": block([splitter], 1),
        "skip is the size of the first symbol": block([foo, bar], 4, 4),
        "skip leaves the space": block([foo, bar], 5, 3),
        "skip leaves a space that is removed": block([foo, semicolon], 2, 3),
        "skip above all": block([foo, bar], 4, 65535),
        "splitters after the end": block([foo, bar, splitter, splitter, splitter], 7),
        "many splitters after the end": block([foo, bar, *[splitter] * 100], 7),
        "a splitter takes the last byte": block([foo, bar, splitter], 8),
        "a separator takes the last byte": block([foo, bar, semicolon], 8),
        "the last symbol is cut": block([foo, bar], 6),
        "a symbol begins at the end": block([foo, bar, foo], 8),
        "a separator begins one before the end": block([foo, semicolon], 4),
        "a separator begins at the end": block([foo, semicolon], 3),
        "a symbol begins after the end and splitters": block([foo, bar, splitter, foo], 7),
        "too short": block([foo, bar], 9),
        "a space is removed at the end of a row": block([*row, semicolon, bar], 128 - 1 + 2 + 4),
        "a splitter begins a row": block([*row, splitter, splitter], 127),
        "a splitter begins a row and takes the last byte": block([*row, splitter], 128),
        "a row of splitters": block([foo, *[splitter] * 95, bar], 7),
        "symbols longer than a window": block([line] * 70, 14_000 - 7),
        "symbols longer than a window, and skip": block([line] * 70, 14_000 - 7 - 150, 150),
        "no symbols": block([foo], 4, count=0),
        "fewer symbols": block([foo, bar], 4, count=1),
        "more symbols": block([foo, bar], 8, count=3),
        "more symbols than bits": block([foo, bar], 8, count=0xFFFFFFFF),
        "width 25": block([foo, bar], 8, width=25),
        "reserved": block([foo, bar], 8, reserved=1),
        "base": block([foo, bar], 8, base=20),
        "base that wraps": block([foo, bar], 8, base=0xFFFFFFFF),
        "sizes written with more bits": TadocBlock(with_sizes(payload, 0, 24), 400, table),
        "sizes written with too many bits": TadocBlock(with_sizes(payload, 0, 25), 400, table),
        "sizes that are right modulo 2^32": TadocBlock(with_sizes(payload, 0xFFFFFFFF, 20), 400, table),
        "many more symbols than the stream has": block([foo] * 12_000, 100_000, count=24_000),
        "no stream": TadocBlock(struct.pack("<IIHBB", 1, 0, 0, 0, 0) + bytes(BIT_PADDING), 4, table),
        "empty": TadocBlock(b"", 4, table),
        "a header without padding": TadocBlock(bytes(TADOC_HEADER_SIZE), 4, table),
        "only sizes": TadocBlock(struct.pack("<IIHBB", 1, 0, 0, 24, 0) + bytes(96 + BIT_PADDING), 100, table),
        "part of the sizes": TadocBlock(struct.pack("<IIHBB", 1, 0, 0, 24, 0) + bytes(95 + BIT_PADDING), 100, table),
    }


def with_sizes(payload: bytes, base: int, width: int) -> bytes:
    """Returns a payload with the sizes of its sub-blocks written in another way. Sizes minus `base` may wrap."""
    old_base, old_width = struct.unpack_from("<I", payload, 4)[0], payload[10]
    bits = int.from_bytes(payload[TADOC_HEADER_SIZE:-BIT_PADDING], "little")
    sizes = [old_base + (bits >> (lane * old_width) & ((1 << old_width) - 1)) for lane in range(NUM_SUB_BLOCKS)]
    fields = [(size - base) % (1 << 32) for size in sizes]
    assert max(fields) < 1 << width
    stream = sum(field << (lane * width) for lane, field in enumerate(fields))
    stream |= bits >> (NUM_SUB_BLOCKS * old_width) << (NUM_SUB_BLOCKS * width)
    header = payload[:4] + struct.pack("<I", base) + payload[8:10] + bytes((width, payload[11]))
    return header + stream.to_bytes((NUM_SUB_BLOCKS * width + sum(sizes) + 7) // 8, "little") + bytes(BIT_PADDING)


def highest_ranks() -> Iterator[TadocBlock]:
    """Yields blocks with several class codes: with the highest rank, which is 7, and with ranks that do not exist."""
    eight, sixteen = [3] * 8, [4] * 16
    all_classes = [2, 2, *[0] * (NUM_CLASSES - 3), 1]
    for head_code, code, ranks, size in (
        (eight, eight, [5, 7], 2), (eight, eight, [5, 8], 3), (sixteen, sixteen, [5, 47], 3),
        (all_classes, all_classes, [0, (1 << 32) - 3], 3), ([], eight, [5, 7], 2), ([1], [1], [0, 0], 4),
        ([0, 1], [0, 1], [1, 1], 4),
    ):  # fmt: skip
        part = build_part([Piece(b"a b c d e f\n")])
        part.plan.rank_code = head_code + [0] * (NUM_CLASSES - len(head_code))
        (table,) = open_heads([frame(Codec.HEAD, part.plan.write(), part.pool).data], GlobalTokens().section())
        assert len(table) == 8
        yield TadocBlock(build_block(ranks, 0, code + [0] * (NUM_CLASSES - len(code))), size, table)
