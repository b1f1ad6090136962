"""Sequences, which both Gompresso codecs store, and their expansion to bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class PayloadError(ValueError):
    """The codec cannot decode a payload."""


class Sequence(NamedTuple):
    """`literal_length` literals, then a copy of `match_length` bytes from `match_offset` bytes back in the output.

    A sequence without a match has a match_length and match_offset of 0. A match from the dictionary has
    the match_offset -1 - address.
    """

    literal_length: int
    match_length: int
    match_offset: int


@dataclass(frozen=True)
class DecodedPayload:
    """A payload after entropy decoding. A group has 2 ** `group_size_log2` sequences."""

    dependency_elimination: bool
    group_size_log2: int
    sequences: list[Sequence]
    literals: bytes
    dictionary: bytes = b""

    def expand(self, uncompressed_size: int) -> bytes:
        """Returns the bytes of the block. Raises PayloadError unless there are exactly `uncompressed_size` of them."""
        output = bytearray()
        next_literal = 0
        for literal_length, match_length, match_offset in self.sequences:
            if literal_length > len(self.literals) - next_literal:
                raise PayloadError("the literals end before the sequences")
            if literal_length + match_length > uncompressed_size - len(output):
                raise PayloadError("the sequences are longer than the block")
            output += self.literals[next_literal : next_literal + literal_length]
            next_literal += literal_length
            if match_length == 0:
                continue
            if match_offset < 0:
                address = -1 - match_offset
                if address + match_length > len(self.dictionary):
                    raise PayloadError("a match ends after the dictionary")
                output += self.dictionary[address : address + match_length]
                continue
            if not 0 < match_offset <= len(output):
                raise PayloadError("a match begins before the block")
            for _ in range(match_length):  # byte by byte: a match may overlap itself
                output.append(output[-match_offset])
        if len(output) != uncompressed_size or next_literal != len(self.literals):
            raise PayloadError("the sequences are shorter than the block")
        return bytes(output)
