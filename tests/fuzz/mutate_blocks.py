"""Mutations of blocks: their payloads, their headers, and their offsets in the index."""

from __future__ import annotations

import random
import struct
from unittest import mock

from mutations import mutate as mutate_bytes
from oracle.archive import BLOCK_FIELDS, BLOCK_HEADER_SIZE
from oracle.payload import PayloadError, decode_payload, read_payload
from oracle.sequences import DecodedPayload, Sequence
from payload_builder import build_bit, build_byte
from taken_apart import TakenApart, Where, seal
from xxhash import xxh3_64_intdigest

from gompfs.codec import Codec

EXTREMES = (0, 1, 2, 3, 31, 32, 127, 128, 255, 256, 65535, 65536, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
_HEADER_SIZES = {1: 16, 2: 24, 5: 24}
_ANY_DICTIONARY = bytes(1)  # sequences can be read without the bytes that they copy
_END_OF_ADDRESSES = 1_310_716  # of what a payload can express; no dictionary is as large
_BYTE_LIMITS = (7 + 255, 3 + 30 + 255, 65535)


def _pick(parts: TakenApart, rng: random.Random) -> tuple[Where, int, bytes]:
    """Picks a block, more often of the stream than of a section."""
    rows = parts.block_rows()
    stream = [where for where in rows if len(where) == 1]
    where = rng.choice(stream if stream and rng.random() < 0.6 else rows)
    number = rng.randrange(len(parts.places(where).offsets))
    return where, number, parts.block(where, number)


def payload(parts: TakenApart, rng: random.Random) -> tuple[str, bool]:
    """Changes the payload: fields of its header, random bytes, or other sequences in valid coding."""
    where, number, block = _pick(parts, rng)
    _, codec, _, _, size, content_xxh3 = BLOCK_FIELDS.unpack_from(block)
    old = block[BLOCK_HEADER_SIZE:]
    kind = rng.choice(("bytes", "field", "sequences", "sequences")) if codec in _HEADER_SIZES else "bytes"
    if kind == "bytes":
        new = mutate_bytes(old, rng)
    elif kind == "field":
        new = _other_field(old, codec, rng)
    else:
        new = _other_sequences(old, Codec(codec), size, rng)
    keeps = True
    if rng.random() < 0.3:  # forge the checksum of the content too, if the payload can be decoded
        try:
            content = decode_payload(Codec(codec), new, size)
            keeps, content_xxh3 = False, xxh3_64_intdigest(content)
        except PayloadError:
            pass
    parts.set_block(where, number, seal(codec, new, size, content_xxh3))
    return f"{kind} of the payload of block {number} of {where}", keeps


def _other_field(old: bytes, codec: int, rng: random.Random) -> bytes:
    start = rng.randrange(4) if rng.random() < 0.4 else rng.randrange(4, _HEADER_SIZES[codec], 4)
    width = 1 if start < 4 else 4
    value = int.from_bytes(old[start : start + width], "little")
    other = rng.choice((*EXTREMES, value + 1, value - 1, value * 2, value + 8)) & (1 << 8 * width) - 1
    return old[:start] + other.to_bytes(width, "little") + old[start + width :]


def _other_sequences(old: bytes, codec: Codec, size: int, rng: random.Random) -> bytes:
    """Returns the payload of slightly different, mostly invalid sequences."""
    dictionary = _ANY_DICTIONARY if codec is Codec.GOMPRESSO_BIT_DICTIONARY else b""
    decoded = read_payload(codec, old, size, dictionary)
    sequences, literals = list(decoded.sequences), bytearray(decoded.literals)
    for _ in range(rng.choice((1, 1, 2, 6))):
        at = rng.randrange(len(sequences)) if sequences else 0
        kind = rng.randrange(7)
        if kind == 0 and sequences:
            del sequences[at]
        elif kind == 1 and sequences:
            sequences.insert(at, rng.choice(sequences))
        elif kind == 2:
            sequences.insert(at, Sequence(0, 0, 0))
        elif kind == 3 and literals:
            literals[rng.randrange(len(literals))] = rng.randrange(256)
        elif kind == 4 and literals:
            del literals[rng.randrange(len(literals)) :][: rng.choice((1, 2, 50))]
        elif sequences:
            sequences[at] = _other_sequence(sequences[at], rng)
    group = rng.choice((decoded.group_size_log2, 2, 5))
    changed = DecodedPayload(rng.random() < 0.5, group, sequences, bytes(literals), dictionary)
    if codec is Codec.GOMPRESSO_BYTE:
        return build_byte(changed)
    if rng.random() < 0.15:
        with mock.patch("payload_builder.random_code", _odd_code):
            return build_bit(changed, rng)
    return build_bit(changed, rng)


def _other_sequence(sequence: Sequence, rng: random.Random) -> Sequence:
    """Changes one field of a sequence to another value that a token can express."""
    fields = list(sequence)
    which = rng.randrange(3)
    if which == 2 and sequence.match_offset < 0:
        address = -1 - sequence.match_offset
        others = (0, address + 1, max(address - 1, 0), rng.randrange(_END_OF_ADDRESSES), _END_OF_ADDRESSES - 1)
        return sequence._replace(match_offset=-1 - min(rng.choice(others), _END_OF_ADDRESSES - 1))
    limit = _BYTE_LIMITS[which]
    fields[which] = min(
        max(rng.choice((0, 3, fields[which] + 1, fields[which] - 1, limit, rng.randrange(300))), 0), limit
    )
    if 0 < fields[1] < 3 or (fields[1] == 0) != (fields[2] == 0):
        fields[1], fields[2] = max(fields[1], 3), max(fields[2], 1)
    return Sequence(*fields)


def _odd_code(used: set[int], num_symbols: int, max_bits: int, rng: random.Random) -> list[int]:
    """Returns an incomplete code whose codewords all have the maximum length."""
    return [max_bits if symbol in used or rng.random() < 0.02 else 0 for symbol in range(num_symbols)]


def block_header(parts: TakenApart, rng: random.Random) -> tuple[str, bool]:
    """Changes fields of a block's header. The index contains the size that the block has now."""
    where, number, block = _pick(parts, rng)
    _, codec, _, _, size, content_xxh3 = BLOCK_FIELDS.unpack_from(block)
    old = block[BLOCK_HEADER_SIZE:]
    odd: dict[str, int | bytes] = {}
    kind = rng.choice(("magic", "codec", "reserved", "payload size", "uncompressed size", "content checksum"))
    if kind == "magic":
        odd["magic"] = rng.choice((b"GBLL", b"GGRM", bytes(4)))
    elif kind == "codec":
        codec = rng.choice((0, 1, 2, 3, 4, 5, 6, 255))
    elif kind == "reserved":
        odd["reserved"] = rng.choice((b"\1\0\0", b"\0\0\1"))
    elif kind == "payload size":
        odd["size"] = rng.choice((0, len(old) + 1, len(old) - 1, *EXTREMES)) & 0xFFFFFFFF
    elif kind == "uncompressed size":
        size = rng.choice((0, size + 1, size - 1, parts.block_size, *EXTREMES)) & 0xFFFFFFFF
    else:
        content_xxh3 = rng.choice((0, content_xxh3 ^ 1, rng.getrandbits(64)))
    parts.set_block(where, number, seal(codec, old, size, content_xxh3, **odd))
    return f"{kind} of block {number} of {where}", True


def head(parts: TakenApart, rng: random.Random) -> tuple[str, bool]:
    """Changes the head of a part: its payload, the size of its pool, its codec; or gives parts the heads of others."""
    query = "SELECT number FROM segment WHERE ltrim(hex(head_sizes), '0') != ''"
    segment = rng.choice([number for (number,) in parts.rows(query)])
    heads = parts.heads(segment)
    at = rng.choice([number for number, found in enumerate(heads) if found])
    codec, size, content_xxh3 = heads[at][4], *struct.unpack_from("<IQ", heads[at], 12)
    old = heads[at][BLOCK_HEADER_SIZE:]
    kind = rng.choice(("payload", "payload", "payload", "pool size", "codec", "others"))
    if kind == "payload":
        heads[at] = seal(codec, mutate_bytes(old, rng), size, content_xxh3)
    elif kind == "pool size":
        heads[at] = seal(codec, old, rng.choice((0, size + 1, size - 1, *EXTREMES)) & 0xFFFFFFFF, content_xxh3)
    elif kind == "codec":
        heads[at] = seal(rng.choice((0, 2, 3, 5, 255)), old, size, content_xxh3)
    else:
        heads = rng.choice((heads[::-1], [heads[at]] * len(heads)))
    parts.set_heads(segment, heads)
    return f"{kind} of head {at} of segment {segment}", False


def block_places(parts: TakenApart, rng: random.Random) -> tuple[str, bool]:
    """Moves blocks: into another order, into each other, to the same offset, outside of the file."""
    rows = parts.block_rows()
    where = rng.choice(rows)
    places = parts.places(where)
    at = rng.randrange(len(places.offsets))
    kind = rng.choice(
        ("swap", "shift", "size", "same", "of another row", "uncompressed size", "drop", "repeat", "outside")
    )
    if kind == "swap":
        other = rng.randrange(len(places.offsets))
        for column in (places.offsets, places.sizes):
            column[at], column[other] = column[other], column[at]
    elif kind == "shift":
        places.offsets[at] += rng.choice((-16, 16, 1, -1, 32, 8, 4096))
    elif kind == "size":
        places.sizes[at] = rng.choice(
            (0, 31, 32, 33, places.sizes[at] + 1, places.sizes[at] - 1, (1 << 20) + 33, 0xFFFFFFFF)
        )
    elif kind == "same":
        places.offsets = [places.offsets[at]] * len(places.offsets)
        places.sizes = [places.sizes[at]] * len(places.sizes)
    elif kind == "of another row":
        other = parts.places(rng.choice(rows))
        number = rng.randrange(len(other.offsets))
        places.offsets[at], places.sizes[at] = other.offsets[number], other.sizes[number]
    elif kind == "uncompressed size":
        size = places.uncompressed_size
        places.uncompressed_size = rng.choice(
            (0, size + 1, size - 1, size + parts.block_size, (1 << 62), (1 << 63) - 1)
        )
    elif kind == "drop":
        del places.offsets[at], places.sizes[at]
        places.uncompressed_size -= parts.block_size if rng.random() < 0.7 else 0
    elif kind == "repeat":
        places.offsets.insert(at, places.offsets[at])
        places.sizes.insert(at, places.sizes[at])
        places.uncompressed_size += parts.block_size if rng.random() < 0.7 else 0
    else:
        places.offsets[at] = rng.choice(
            (0, 64, len(parts.data) - 32, len(parts.data), 1 << 40, (1 << 63), (1 << 64) - 1)
        )
    parts.set_places(where, places)
    return f"{kind}: block {at} of {where}", False
