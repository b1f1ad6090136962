"""Hostile gompresso-tadoc: sections, heads and blocks whose claims would take much memory or work are refused."""

from __future__ import annotations

import random
import struct

import pytest
from both_decoders import decode_tadoc, read_head, read_words
from oracle.constants import MAX_POOL_SIZE
from oracle.sequences import DecodedPayload, PayloadError, Sequence
from payload_builder import build_bit
from tadoc_builder import build_block, build_part
from tadoc_grammar import Piece
from tadoc_heads import head_of_rules, head_of_words

NO_WORDS = read_words(bytes(8))


def test_words_that_share_long_prefixes() -> None:
    """20,000 words of 60,000 bytes would have 1.2 GB, in a head of 100 kB."""
    head = head_of_words([0] + [60_000] * 20_000, b"w" * 60_000 + b" a" * 20_000 + b" ")
    assert len(head) < 100_000
    with pytest.raises(PayloadError):
        read_head(head, MAX_POOL_SIZE, NO_WORDS)


def test_rules_that_expand_without_bound() -> None:
    """31 levels, each of which is eight times the level below it."""
    head = head_of_rules([[rank] * 8 for rank in range(31)])
    assert len(head) < 500
    with pytest.raises(PayloadError):
        read_head(head, MAX_POOL_SIZE, NO_WORDS)


def test_a_rule_of_many_long_symbols() -> None:
    """60,000 symbols of 32 KiB each: refused after the second one."""
    bodies = [[rank] * 2 for rank in range(14)]
    head = head_of_rules([*bodies, [14] * 60_000])
    with pytest.raises(PayloadError):
        read_head(head, MAX_POOL_SIZE, NO_WORDS)


@pytest.mark.parametrize("position", [0, 4, 8, 12, 16])
def test_counts_without_items(position: int) -> None:
    head = bytearray(head_of_rules([[0, 0]]))
    struct.pack_into("<I", head, position, (1 << 20) - 9)
    with pytest.raises(PayloadError):
        read_head(bytes(head), MAX_POOL_SIZE, NO_WORDS)


def test_token_bytes_of_more_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token bytes are a payload of gompresso-bit for 1.5 MB, which no block may have."""
    word = bytes(random.Random(3).choices(b"abcdefgh", k=499))
    token_bytes = (word + b" ") * 3000
    size = len(token_bytes) - len(word) - 1
    lengths = [400] * (size // 400) + [size % 400] * (size % 400 > 0)
    sequences = [Sequence(250, 0, 0)] * 2 + [Sequence(0, length, 500) for length in lengths]
    payload = build_bit(DecodedPayload(False, 2, sequences, word + b" "), random.Random(4))
    monkeypatch.setattr("tadoc_builder.store_token_bytes", lambda content, rng: payload)
    head = head_of_words([0] * 3000, token_bytes)
    assert len(head) < 50_000
    assert read_head(head, len(token_bytes), NO_WORDS).pool == token_bytes
    monkeypatch.setattr("tadoc_builder.store_token_bytes", lambda content, rng: payload[:-9] + b"\xff" + payload[-8:])
    with pytest.raises(PayloadError):
        read_head(head_of_words([0] * 3000, token_bytes), len(token_bytes) + 1, NO_WORDS)


def test_a_block_of_many_splitters() -> None:
    part = build_part([Piece(b"x" * 100)])
    decoded = read_head(part.head, len(part.pool), NO_WORDS)
    splitter, word = decoded.symbols_by_rank.index(0), decoded.symbols_by_rank.index(1)
    payload = build_block([word, *[splitter] * 1000], 0, part.plan.rank_code)
    assert decode_tadoc(payload, 100, decoded) == b"x" * 100
    payload = build_block([word, *[splitter] * 10_000], 0, part.plan.rank_code)
    with pytest.raises(PayloadError, match=r"^the payload has an impossible size$"):
        decode_tadoc(payload, 100, decoded)
