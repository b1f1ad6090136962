"""Parts of text at the limits of a head: its pool, its symbols, its payload, and the levels of its rules."""

from __future__ import annotations

import itertools
import random
import string
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from oracle.constants import MAX_PART_SYMBOLS, MAX_POOL_SIZE

from gompfs._native.codec import decode_blocks
from gompfs._native.text import PartsBuilder, WordRule
from gompfs.codec import BLOCK_HEADER_SIZE, Codec

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


_MAX_OFFSET = 3 * (1 << 19) - 2  # the last offset symbol (docs/format.md, section 6) has 19 extra bits


_MAX_TOKEN_BYTES = 3 * (1 << 19) - 1  # that are compressed: the last offset symbol of gompresso-bit ends here


def _token_bytes(num_padding: int, num_parts: int, level: int, folder: Path) -> list[int]:
    """Returns the size of the token bytes of each part, 0 if it has no head.

    A part has words, each twice, of which the first and the last end alike; the last one has padding.
    """
    texts = []
    for part in range(num_parts):
        rng = random.Random(part)
        ends = ["".join(rng.choices("01", k=194)) for _ in range(8019)]
        ends[0] = "".join(rng.choices(string.ascii_letters, k=194))
        ends[-1] = "x" * num_padding + ends[0]
        words = [f"{number:06}{end}" for number, end in enumerate(ends)]
        texts.append(" ".join(words + words).encode())
    builder = PartsBuilder(WordRule.WHITESPACE, b"", 1 << 20, len(texts[0]), 2, str(folder), level=level)
    for text in texts:
        builder.add_files([text])
    builder.finish()
    assert builder.part_sizes() == [len(text) for text in texts]
    heads = [head for head, _ in _encoded(builder)]
    assert builder.num_wrong == 0  # the builder decodes each part that has a head
    return [int.from_bytes(head[BLOCK_HEADER_SIZE + 20 :][:4], "little") for head in heads]


@pytest.mark.parametrize("num_parts", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_matches_in_many_token_bytes(num_parts: int, tmp_path: Path) -> None:
    """A match is as far away as an offset symbol reaches, and farther: such token bytes are not compressed.

    The head is then larger than all that it saves, so the part has none.
    """
    size = _token_bytes(0, num_parts, 7, tmp_path)[0]
    for more, level in ((-1, 7), (0, 7), (0, 8), (1, 7), (400, 6)):
        wanted = _MAX_TOKEN_BYTES + more
        sizes = _token_bytes(wanted - size, num_parts, level, tmp_path)
        assert sizes == [wanted if more <= 0 else 0] * num_parts


@pytest.mark.slow
@pytest.mark.parametrize("name", _CASES)
def test_two_parts_at_a_limit(name: str, tmp_path: Path) -> None:
    """The same if both parts share all words."""
    _check(name, 2, tmp_path)
