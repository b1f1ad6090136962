"""Mutations of grammar sections, of their numbers and of their bytes."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable

from grammar_numbers import GrammarNumbers, Part, read_numbers
from oracle.archive import BLOCK_HEADER_SIZE
from oracle.payload import decode_payload
from taken_apart import TakenApart

from gompfs.codec import Codec

_NUMBERS = (
    0,
    1,
    2,
    3,
    127,
    128,
    1 << 14,
    (1 << 31) - 1,
    1 << 31,
    1 << 32,
    (1 << 61),
    1 << 62,
    (1 << 63) - 1,
    1 << 63,
    1 << 70,
)


def grammar(parts: TakenApart, rng: random.Random) -> tuple[str, bool]:
    """Changes some numbers, words or bytes of a segment's grammar."""
    wheres = parts.rows("SELECT segment, kind FROM section WHERE kind = 'grammar'")
    if not wheres:
        raise sqlite3.Error("there is no grammar")
    where = rng.choice(wheres)
    section = _content(parts, where)
    if rng.random() < 0.15:
        told, new = "bytes", _other_bytes(section, rng)
    else:
        numbers = read_numbers(section)
        change = rng.choice(_CHANGES)
        for _ in range(rng.choice((1, 1, 1, 3))):
            change(numbers, rng)
        told, new = change.__name__.strip("_").replace("_", " "), numbers.to_bytes()
    parts.set_section(where, new)
    return f"the grammar of segment {where[0]}: {told}", True


def _content(parts: TakenApart, where: tuple[int, str]) -> bytes:
    places = parts.places(where)
    content = b""
    for number in range(len(places.offsets)):
        block = parts.block(where, number)
        size = min(parts.block_size, places.uncompressed_size - number * parts.block_size)
        content += decode_payload(Codec(block[4]), block[BLOCK_HEADER_SIZE:], size)
    return content


def _other_bytes(section: bytes, rng: random.Random) -> bytes:
    new = bytearray(section)
    at = rng.randrange(rng.choice((32, len(new))))
    kind = rng.randrange(5)
    size = rng.choice((1, 1, 2, 8, 100))
    if kind == 0:
        new[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        new[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
    elif kind == 2:
        del new[at : at + size]
    elif kind == 3:
        new[at:at] = new[at : at + size]
    else:
        new += rng.randbytes(size)
    return bytes(new) or b"\0"


def _part(numbers: GrammarNumbers, rng: random.Random) -> Part:
    return rng.choice(numbers.parts) if numbers.parts else Part(0, 0, [], [], [[]])


def _header_field(numbers: GrammarNumbers, rng: random.Random) -> None:
    which = rng.randrange(6)
    if which == 0:
        numbers.version = rng.choice((0, 2, 65535))
    elif which == 1:
        numbers.word_rule = rng.choice((0, 1, 2, 255))
    elif which == 2:
        numbers.builder = rng.choice((0, 1, 2, 3))
    elif which == 3:
        numbers.reserved = bytes(15) + b"\1"
    elif which == 4:
        numbers.num_words = rng.choice((0, numbers.num_words + 1, numbers.num_words - 1, *_NUMBERS))
    else:
        numbers.num_parts = rng.choice((0, numbers.num_parts + 1, numbers.num_parts - 1, *_NUMBERS))


def _any_number(numbers: GrammarNumbers, rng: random.Random) -> None:
    """Changes, removes, doubles or lengthens one number of the parts."""
    flat = (
        [number for part in numbers.parts for number in part.numbers()] if numbers.numbers is None else numbers.numbers
    )
    numbers.numbers = flat
    if not flat:
        return
    at = rng.randrange(min(rng.choice((8, 50, len(flat))), len(flat)))
    kind = rng.randrange(6)
    if kind == 0:
        del flat[at]
    elif kind == 1:
        flat.insert(at, flat[at])
    elif kind == 2:
        numbers.sizes[at] = rng.choice((2, 8, 9, 10, 12))
    elif kind == 3:
        flat[at] = rng.choice(flat)
    else:
        flat[at] = max(rng.choice((*_NUMBERS, flat[at] + 1, flat[at] - 1, flat[at] + 2, flat[at] ^ 1)), 0)


def _dictionary_number(numbers: GrammarNumbers, rng: random.Random) -> None:
    if not numbers.lengths:
        return
    at = rng.randrange(len(numbers.lengths))
    kind = rng.randrange(4)
    if kind == 0:
        numbers.lengths[at] = max(rng.choice((*_NUMBERS, numbers.lengths[at] + 1, numbers.lengths[at] - 1)), 0)
    elif kind == 1:
        numbers.prefixes[at] = rng.choice((0, 1, 255, numbers.prefixes[at] ^ 1))
    elif kind == 2 and at + 1 < len(numbers.lengths):  # lengthen one word and shorten the next by as much
        moved = rng.randint(0, numbers.lengths[at + 1])
        numbers.lengths[at] += moved
        numbers.lengths[at + 1] -= moved
    elif numbers.rests:
        at = rng.randrange(len(numbers.rests))
        numbers.rests[at] = rng.choice((32, 10, 0, 255, numbers.rests[at] ^ 1, rng.randrange(97, 123)))


def _other_word(numbers: GrammarNumbers, rng: random.Random) -> None:
    """Replaces a word of the dictionary; the byte order and all sizes are kept."""
    words = numbers.words()
    if not words:
        return
    at = rng.randrange(len(words))
    words[at] += rng.choice((b"x", b"\x01", b"\xff", b"x" * 300))
    if rng.random() < 0.7:
        words = sorted(set(words))
    numbers.set_words(words)


def _other_symbol(numbers: GrammarNumbers, rng: random.Random) -> None:
    """Replaces a word in a rule by another word of the part: the number of words is right, but the text is not."""
    part = _part(numbers, rng)
    places = [(rule, at) for rule in part.rules for at, symbol in enumerate(rule) if symbol & 1]
    if places:
        rule, at = rng.choice(places)
        rule[at] = rng.choice((2 * rng.randrange(len(part.words)) + 1, rule[at] + 2, rule[at] - 2))
        _settle(part, rng)


def _exchanged_symbols(numbers: GrammarNumbers, rng: random.Random) -> None:
    """Exchanges two symbols of a part."""
    part = _part(numbers, rng)
    first, second = rng.choice(part.rules), rng.choice(part.rules)
    if first and second:
        at, other = rng.randrange(len(first)), rng.randrange(len(second))
        first[at], second[other] = second[other], first[at]
    _settle(part, rng)


def _inserted_symbol(numbers: GrammarNumbers, rng: random.Random) -> None:
    """Inserts or removes a symbol. Mostly, the number of words is corrected."""
    part = _part(numbers, rng)
    rule = rng.choice(part.rules)
    at = rng.randrange(len(rule) + 1)
    if rng.random() < 0.4:
        del rule[at : at + 1]
    else:
        rule.insert(at, rng.choice((0, 1, 2, 3, 2 * len(part.rules), rng.choice(rule or [1]), rng.choice(_NUMBERS))))
    _settle(part, rng)


def _exchanged_files(numbers: GrammarNumbers, rng: random.Random) -> None:
    """Exchanges or replaces the files of a part."""
    part = _part(numbers, rng)
    if part.inos:
        at, other = rng.randrange(len(part.inos)), rng.randrange(len(part.inos))
        if rng.random() < 0.6:
            part.inos[at], part.inos[other] = part.inos[other], part.inos[at]
        else:
            part.inos[at] = rng.choice((0, 1, 2, part.inos[other], part.inos[at] + 1, (1 << 62), -1))


def _exchanged_words(numbers: GrammarNumbers, rng: random.Random) -> None:
    """Replaces words of a part by others of the dictionary."""
    part = _part(numbers, rng)
    if part.words:
        at, other = rng.randrange(len(part.words)), rng.randrange(len(part.words))
        if rng.random() < 0.6:
            part.words[at], part.words[other] = part.words[other], part.words[at]
        else:
            part.words[at] = rng.choice(
                (0, part.words[other], numbers.num_words - 1, numbers.num_words, part.words[at] + 1)
            )


def _moved_splitter(numbers: GrammarNumbers, rng: random.Random) -> None:
    """Moves the end of a file by one word."""
    part = _part(numbers, rng)
    root = part.rules[0]
    places = [at for at, symbol in enumerate(root[:-1]) if symbol == 0]
    if places:
        at = rng.choice(places)
        root[at], root[at + 1] = root[at + 1], root[at]


def _part_of_parts(numbers: GrammarNumbers, rng: random.Random) -> None:
    """Duplicates, removes or moves a part, or makes it continue another one."""
    if not numbers.parts:
        return
    at = rng.randrange(len(numbers.parts))
    kind = rng.randrange(4)
    if kind == 0:
        numbers.parts.insert(at, numbers.parts[at])
    elif kind == 1:
        del numbers.parts[at]
    elif kind == 2:
        numbers.parts.append(numbers.parts.pop(at))
    else:
        numbers.parts[at].continues = rng.choice((0, 1, 2))
    if rng.random() < 0.8:
        numbers.num_parts = len(numbers.parts)


def _dissolved_rule(numbers: GrammarNumbers, rng: random.Random) -> None:
    """Replaces the uses of a rule by its content: the text is the same and the grammar stays valid."""
    part = _part(numbers, rng)
    if len(part.rules) < 2:
        return
    number = rng.randrange(1, len(part.rules))
    symbol = 2 * (len(part.rules) - number)
    for index, rule in enumerate(part.rules):
        part.rules[index] = [new for old in rule for new in (part.rules[number] if old == symbol else [old])]


def _doubling_rules(numbers: GrammarNumbers, rng: random.Random) -> None:
    """Makes a chain of rules that each use the next one at least twice: a text too large for any memory."""
    part = _part(numbers, rng)
    depth, times = rng.choice(((20, 2), (40, 2), (60, 2), (61, 2), (64, 2), (5, 1000), (3, 3000)))
    part.rules = [[2 * depth, *[0] * max(len(part.inos), 1)]]
    part.rules += [[2 * (depth - level - 1)] * times for level in range(depth - 1)] + [[1, 1]]
    _settle(part, rng)


def _settle(part: Part, rng: random.Random) -> None:
    """Mostly sets the number of words to that of the rules."""
    if rng.random() < 0.85:
        part.num_words = part.expanded_size()


_CHANGES: list[Callable[[GrammarNumbers, random.Random], None]] = [
    *[_any_number] * 4,
    _header_field,
    _dictionary_number,
    _dictionary_number,
    _other_word,
    _other_symbol,
    _other_symbol,
    _exchanged_symbols,
    _inserted_symbol,
    _exchanged_files,
    _exchanged_words,
    _moved_splitter,
    _part_of_parts,
    _dissolved_rule,
    _doubling_rules,
]
