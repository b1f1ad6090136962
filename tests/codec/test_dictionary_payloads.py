"""gompresso-bit-dictionary: the C++ core and the readable decoder, payloads of the encoder and of the format."""

from __future__ import annotations

import random

import pytest
from both_decoders import frame
from oracle.constants import (
    BIT_MAX_MATCH_LENGTH,
    BIT_MIN_MATCH_LENGTH,
    MAX_DICTIONARY_SIZE,
    NUM_DICTIONARY_SYMBOLS,
    NUM_OFFSET_SYMBOLS,
)
from oracle.payload import decode_payload, read_payload
from oracle.sequences import DecodedPayload, PayloadError, Sequence
from payload_builder import build_bit
from payloads import CODECS, CORPUS, breaks_of_dependency_elimination
from test_foreign_payloads import random_payload

from gompfs._native import codec as native
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus, Codec
from gompfs.codec.headers import read_headers

CODEC = Codec.GOMPRESSO_BIT_DICTIONARY
TEXT = (CORPUS / "carroll" / "alice29.txt").read_bytes()
NUM_PAYLOADS = 60


def decode(payload: bytes, size: int, dictionary: bytes) -> bytes | None:
    """Returns what the C++ core and the readable decoder make of a payload: None if they refuse it."""
    out = bytearray(size)
    table = native.Dictionary(dictionary).table
    (status,) = native.decode_blocks([frame(CODEC, payload, size)], out, False, 1, None, [table])
    try:
        expected: bytes | None = decode_payload(CODEC, payload, size, dictionary)
    except PayloadError:
        expected = None
    assert (status, bytes(out)) == (
        (BlockStatus.BAD_PAYLOAD, bytes(size)) if expected is None else (BlockStatus.OK, expected)
    )
    return expected


def encode(content: bytes, dictionary: bytes, level: int = 6, *, eliminates: bool = True) -> tuple[Codec, bytes]:
    """Returns the codec and the payload of the content as one block."""
    made = native.Dictionary(dictionary)
    ((block, codec, _),) = native.encode_blocks(
        content, 1 << 20, Codec.GOMPRESSO_BIT, level, eliminates, 1, dictionary=made
    )
    return Codec(codec), block[BLOCK_HEADER_SIZE:]


def random_dictionary_payload(rng: random.Random) -> tuple[DecodedPayload, int]:
    """Returns random sequences, some of them with a match from a random dictionary, and the size of the block."""
    plain, size = random_payload(Codec.GOMPRESSO_BIT, rng, rng.choice((1, 2, 31, 32, 33, 64, rng.randint(1, 200))))
    dictionary = rng.randbytes(rng.choice((3, 30, 1000, 70_000, MAX_DICTIONARY_SIZE)))
    sequences = list(plain.sequences)
    for index, (literal_length, _, offset) in enumerate(sequences):
        if rng.random() < 0.4 and (offset == 0 or sequences[-1].match_offset != 0):
            length = min(rng.choice((3, 4, rng.randint(3, 426), BIT_MAX_MATCH_LENGTH)), len(dictionary))
            last = len(dictionary) - length
            address = rng.choice((0, 1, last, rng.randint(0, last), rng.randint(0, min(last, 100))))
            sequences[index] = Sequence(literal_length, length, -1 - address)
    size = sum(literal + match for literal, match, _ in sequences)
    decoded = DecodedPayload(False, plain.group_size_log2, sequences, plain.literals, dictionary)
    return decoded, size


@pytest.mark.parametrize("eliminates", [True, False])
@pytest.mark.parametrize("level", [1, 3, 6, 8])
def test_what_is_encoded_is_decoded(level: int, eliminates: bool) -> None:
    dictionary, content = TEXT[60_000:], TEXT[:60_000]
    codec, payload = encode(content, dictionary, level, eliminates=eliminates)
    assert codec is CODEC
    assert decode(payload, len(content), dictionary) == content
    decoded = read_payload(codec, payload, len(content), dictionary)
    assert any(offset < 0 for _, _, offset in decoded.sequences)
    assert any(offset > 0 for _, _, offset in decoded.sequences)
    if eliminates:
        assert breaks_of_dependency_elimination(decoded, len(content)) == 0
    without = native.encode_blocks(content, 1 << 20, Codec.GOMPRESSO_BIT, level, eliminates, 1)
    assert len(payload) + BLOCK_HEADER_SIZE < len(without[0][0])


@pytest.mark.parametrize("eliminates", [True, False])
def test_higher_levels_are_smaller(eliminates: bool) -> None:
    sizes = [len(encode(TEXT[:60_000], TEXT[60_000:], level, eliminates=eliminates)[1]) for level in (1, 7, 8)]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("size", [60_000, 100_000])
def test_level_8_parses_backwards(size: int) -> None:
    """It saves as much with a dictionary as without one: several per cent. Positions have 16 bits, or 32."""
    content, dictionary = TEXT[:size], TEXT[size:]
    _, payload = encode(content, dictionary, 8, eliminates=False)
    assert decode(payload, len(content), dictionary) == content
    assert len(payload) < 0.98 * len(encode(content, dictionary, 7, eliminates=False)[1])


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 100, 65_536])
def test_dictionaries_of_all_sizes(size: int) -> None:
    dictionary = TEXT[:size]
    content = TEXT[:size] + TEXT[1000:5000] + TEXT[:size]
    for level, eliminates in ((6, True), (8, False), (8, True)):
        codec, payload = encode(content, dictionary, level, eliminates=eliminates)
        assert codec is CODEC
        assert decode(payload, len(content), dictionary) == content


@pytest.mark.parametrize("level", [6, 8])
def test_the_last_bytes_of_the_greatest_dictionary_are_found(level: int) -> None:
    rng = random.Random(1)
    dictionary = rng.randbytes(MAX_DICTIONARY_SIZE)
    content = dictionary[-500:] + dictionary[:500]
    codec, payload = encode(content, dictionary, level, eliminates=False)
    assert codec is CODEC
    sequences = read_payload(codec, payload, len(content), dictionary).sequences
    assert min(offset for _, _, offset in sequences) < -MAX_DICTIONARY_SIZE + 500
    assert decode(payload, len(content), dictionary) == content


def test_content_that_does_not_shrink_is_stored() -> None:
    content = random.Random(2).randbytes(1000)
    assert encode(content, TEXT) == (Codec.STORED, content)


@pytest.mark.parametrize("size", [0, MAX_DICTIONARY_SIZE + 1])
def test_dictionaries_of_other_sizes_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="1 byte to 1 MiB"):
        native.Dictionary(bytes(size))


def test_other_codecs_take_no_dictionary() -> None:
    made = native.Dictionary(TEXT[:1000])
    for codec in (Codec.STORED, Codec.GOMPRESSO_BYTE):
        with pytest.raises(ValueError, match="dictionary"):
            native.encode_blocks(TEXT, 1 << 16, codec, 6, True, 1, dictionary=made)


def test_the_table_has_the_content() -> None:
    made = native.Dictionary(TEXT[:1000])
    assert made.content == bytes(made.table.pool) == TEXT[:1000]
    assert len(made.table) == 0


@pytest.mark.parametrize("codec", [*CODECS, Codec.STORED, CODEC])
def test_codecs_and_dictionaries_that_do_not_belong_together(codec: Codec) -> None:
    """With a dictionary there are blocks of its codec and stored blocks; without one, all others."""
    table = native.Dictionary(TEXT[60_000:]).table
    content = TEXT[:5000]
    if codec is CODEC:
        block = frame(codec, encode(content, TEXT[60_000:])[1], len(content))
    else:
        ((block, _, _),) = native.encode_blocks(content, 1 << 20, codec, 6, True, 1)
    for symbols in (None, table):
        is_allowed = codec is Codec.STORED or (codec is CODEC) == (symbols is not None)
        out = bytearray(len(content))
        (status,) = native.decode_blocks([block], out, False, 1, None, [symbols])
        assert status == (BlockStatus.OK if is_allowed else BlockStatus.BAD_HEADER)
        assert out == (content if is_allowed else bytes(len(content)))
        assert read_headers([block], [symbols])["status"][0] == status


def test_every_valid_payload_is_decoded() -> None:
    rng = random.Random(3)
    num_addresses = 0
    for number in range(NUM_PAYLOADS):
        decoded, size = random_dictionary_payload(rng)
        try:
            content: bytes | None = decoded.expand(size)
        except PayloadError:  # a match that was moved to the dictionary made the block shorter
            content = None
        payload = build_bit(decoded, rng)
        if len(payload) > size:  # no block may have such a payload
            continue
        assert read_payload(CODEC, payload, size, decoded.dictionary) == decoded, number
        assert decode(payload, size, decoded.dictionary) == content, number
        num_addresses += content is not None and any(offset < 0 for _, _, offset in decoded.sequences)
    assert num_addresses > NUM_PAYLOADS / 3


@pytest.mark.parametrize("length", [BIT_MIN_MATCH_LENGTH, 16, BIT_MAX_MATCH_LENGTH])
@pytest.mark.parametrize("size", [500, 65_536, MAX_DICTIONARY_SIZE])
@pytest.mark.parametrize("place", [0, 40, 99])
def test_a_match_may_not_end_after_the_dictionary(size: int, length: int, place: int) -> None:
    """In the first row and in others, where the output is long enough for fast copies and where it is not."""
    dictionary = random.Random(4).randbytes(size)
    for beyond in (0, 1, 2, length, 100_000):
        sequences = [Sequence(1, 20, -1)] * 100
        sequences[place] = Sequence(1, length, -1 - (size - length + beyond))
        num_bytes = sum(literal + match for literal, match, _ in sequences)
        decoded = DecodedPayload(False, 2, sequences, bytes(100), dictionary)
        if beyond == 100_000 and size + beyond > MAX_DICTIONARY_SIZE * 5 // 4:
            continue
        content = decode(build_bit(decoded, random.Random(5)), num_bytes, dictionary)
        assert (content is not None) == (beyond == 0)


def test_the_greatest_address_of_the_format() -> None:
    """The last symbol stands for addresses after the greatest dictionary. They are refused."""
    greatest = (5 << (NUM_DICTIONARY_SYMBOLS - 1) // 4) - 5
    for length in (BIT_MIN_MATCH_LENGTH, BIT_MAX_MATCH_LENGTH):
        for dictionary in (b"abc", bytes(MAX_DICTIONARY_SIZE)):
            sequences = [Sequence(0, length, -1 - greatest), *[Sequence(4, 426, -1)] * 10]
            decoded = DecodedPayload(False, 2, sequences, bytes(40), dictionary)
            payload = build_bit(decoded, random.Random(6))
            assert decode(payload, length + 4300, dictionary) is None


def test_an_address_is_never_repeated() -> None:
    """A repeated offset is that of the last match from the block, whatever matches from the dictionary lie between."""
    sequences = [Sequence(4, 400, 4), *[Sequence(0, 400, -3), Sequence(1, 400, 4)] * 5]
    decoded = DecodedPayload(False, 2, sequences, b"abcdvwxyz", TEXT[:500])
    size = sum(literal + match for literal, match, _ in sequences)
    for seed in range(20):
        assert decode(build_bit(decoded, random.Random(seed)), size, decoded.dictionary) == decoded.expand(size)


def test_a_match_from_the_dictionary_has_no_offset_to_repeat() -> None:
    """A row whose only match so far came from the dictionary cannot repeat an offset."""
    sequences = [Sequence(40, 400, -3), Sequence(0, 400, 7)]
    literals = bytes(range(40))
    for dictionary in (TEXT[:500], TEXT[500:1000]):
        decoded = DecodedPayload(False, 2, sequences, literals, dictionary)
        for seed in range(10):
            payload = build_bit(decoded, random.Random(seed))
            repeated = build_bit(decoded, random.Random(seed), must_repeat={1})
            assert decode(payload, 840, dictionary) == decoded.expand(840)
            assert decode(repeated, 840, dictionary) is None


@pytest.mark.parametrize("seed", range(4))
def test_damaged_payloads_get_the_same_verdict(seed: int) -> None:
    rng = random.Random(seed)
    dictionary, content = TEXT[-3000:], TEXT[:3000]
    _, payload = encode(content, dictionary)
    num_refused = 0
    for _ in range(40):
        damaged = bytearray(payload)
        for _ in range(rng.choice((1, 1, 2, 5))):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        num_refused += decode(bytes(damaged), len(content), dictionary) is None
    assert num_refused > 10


def test_the_number_of_offset_symbols_depends_on_the_codec() -> None:
    """A payload of gompresso-bit has fewer code lengths, so it is none of gompresso-bit-dictionary."""
    ((block, _, _),) = native.encode_blocks(TEXT[:5000], 1 << 20, Codec.GOMPRESSO_BIT, 6, True, 1)
    assert decode(block[BLOCK_HEADER_SIZE:], 5000, TEXT[-100:]) is None
    assert NUM_OFFSET_SYMBOLS == 40


@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_the_choice_depends_on_the_samples_only(num_threads: int) -> None:
    samples = [TEXT[start : start + 9000] for start in range(0, len(TEXT), 20_000)]
    chosen = native.choose_dictionary(samples, 8192, num_threads)
    assert chosen == native.choose_dictionary([b"".join(samples)], 8192, 1)
    assert 4096 < len(chosen) <= 8192


def test_the_choice_is_useful() -> None:
    samples = [TEXT[:75_000]]
    content = TEXT[75_000:]
    chosen = native.choose_dictionary(samples, 16_384, 1)
    arbitrary = samples[0][:16_384]
    sizes = [len(encode(content, dictionary)[1]) for dictionary in (chosen, arbitrary)]
    assert sizes[0] < sizes[1]


def test_nothing_is_chosen_where_nothing_is_repeated() -> None:
    assert native.choose_dictionary([], 1000, 1) == b""
    assert native.choose_dictionary([b"abc", b"", b"abc"], 1000, 1) == b""
    assert native.choose_dictionary([TEXT, TEXT], 0, 1) == b""


def test_a_choice_has_at_most_1_mib() -> None:
    with pytest.raises(ValueError, match="1 MiB"):
        native.choose_dictionary([TEXT], MAX_DICTIONARY_SIZE + 1, 1)
