"""Readable decoders of every codec, straight from docs/format.md; the oracle for the fast ones."""

from __future__ import annotations

from gompfs.codec.codecs import Codec


class PayloadError(ValueError):
    """A payload that its codec cannot decode; engines turn it into BlockStatus.BAD_PAYLOAD."""


def decode_payload(codec: Codec, payload: bytes, uncompressed_size: int) -> bytes:
    """The `uncompressed_size` bytes that `payload` stands for; raises PayloadError."""
    if codec is Codec.STORED:
        if len(payload) != uncompressed_size:
            raise PayloadError("a stored payload has the size of its content")
        return payload
    raise PayloadError(f"no reference decoder for {codec.label}")
