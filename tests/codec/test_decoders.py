"""All decoders return what was encoded, and the encoder guarantees dependency elimination."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.constants import (
    BIT_MAX_LITERAL_LENGTH,
    BIT_MAX_MATCH_LENGTH,
    BYTE_MAX_LITERAL_LENGTH,
    BYTE_MAX_MATCH_LENGTH,
)
from oracle.payload import decode_payload, read_payload
from payloads import CODECS, breaks_of_dependency_elimination, contents, decode_natively, encode

from gompfs.codec import Codec

CONTENTS = contents()
LIMITS = {
    Codec.GOMPRESSO_BYTE: (BYTE_MAX_LITERAL_LENGTH, BYTE_MAX_MATCH_LENGTH),
    Codec.GOMPRESSO_BIT: (BIT_MAX_LITERAL_LENGTH, BIT_MAX_MATCH_LENGTH),
}


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_both_decoders_give_the_content(name: str, codec: Codec) -> None:
    content = CONTENTS[name]
    for level in (1, 6, 8):
        for dependency_elimination in (True, False):
            coded_as, payload = encode(content, codec, level, dependency_elimination)
            assert decode_natively(coded_as, payload, len(content)) == content
            assert decode_payload(coded_as, payload, len(content)) == content


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_the_greatest_lengths_of_the_format_are_used(codec: Codec) -> None:
    content = CONTENTS["long literals, then a long match"]
    coded_as, payload = encode(content, codec)
    assert coded_as is codec
    sequences = read_payload(codec, payload, len(content)).sequences
    assert (max(length for length, _, _ in sequences), max(length for _, length, _ in sequences)) == LIMITS[codec]


@pytest.mark.parametrize("level", [1, 6, 8])
@pytest.mark.parametrize(
    "name", ["text", "repeated words", "zeros", "matches with runs between", "runs between other bytes", "period 7"]
)
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_dependency_elimination_holds(name: str, codec: Codec, level: int) -> None:
    content = CONTENTS[name]
    coded_as, payload = encode(content, codec, level)
    assert coded_as is codec
    decoded = read_payload(codec, payload, len(content))
    assert decoded.dependency_elimination
    assert breaks_of_dependency_elimination(decoded, len(content)) == 0


def test_without_dependency_elimination_matches_depend_on_their_group() -> None:
    content = CONTENTS["zeros"] + CONTENTS["repeated words"]
    for codec in CODECS:
        _, payload = encode(content, codec, dependency_elimination=False)
        decoded = read_payload(codec, payload, len(content))
        assert not decoded.dependency_elimination
        assert breaks_of_dependency_elimination(decoded, len(content)) > 0


@settings(max_examples=60, deadline=None)
@given(
    pieces=st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=12),
    order=st.lists(st.integers(0, 11), min_size=1, max_size=200),
    codec=st.sampled_from(CODECS),
    level=st.integers(1, 8),
    dependency_elimination=st.booleans(),
)
def test_any_content_survives_encoding_and_decoding(
    pieces: list[bytes], order: list[int], codec: Codec, level: int, dependency_elimination: bool
) -> None:
    content = b"".join(pieces[index % len(pieces)] for index in order)
    coded_as, payload = encode(content, codec, level, dependency_elimination)
    assert decode_natively(coded_as, payload, len(content)) == content
    assert decode_payload(coded_as, payload, len(content)) == content
    if coded_as is codec and dependency_elimination:
        assert breaks_of_dependency_elimination(read_payload(codec, payload, len(content)), len(content)) == 0


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_higher_levels_are_not_larger(codec: Codec) -> None:
    content = CONTENTS["text"]
    sizes = [len(encode(content, codec, level)[1]) for level in (1, 3, 6, 8)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]
