"""The worked examples of payloads in docs/format.md are what the encoder writes, and what the text says."""

import re
from pathlib import Path

import pytest
from oracle.bit import read_bit_payload
from oracle.payload import decode_payload

from gompfs._native import codec as native
from gompfs.codec import BLOCK_HEADER_SIZE, Codec, CodecOptions
from gompfs.engine import select_engine

DOCUMENT = (Path(__file__).parents[2] / "docs" / "format.md").read_text()
WITH_DICTIONARY = DOCUMENT.partition("\n## 7. Payload of gompresso-bit-dictionary\n")[2].partition("\n## 8. ")[0]
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
    block = select_engine("cpu", 1).encode_blocks(content, 1 << 16, CodecOptions(codec, dependency_elimination=True))[0]
    assert block.data[BLOCK_HEADER_SIZE:] == payload


def test_sequences_of_gompresso_bit() -> None:
    """The table of sequences has all bits of the sequence sub-blocks, and what they mean."""
    example = DOCUMENT.partition("### Example\n\nThe 144 bytes")[2].partition("\n## 7. ")[0]
    payload = bytes.fromhex(EXAMPLE.findall(DOCUMENT)[1][3])
    rows = [
        [cell.strip(" `") for cell in row.split("|")[2:-1]]
        for row in re.findall(r"^\| \d+ \|.*\|$", example, re.MULTILINE)
    ]
    decoded = read_bit_payload(payload, 144)
    assert [tuple(map(int, row[4:])) for row in rows] == decoded.sequences
    stream = payload[24 + int.from_bytes(payload[20:24], "little") : -8]
    bits = "".join(f"{byte:08b}"[::-1] for byte in stream)[32 * (4 + 2) :]
    sequences = "".join(cell for row in rows for cell in row[:4])
    literals = re.search(r"with one literal each: ([01` ]+), which is\s+`(\w+)`, and two spaces", example)
    assert literals is not None
    assert bits == (sequences + re.sub("[` ]", "", literals[1])).ljust(len(bits), "0")
    assert len(bits) - len(sequences + literals[1].replace("`", "").replace(" ", "")) < 8
    assert decoded.literals == literals[2].encode() + b"  "


def test_the_example_with_a_dictionary() -> None:
    """The payload is what the encoder writes, and the table has all bits of its sequences and literals."""
    texts = re.search(
        r"dictionary is the (\d+) bytes `(.+?)`, where.*? The (\d+) bytes `(.+?)`, four times",
        WITH_DICTIONARY,
        re.DOTALL,
    )
    assert texts is not None
    dictionary, repeated = (text.replace("\n", " ").replace("\N{OPEN BOX}", " ").encode() for text in texts.group(2, 4))
    assert (len(dictionary), len(repeated)) == (int(texts[1]), int(texts[3]))
    found = re.search(r"```payload gompresso-bit-dictionary (\d+)\n([^`]+)```", WITH_DICTIONARY)
    assert found is not None
    content, payload = repeated * 4, bytes.fromhex(found[2])
    assert len(content) == int(found[1])
    codec = Codec.GOMPRESSO_BIT_DICTIONARY
    assert decode_payload(codec, payload, len(content), dictionary) == content
    ((block, written, _),) = native.encode_blocks(
        content, 1 << 16, Codec.GOMPRESSO_BIT, 6, True, 1, dictionary=native.Dictionary(dictionary)
    )
    assert (written, block[BLOCK_HEADER_SIZE:]) == (codec, payload)

    rows = [
        [cell.strip(" `") for cell in row.split("|")[2:-1]]
        for row in re.findall(r"^\| \d+ \|.*\|$", WITH_DICTIONARY, re.MULTILINE)
    ]
    decoded = read_bit_payload(payload, len(content), dictionary)
    assert [
        (int(literals), int(length), -1 - int(address) if address else int(offset or 0))
        for *_, literals, length, offset, address in rows
    ] == decoded.sequences
    stream = payload[24 + int.from_bytes(payload[20:24], "little") : -8]
    bits = "".join(f"{byte:08b}"[::-1] for byte in stream)[32 * (4 + 1) :]
    assert bits == ("".join(cell for row in rows for cell in row[:4]) + "110").ljust(len(bits), "0")
    assert decoded.literals == b";; "
