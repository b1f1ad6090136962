"""Decodes the payload of any codec, except gompresso-tadoc, which needs the head of its part."""

from __future__ import annotations

from gompfs.codec.codecs import Codec
from oracle.bit import read_bit_payload
from oracle.byte import read_byte_payload
from oracle.sequences import DecodedPayload, PayloadError

__all__ = ["PayloadError", "decode_payload", "read_payload"]


def read_payload(
    codec: Codec, payload: bytes, uncompressed_size: int, dictionary: bytes | None = None
) -> DecodedPayload:
    """Returns the sequences and literals of a payload.

    Raises PayloadError if the payload is invalid, if the codec is `stored`, which has no sequences, or if it is
    gompresso-bit-dictionary and there is no dictionary.
    """
    if codec is Codec.GOMPRESSO_BYTE:
        return read_byte_payload(payload)
    if codec is Codec.GOMPRESSO_BIT:
        return read_bit_payload(payload, uncompressed_size)
    if codec is Codec.GOMPRESSO_BIT_DICTIONARY and dictionary:
        return read_bit_payload(payload, uncompressed_size, dictionary)
    raise PayloadError(f"a payload of {codec.label} has no sequences, or no dictionary")


def decode_payload(codec: Codec, payload: bytes, uncompressed_size: int, dictionary: bytes | None = None) -> bytes:
    """Returns the `uncompressed_size` bytes that the payload decodes to. Raises PayloadError if it is invalid."""
    if codec is Codec.STORED:
        if len(payload) != uncompressed_size:
            raise PayloadError("a stored payload must have the size of its content")
        return payload
    return read_payload(codec, payload, uncompressed_size, dictionary).expand(uncompressed_size)
