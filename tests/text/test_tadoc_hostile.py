"""Hostile gompresso-tadoc: whatever a section, a head or a block claims, the decoder's memory and work are bounded."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Callable

import pytest
from both_decoders import decode_tadoc, read_head, read_words
from mutations import mutate
from oracle.constants import MAX_POOL_SIZE, WORD_RESTART
from oracle.sequences import DecodedPayload, PayloadError, Sequence
from payload_builder import build_bit
from tadoc_builder import BuiltPart, GlobalTokens, build_block, build_part
from tadoc_grammar import Piece, make_grammar, tokens_of
from tadoc_heads import head_of_rules, head_of_words

NO_WORDS = read_words(bytes(8))
NUM_MUTATIONS = 3000


def memory_of(decode: Callable[[], object]) -> int:
    """Returns the most memory that Python held while `decode` refused its input."""
    tracemalloc.start()
    try:
        with pytest.raises(PayloadError):
            decode()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_words_that_share_long_prefixes() -> None:
    """20,000 words of 60,000 bytes would have 1.2 GB, in a head of 100 kB."""
    head = head_of_words([0] + [60_000] * 20_000, b"w" * 60_000 + b" a" * 20_000 + b" ")
    assert len(head) < 100_000
    assert memory_of(lambda: read_head(head, MAX_POOL_SIZE, NO_WORDS)) < 40 << 20


def test_rules_that_expand_without_bound() -> None:
    """31 levels, each of which is eight times the level below it."""
    head = head_of_rules([[rank] * 8 for rank in range(31)])
    assert len(head) < 500
    assert memory_of(lambda: read_head(head, MAX_POOL_SIZE, NO_WORDS)) < 1 << 20


def test_a_rule_of_many_long_symbols() -> None:
    """60,000 symbols of 32 KiB each: refused after the second one."""
    bodies = [[rank] * 2 for rank in range(14)]
    head = head_of_rules([*bodies, [14] * 60_000])
    assert memory_of(lambda: read_head(head, MAX_POOL_SIZE, NO_WORDS)) < 8 << 20


@pytest.mark.parametrize("position", [0, 4, 8, 12, 16])
def test_counts_without_items(position: int) -> None:
    head = bytearray(head_of_rules([[0, 0]]))
    struct.pack_into("<I", head, position, (1 << 20) - 9)
    assert memory_of(lambda: read_head(bytes(head), MAX_POOL_SIZE, NO_WORDS)) < 1 << 20


def test_global_words_are_decoded_in_groups() -> None:
    """Of words that share long prefixes, only those of one group are decoded at a time."""
    global_tokens = GlobalTokens([b"w" * 255 + b"%x" % number for number in range(50_000)])
    section = global_tokens.section()
    assert len(section) < sum(map(len, global_tokens.words)) // 20
    words = read_words(section)
    tracemalloc.start()
    for number in range(0, 50_000, 10_000):
        assert words.word(number) == global_tokens.words[number]
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < 3 * WORD_RESTART * 400


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


def sample(rng: random.Random) -> BuiltPart:
    text = b"one two three; one two four (one two three)\n\tone  two four: one two three, one two four\n" * 2
    pieces = [Piece(text[:100]), Piece(text[100:])]
    return build_part(pieces, block_size=64, rng=rng, grammar=make_grammar(tokens_of(pieces)))


def outcome(decode: Callable[[], object]) -> bool:
    """Returns whether the input is valid. Any exception but PayloadError fails the test."""
    try:
        decode()
    except PayloadError:
        return False
    return True


def test_random_damage() -> None:
    """Heads, blocks and sections with random damage are refused, or decode to something."""
    rng = random.Random(17)
    built = sample(rng)
    part = read_head(built.head, len(built.pool), NO_WORDS)
    section = GlobalTokens([b"abc", b"abd", b"b"], [b"\n", b"; "]).section()
    refused = {"head": 0, "block": 0, "section": 0}
    for _ in range(NUM_MUTATIONS):
        head, block, words = mutate(built.head, rng), mutate(built.blocks[0], rng), mutate(section, rng)
        refused["head"] += not outcome(lambda head=head: read_head(head, len(built.pool), NO_WORDS))
        refused["block"] += not outcome(lambda block=block: decode_tadoc(block, 64, part))
        refused["section"] += not outcome(lambda words=words: read_words(words))
    assert min(refused.values()) > NUM_MUTATIONS // 4
    assert max(refused.values()) < NUM_MUTATIONS
