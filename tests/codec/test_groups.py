"""Encoders guarantee dependency elimination for groups of every size in the format."""

from __future__ import annotations

import pytest
from oracle.constants import MAX_GROUP_SIZE_LOG2, MIN_GROUP_SIZE_LOG2
from oracle.payload import read_payload
from payloads import CODECS, CORPUS, breaks_of_dependency_elimination, decode_natively

from gompfs.codec import BLOCK_HEADER_SIZE, Codec, CodecOptions
from gompfs.engine import select_engine
from gompfs.errors import OptionError

BLOCK_SIZE = 1 << 15
TEXT = (CORPUS / "carroll" / "alice29.txt").read_bytes()
CONTENT = TEXT[:20000] + bytes(3000) + TEXT[5000:14768]


@pytest.mark.parametrize("group_size_log2", range(MIN_GROUP_SIZE_LOG2, MAX_GROUP_SIZE_LOG2 + 1))
@pytest.mark.parametrize("level", [1, 5, 6, 8])
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_groups_of_every_size(codec: Codec, level: int, group_size_log2: int) -> None:
    options = CodecOptions(codec, level, True, group_size_log2)
    (block,) = select_engine("cpu", 1).encode_blocks(CONTENT, BLOCK_SIZE, options)
    payload = block.data[BLOCK_HEADER_SIZE:]
    assert decode_natively(codec, payload, len(CONTENT)) == CONTENT
    decoded = read_payload(codec, payload, len(CONTENT))
    assert decoded.dependency_elimination
    assert decoded.group_size_log2 == group_size_log2
    assert breaks_of_dependency_elimination(decoded, len(CONTENT)) == 0


@pytest.mark.parametrize("group_size_log2", [MIN_GROUP_SIZE_LOG2, MAX_GROUP_SIZE_LOG2])
@pytest.mark.parametrize("level", [1, 6, 8])
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_strict_sources_lie_below_the_high_water_mark(codec: Codec, level: int, group_size_log2: int) -> None:
    breaks = {}
    for strict in (False, True):
        options = CodecOptions(codec, level, True, group_size_log2, strict)
        (block,) = select_engine("cpu", 1).encode_blocks(CONTENT, BLOCK_SIZE, options)
        payload = block.data[BLOCK_HEADER_SIZE:]
        assert decode_natively(codec, payload, len(CONTENT)) == CONTENT
        decoded = read_payload(codec, payload, len(CONTENT))
        breaks[strict] = breaks_of_dependency_elimination(decoded, len(CONTENT), strict=True)
    assert breaks[True] == 0
    assert breaks[False] > 0


@pytest.mark.parametrize("group_size_log2", [MIN_GROUP_SIZE_LOG2 - 1, MAX_GROUP_SIZE_LOG2 + 1])
def test_other_group_sizes_are_refused(group_size_log2: int) -> None:
    with pytest.raises(OptionError, match="a group cannot have"):
        CodecOptions(group_size_log2=group_size_log2)
