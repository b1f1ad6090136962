"""Parts of text at the limits of a head: its pool, its symbols, its payload, and the levels of its rules."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from oracle.constants import MAX_PART_SYMBOLS, MAX_POOL_SIZE

from gompfs._native.codec import decode_blocks
from gompfs._native.text import PartsBuilder, WordRule
from gompfs.codec import Codec

_MAX_LEVELS = 31


def _words_of_7(pool_size: int) -> bytes:
    """Distinct words that have `pool_size` bytes with their spaces; the last one may be longer."""
    words = [b"%07d" % number for number in range(pool_size // 8)]
    words[-1] += b"x" * (pool_size % 8)
    return b" ".join(words)


def _words_of_3(num_symbols: int) -> bytes:
    """Distinct words of 3 bytes: as many symbols as wanted, with the splitter, and a pool of 4 bytes for each."""
    letters = [bytes([byte]) for byte in range(0x80, 0x100)]
    return b" ".join(map(b"".join, itertools.islice(itertools.product(letters, repeat=3), num_symbols - 1)))


def _chain(num_levels: int) -> bytes:
    """Text whose most frequent pair is that of the first two words, then that pair and the third word, and so on."""
    words = [b"w%d" % number for number in range(num_levels + 1)]
    lines = [b" ".join(words[:length]) for length in range(2, len(words) + 1) for _ in range(2)]
    return b"\n".join(lines)


def _noise(num_words: int) -> bytes:
    """Random words of 8 bytes, which a head cannot store in fewer than 7 bytes each."""
    letters = random.Random(num_words).choices(range(0x80, 0x100), k=8 * num_words)
    return b" ".join(bytes(letters[start : start + 8]) for start in range(0, len(letters), 8))


# Text of one part, and whether the part has a head; None: it may be smaller without.
_CASES: dict[str, tuple[Callable[[], bytes], bool | None]] = {
    "pool below": (lambda: _words_of_7(MAX_POOL_SIZE - 1), None),
    "pool at": (lambda: _words_of_7(MAX_POOL_SIZE), None),
    "pool above": (lambda: _words_of_7(MAX_POOL_SIZE + 1), False),
    "pool far above": (lambda: _words_of_7(MAX_POOL_SIZE + 1_000_000), False),
    "symbols below": (lambda: _words_of_3(MAX_PART_SYMBOLS - 2), None),
    "symbols at": (lambda: _words_of_3(MAX_PART_SYMBOLS - 1), None),
    "symbols above": (lambda: _words_of_3(MAX_PART_SYMBOLS), False),
    "symbols far above": (lambda: _words_of_3(MAX_PART_SYMBOLS + 100_000), False),
    "levels below": (lambda: _chain(_MAX_LEVELS - 1), True),
    "levels at": (lambda: _chain(_MAX_LEVELS), True),
    "levels above": (lambda: _chain(_MAX_LEVELS + 1), True),
    "levels far above": (lambda: _chain(4 * _MAX_LEVELS), True),
    "payload below": (lambda: _noise(200_000), None),
    "payload above": (lambda: _noise(340_000), False),
}
_SLOW = ("pool far above", "symbols far above")


def _check(name: str, num_parts: int, folder: Path) -> None:
    make, has_head = _CASES[name]
    text = make()
    builder = PartsBuilder(WordRule.IDENTIFIERS, b"", 1 << 20, len(text), 2, str(folder))
    for _ in range(num_parts):
        builder.add_files([text])
    builder.finish()
    assert builder.part_sizes() == [len(text)] * num_parts
    parts = list(_encoded(builder))
    assert builder.num_wrong == 0  # the builder decodes each part that has a head
    if name.startswith("payload") and num_parts == 2:
        has_head = None  # heads hold numbers of shared words, not their bytes
    for head, blocks in parts:
        assert has_head is None or bool(head) == has_head
        assert ({codec for _, codec, _ in blocks} == {Codec.GOMPRESSO_TADOC}) == bool(head)
        if not head:
            decoded = bytearray(len(text))
            assert not any(decode_blocks([block for block, _, _ in blocks], decoded, True, 2))
            assert decoded == text
    assert (len(builder.word_section()) > 100) == (num_parts == 2)


def _encoded(builder: PartsBuilder) -> Iterator[tuple[bytes, list[tuple[bytes, int, int]]]]:
    while parts := builder.next_parts():
        yield from parts


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in _SLOW else []) for name in _CASES]
)
def test_a_part_at_a_limit(name: str, tmp_path: Path) -> None:
    """A part beyond a limit has no head, and every part decodes to its text."""
    _check(name, 1, tmp_path)


@pytest.mark.parametrize("level", [1, 7, 8])
@pytest.mark.parametrize("distance", [700_000, 1_700_000])
def test_matches_in_many_token_bytes(distance: int, level: int, tmp_path: Path) -> None:
    """Words that end alike, farther apart than a block is long, or than the last offset symbol reaches."""
    ends = [random.Random(number).randbytes(100).hex() for number in range(distance // 200)]
    text = " ".join(first + end for first in "az" for end in ends).encode()
    builder = PartsBuilder(WordRule.IDENTIFIERS, b"", 1 << 20, len(text), 2, str(tmp_path), level=level)
    builder.add_files([text])
    builder.finish()
    for head, _ in _encoded(builder):
        assert head or distance > 1_500_000  # not compressed, they are larger than blocks without a head
    assert builder.num_wrong == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", _CASES)
def test_two_parts_at_a_limit(name: str, tmp_path: Path) -> None:
    """The same if both parts share all words."""
    _check(name, 2, tmp_path)
