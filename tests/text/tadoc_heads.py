"""Heads of parts of text for decoders to open: of texts that pack stores, random, crafted and damaged ones."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from mutations import mutate
from numpy.typing import NDArray
from oracle.block import build_block as frame
from oracle.constants import MAX_POOL_SIZE
from oracle.numbers import class_of
from oracle.sequences import DecodedPayload
from oracle.sequences import Sequence as CodedSequence
from payload_builder import build_bit
from payloads import CORPUS
from tadoc_blocks import PIECES, packed_parts, short_files
from tadoc_builder import GlobalTokens, HeadPlan, build_part, make_code
from tadoc_grammar import Grammar, Piece, Rule, Symbol, Token, make_grammar, tokens_of
from test_tadoc_damage import GLOBAL, HEADS, sample

from gompfs._native.text import PartHeads
from gompfs.codec import BlockStatus, Codec, CodecOptions
from gompfs.engine import select_engine
from gompfs.gpu.decode.head_memory import START_SIZE
from gompfs.gpu.decode.head_store import pack_head


@dataclass(frozen=True)
class TadocHead:
    """The payload of a head, the size of its pool, and the section `words` that it refers to."""

    payload: bytes
    pool_size: int
    section: bytes

    @property
    def block(self) -> bytes:
        """The payload with a header. The checksum of the pool is wrong."""
        return frame(Codec.HEAD, self.payload, bytes(self.pool_size)).data


def part_heads(heads: Sequence[bytes], section: bytes) -> PartHeads:
    """Returns the heads of parts of one block each, and a section `words`, as those of an archive with one segment."""
    words = [block.data for block in select_engine("cpu").encode_blocks(section, 1 << 14, CodecOptions())]
    in_headers = b"".join(block[12:16] for block in words)  # the uncompressed sizes
    blocks = [*heads, *words]
    file = b"".join(blocks)
    ends = np.cumsum([0, *map(len, blocks)]).tolist()

    def column(kind: str, values: Sequence[int]) -> bytes:
        return struct.pack(f"<{len(values)}{kind}", *values)

    count = len(heads)
    columns = (
        column("Q", range(count + 1)), column("Q", ends[:count]), column("I", list(map(len, heads))),
        bytes(count), (column("Q", ends[count:-1]), column("I", list(map(len, words))), in_headers),
    )  # fmt: skip
    return PartHeads([columns], lambda offset, size: file[offset : offset + size], 1 << 30, 1)


def by_section(heads: Sequence[TadocHead]) -> dict[bytes, list[int]]:
    """Returns the indexes of the heads of each section."""
    found: dict[bytes, list[int]] = {}
    for index, head in enumerate(heads):
        found.setdefault(head.section, []).append(index)
    return found


def open_on_cpu(heads: Sequence[TadocHead]) -> list[NDArray[np.uint8] | None]:
    """Returns each head as the C++ core opens it, in the layout of the kernels, or None if the core refuses it."""
    opened: list[NDArray[np.uint8] | None] = [None] * len(heads)
    for section, indexes in by_section(heads).items():
        symbols, statuses = part_heads([heads[index].block for index in indexes], section).open(range(len(indexes)))
        for index, table, status in zip(indexes, symbols, statuses, strict=True):
            assert (table is None) == (status != BlockStatus.OK)
            opened[index] = None if table is None else pack_head(table)
    return opened


def are_same(ours: NDArray[np.uint8] | None, theirs: NDArray[np.uint8] | None) -> bool:
    """Returns whether two opened heads are the same, or both are None. The splitter has no bytes at any offset."""
    if ours is None or theirs is None:
        return ours is theirs
    return np.array_equal(_without_offset_of_splitter(ours), _without_offset_of_splitter(theirs))


def _without_offset_of_splitter(opened: NDArray[np.uint8]) -> NDArray[np.uint8]:
    changed = opened.copy()
    pool_offset = int(changed[4:8].view(np.uint32)[0])
    halves = changed[START_SIZE:pool_offset].view(np.uint32).reshape(-1, 2)
    halves[halves[:, 1] & 0x3FFFFFFF == 0, 0] = 0
    return changed


@cache
def heads_of_texts() -> list[TadocHead]:
    """Returns the heads that pack writes for texts of several kinds, with words that they share."""
    rng = random.Random(5)
    alice = (CORPUS / "carroll" / "alice29.txt").read_bytes()
    short = short_files(rng)
    long = [b"word" + b" " * 30_000 + b"next\n" + b"w" * 20_000 + b" x " + b"a b c d e f g h " * 5000]
    shared_prefixes = b"".join(b"p" * rng.randint(40, 90) + bytes(rng.choices(b"pqr", k=6)) + b"\n" for _ in range(700))
    found = []
    for files, block_size, part_size in (
        ([alice], 1 << 14, 1 << 15), ([alice[:100_000]], 1 << 16, 1 << 17),
        (short, 1 << 9, 1 << 11), (long, 1 << 14, 1 << 17), ([shared_prefixes], 1 << 16, 1 << 17),
    ):  # fmt: skip
        parts, section = packed_parts(files, block_size, part_size)
        found += [
            TadocHead(bytes(head[32:]), struct.unpack_from("<I", head, 12)[0], section) for head, _ in parts if head
        ]
    return found


def random_heads(count: int, rng: random.Random) -> Iterator[TadocHead]:
    """Yields heads of random parts. In half of them, all choices that the format leaves are random."""
    for number in range(count):
        pieces = [Piece(b"".join(rng.choices(PIECES, k=rng.randint(1, 200)))) for _ in range(rng.randint(1, 6))]
        tokens = tokens_of(pieces)
        found = list(dict.fromkeys(token for token in tokens if token.content))  # type: ignore[union-attr]
        shared = [token for token in found if rng.random() < 0.3]
        words = [token.content for token in shared if token.is_word] + [b"pre%04d" % index for index in range(300)]
        rng.shuffle(words)
        global_tokens = GlobalTokens(words, [token.content for token in shared if not token.is_word])
        grammar = make_grammar(tokens, rng.choice((0, 5, 40)), rng.randint(1, 8))
        part = build_part(pieces, global_tokens, rng=rng if number % 2 else None, grammar=grammar)
        yield TadocHead(part.head, len(part.pool), global_tokens.section())


def damaged_heads(heads: Sequence[TadocHead], count: int, rng: random.Random) -> Iterator[TadocHead]:
    """Yields heads with damage to their payloads, with another size of the pool, or with the words of another part."""
    for _ in range(count):
        intact = rng.choice(heads)
        kind = rng.random()
        if kind < 0.05:
            yield replace(intact, pool_size=max(intact.pool_size + rng.choice((-1, 1, 4000)), 1))
        elif kind < 0.1:
            yield replace(intact, section=rng.choice(heads).section)
        else:
            (stored,) = struct.unpack_from("<I", intact.payload, 24)
            kept = 40 + stored if rng.random() < 0.3 else 0
            yield replace(intact, payload=intact.payload[:kept] + mutate(intact.payload[kept:], rng))


def crafted_heads() -> dict[str, TadocHead]:
    """Returns heads that keep or break one rule each, and some that would expand without bound."""
    found = {}
    for name, case in HEADS.items():
        built = sample()
        case.change(built.plan)
        payload = bytearray(built.plan.write(codes=case.codes))
        for kind, position, value in case.header:
            struct.pack_into(f"<{kind}", payload, position, value)
        found[name] = TadocHead(bytes(payload), len(built.pool) + case.pool_size_change, GLOBAL.section())
    built = sample()
    section = GLOBAL.section()
    sound = TadocHead(built.head, len(built.pool), section)
    no_words = GlobalTokens().section()
    codes_end = 40 + len(built.plan.token_bytes) + struct.unpack_from("<H", built.head, 36)[0]
    longer = bytearray(built.head[:codes_end] + b"\0" + built.head[codes_end:])
    struct.pack_into("<H", longer, 36, codes_end - 39 - len(built.plan.token_bytes))
    found |= {
        "sound": sound,
        "without its words": replace(sound, section=no_words),
        "a byte more": replace(sound, payload=built.head + b"\0"),
        "a byte less": replace(sound, payload=built.head[:-1]),
        "other padding": replace(sound, payload=built.head[:-8] + b"\xff" * 8),
        "a byte more of codes": replace(sound, payload=bytes(longer)),
        "47 bytes": replace(sound, payload=built.head[:47]),
        "48 bytes": replace(sound, payload=built.head[:48]),
        "no bytes": replace(sound, payload=b""),
        "only a splitter": TadocHead(_head_of_a_splitter(), 1, no_words),
        "long prefixes": TadocHead(head_of_words([0] + [60_000] * 300, b"w" * 60_000 + b" a" * 300 + b" "),
                                   MAX_POOL_SIZE, no_words),
        "prefixes of every length": _prefixes(),
        "rules without bound": TadocHead(head_of_rules([[rank] * 8 for rank in range(31)]), MAX_POOL_SIZE, no_words),
        "a rule of 60,000 long symbols": TadocHead(
            head_of_rules([*([rank] * 2 for rank in range(14)), [14] * 60_000]), MAX_POOL_SIZE, no_words),
        "a rule of 70,000 symbols": TadocHead(head_of_rules([[0] * 70_000]), MAX_POOL_SIZE, no_words),
        "a rule of 1,000 symbols": _long_rule(),
        "token bytes of more than a block": _large_token_bytes(),
    }  # fmt: skip
    for name, num_levels in (("rules of 32,768 bytes", 14), ("rules of 65,536 bytes", 15)):
        found[name] = _doubling(num_levels)
    for size in (65_534, 65_535):
        part = build_part([Piece(b"w" * size)], block_size=1 << 20)
        found[f"a word of {size:,} bytes"] = TadocHead(part.head, len(part.pool), no_words)
        part = build_part([Piece(b"." * (size + 1), ends_file=False)], block_size=1 << 20)
        found[f"a separator of {size + 1:,} bytes"] = TadocHead(part.head, len(part.pool), no_words)
    return found


def head_of_words(prefix_lengths: list[int], token_bytes: bytes) -> bytes:
    """Returns a head that has only words, with the right classes."""
    classes = [class_of(rank) for rank in range(len(prefix_lengths))]
    arrays = [prefix_lengths, [], [], [], [], [], classes, [], [], [], [], [], []]
    return HeadPlan(arrays, token_bytes, [], make_code([0], None), False).write()


def head_of_rules(bodies: list[list[int]]) -> bytes:
    """Returns a head of a word `a`, rank 0, and of rules of one level each. Rule i has rank i + 1."""
    classes = [class_of(rank) for rank in range(len(bodies) + 1)]
    others = [rank for body in bodies for rank in body[1:]]
    arrays = [
        [0], [], [], [], [], [], classes[:1], [], [], classes[1:], [len(body) - 2 for body in bodies],
        [body[0] for body in bodies], others,
    ]  # fmt: skip
    return HeadPlan(arrays, b"a ", [1] * len(bodies), make_code(map(class_of, others), None), False).write()


def _head_of_a_splitter() -> bytes:
    arrays: list[list[int]] = [[] for _ in range(13)]
    arrays[8] = [0]
    return HeadPlan(arrays, b"", [], [1], True).write()


def _prefixes() -> TadocHead:
    """Words whose bytes come from words far before them, in other rows."""
    rng = random.Random(8)
    words, prefix_lengths, token_bytes = [b""], [], b""
    for _ in range(500):
        prefix = rng.choice((len(words[-1]), min(rng.randrange(200), len(words[-1]))))
        own = rng.choice((b"", b"x", b"yz", b"some longer bytes".replace(b" ", b"_")))
        own = own or (b"" if prefix else b"e")
        prefix_lengths.append(prefix)
        token_bytes += own + b" "
        words.append(words[-1][:prefix] + own)
    size = sum(map(len, words)) + len(words) - 1
    return TadocHead(head_of_words(prefix_lengths, token_bytes), size, GlobalTokens().section())


def _long_rule() -> TadocHead:
    """Rules that begin and end at any slot of their rows, one of them over many rows."""
    words = [Token(b"w%d" % number, True) for number in range(50)]
    comma = Token(b", ", False)
    bodies: list[list[Symbol]] = [[words[0], comma] * 500]
    bodies += [[words[number], comma, words[number + 1]] for number in range(40)]
    bodies += [[Rule(0), comma, Rule(5), Rule(6), comma], [Rule(9), words[3], Rule(0)]]
    grammar = Grammar([Rule(len(bodies) - 2), Rule(len(bodies) - 1), *map(Rule, range(1, 41))], bodies)
    text = bytearray()
    before: Token | None = None
    for symbol in grammar.root:
        for token in grammar.tokens(symbol):
            text += b" " * (before is not None and before.is_word and token.is_word) + token.content
            before = token
    part = build_part([Piece(bytes(text), ends_file=False)], grammar=grammar)
    return TadocHead(part.head, len(part.pool), GlobalTokens().section())


def _doubling(num_levels: int) -> TadocHead:
    """Each rule is the one below it, twice. The last one has 2^(number of levels) words."""
    rules: list[list[Symbol]] = [[Token(b"a", True)] * 2]
    rules += [[Rule(index)] * 2 for index in range(num_levels - 1)]
    grammar = Grammar([Rule(num_levels - 1), Token(b"\n", False)], rules)
    part = build_part([Piece(b" ".join([b"a"] * 2**num_levels) + b"\n", False)], grammar=grammar)
    return TadocHead(part.head, len(part.pool), GlobalTokens().section())


def _large_token_bytes() -> TadocHead:
    """2,200 separators of 500 bytes. The token bytes are a payload of gompresso-bit for more than a block can have."""
    separator = bytes(random.Random(3).choices(b"abcdefgh", k=500))
    count = 2200
    token_bytes = separator * count
    lengths = [400] * ((len(token_bytes) - 500) // 400)
    lengths.append(len(token_bytes) - 500 - sum(lengths))
    sequences = [CodedSequence(250, 0, 0)] * 2 + [CodedSequence(0, length, 500) for length in lengths if length]
    stored = build_bit(DecodedPayload(False, 2, sequences, separator), random.Random(4))
    arrays: list[list[int]] = [[] for _ in range(13)]
    arrays[1], arrays[8] = [499] * count, [class_of(rank) for rank in range(count)]
    plain = HeadPlan(arrays, b"", [], make_code([0], None), False).write()
    header = plain[:20] + struct.pack("<II", len(token_bytes), len(stored)) + plain[28:40]
    return TadocHead(header + stored + plain[40:], len(token_bytes), GlobalTokens().section())
