"""Contents and payloads that several tests use."""

from __future__ import annotations

import random
from pathlib import Path

from oracle.sequences import DecodedPayload

from gompfs._native import codec as _codec
from gompfs.codec import BLOCK_HEADER_SIZE, Codec, CodecOptions
from gompfs.engine import select_engine

CORPUS = Path(__file__).parents[2] / "examples" / "corpus"
CODECS = (Codec.GOMPRESSO_BYTE, Codec.GOMPRESSO_BIT)


def contents() -> dict[str, bytes]:
    rng = random.Random(1)
    text = (CORPUS / "carroll" / "alice29.txt").read_bytes()
    words = [rng.randbytes(rng.randint(1, 12)) for _ in range(50)]
    made = {
        "one byte": b"x",
        "two bytes": b"ab",
        "zeros": bytes(5000),
        "random": rng.randbytes(4000),
        "text": text[:65536],
        "text of an odd size": text[1000:5001],
        "all byte values": bytes(range(256)) * 8,
        "long literals, then a long match": (half := rng.randbytes(700)) + half,
        "more literals than a sequence holds": rng.randbytes(1000) + text[:300] + rng.randbytes(262) + text[:300],
        "runs between other bytes": b"".join(rng.randbytes(20) + bytes(rng.randint(100, 900)) for _ in range(9)),
        "repeated words": b"".join(rng.choices(words, k=3000)),
        "matches with runs between": b"".join(rng.choice(words) + bytes(rng.randint(0, 40)) for _ in range(500)),
        "many short sequences": b"".join(bytes((rng.randint(97, 100), 32)) for _ in range(4000)),
    }
    for offset in (*range(1, 41), 63, 64, 65, 255, 256, 257, 1000):
        made[f"period {offset}"] = (rng.randbytes(offset) * (1500 // offset + 2))[:1501]
    return made


def encode(content: bytes, codec: Codec, level: int = 6, dependency_elimination: bool = True) -> tuple[Codec, bytes]:
    """Returns the codec and the payload of the content as one block; the codec is stored if that is smaller."""
    options = CodecOptions(codec, level, dependency_elimination)
    block = select_engine("cpu", 1).encode_blocks(content, 1 << 20, options)[0]
    return block.codec, block.data[BLOCK_HEADER_SIZE:]


def decode_natively(codec: Codec, payload: bytes, uncompressed_size: int) -> bytes | None:
    """Returns what the C++ core decodes from a payload, without checksums, or None if it refuses the payload."""
    out = bytearray(uncompressed_size)
    return bytes(out) if _codec.decode_payload(codec, payload, out) else None


def breaks_of_dependency_elimination(decoded: DecodedPayload, size: int, *, strict: bool = False) -> int:
    """Returns how many match bytes come from above the group's high-water mark and not from the group's literals.

    If `strict`, literals of the group count as well.
    """
    is_literal = bytearray(size)
    position = 0
    for literal_length, match_length, _ in decoded.sequences:
        is_literal[position : position + literal_length] = b"\1" * literal_length
        position += literal_length + match_length
    breaks = position = high_water_mark = 0
    for index, (literal_length, match_length, match_offset) in enumerate(decoded.sequences):
        if index % (1 << decoded.group_size_log2) == 0:
            high_water_mark = position
        position += literal_length
        from_block = match_length if match_offset > 0 else 0  # matches from the dictionary depend on nothing
        for source in range(position - match_offset, position - match_offset + from_block):
            breaks += source >= high_water_mark and (strict or not is_literal[source])
        position += match_length
    return breaks
