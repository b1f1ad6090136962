"""The worked examples in docs/format.md are what the encoder writes, and decode to what the document says."""

import re
from pathlib import Path

import pytest

from gompfs.codec import BLOCK_HEADER_SIZE, Codec, CodecOptions
from gompfs.codec.reference import decode_payload
from gompfs.engine import select_engine

DOCUMENT = (Path(__file__).parents[2] / "docs" / "format.md").read_text()
EXAMPLE = re.compile(r"^The \d+ bytes `([^`]+)`[^\n]*\n\n```payload ([\w-]+) (\d+)\n([^`]+)```", re.MULTILINE)
REPETITIONS = {Codec.GOMPRESSO_BYTE: 2, Codec.GOMPRESSO_BIT: 12}


def test_both_codecs_have_an_example() -> None:
    assert [label for _, label, _, _ in EXAMPLE.findall(DOCUMENT)] == ["gompresso-byte", "gompresso-bit"]


@pytest.mark.parametrize(("text", "label", "size", "digits"), EXAMPLE.findall(DOCUMENT))
def test_example(text: str, label: str, size: str, digits: str) -> None:
    codec = Codec.from_label(label)
    content = text.encode() * REPETITIONS[codec]
    payload = bytes.fromhex(digits)
    assert len(content) == int(size)
    assert decode_payload(codec, payload, len(content)) == content
    block = select_engine("cpu", 1).encode_blocks(content, 1 << 16, CodecOptions(codec))[0]
    assert block.data[BLOCK_HEADER_SIZE:] == payload
