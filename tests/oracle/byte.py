"""Readable decoder of gompresso-byte (docs/format.md; Gompresso, Sitaridi et al. 2016, section 3)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from oracle.constants import (
    BYTE_HEADER_SIZE,
    BYTE_LITERAL_ESCAPE,
    BYTE_MATCH_ESCAPE,
    BYTE_MATCH_SHIFT,
    BYTE_MIN_MATCH_LENGTH,
    FLAG_DEPENDENCY_ELIMINATION,
    MAX_GROUP_SIZE_LOG2,
    MIN_GROUP_SIZE_LOG2,
)
from oracle.sequences import DecodedPayload, PayloadError, Sequence

_HEADER = struct.Struct("<BBHIII")


def read_byte_payload(payload: bytes) -> DecodedPayload:
    """Returns the sequences and literals of a payload. Raises PayloadError if it is invalid."""
    if len(payload) < BYTE_HEADER_SIZE:
        raise PayloadError("the payload ends inside its header")
    flags, group_size_log2, reserved, num_sequences, num_extensions, num_literals = _HEADER.unpack_from(payload)
    if flags > FLAG_DEPENDENCY_ELIMINATION or reserved != 0:
        raise PayloadError("the payload has unknown flags")
    if not MIN_GROUP_SIZE_LOG2 <= group_size_log2 <= MAX_GROUP_SIZE_LOG2:
        raise PayloadError("the payload has impossible groups")
    tokens_start = BYTE_HEADER_SIZE + 2 * num_sequences
    extensions_start = tokens_start + num_sequences
    literals_start = extensions_start + num_extensions
    if literals_start + num_literals != len(payload):
        raise PayloadError("the streams do not fill the payload")
    offsets = struct.unpack_from(f"<{num_sequences}H", payload, BYTE_HEADER_SIZE)
    extensions = iter(payload[extensions_start:literals_start])
    sequences = [
        _read_sequence(token, match_offset, extensions)
        for token, match_offset in zip(payload[tokens_start:extensions_start], offsets, strict=True)
    ]
    if next(extensions, None) is not None:
        raise PayloadError("there are more extensions than sequences need")
    return DecodedPayload(bool(flags), group_size_log2, sequences, payload[literals_start:])


def _read_sequence(token: int, match_offset: int, extensions: Iterator[int]) -> Sequence:
    literal_length = token & BYTE_LITERAL_ESCAPE
    match_code = token >> BYTE_MATCH_SHIFT
    if literal_length == BYTE_LITERAL_ESCAPE:
        literal_length += _take(extensions)
    if match_code == BYTE_MATCH_ESCAPE:
        match_code += _take(extensions)
    if match_code == 0:
        if match_offset != 0:
            raise PayloadError("a sequence without a match has an offset")
        return Sequence(literal_length, 0, 0)
    return Sequence(literal_length, match_code + BYTE_MIN_MATCH_LENGTH - 1, match_offset)


def _take(extensions: Iterator[int]) -> int:
    extension = next(extensions, None)
    if extension is None:
        raise PayloadError("the extensions end before the sequences")
    return extension
