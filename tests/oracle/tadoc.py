"""Readable decoder of the blocks of gompresso-tadoc (docs/format.md): rows of symbols of their part."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from oracle.constants import (
    BIT_PADDING,
    MAX_BLOCK_SIZE,
    MAX_SIZE_WIDTH,
    TADOC_HEADER_SIZE,
    TADOC_MAX_OVERHEAD,
)
from oracle.head import Part, read_head
from oracle.numbers import symbol_of_rank
from oracle.sequences import PayloadError
from oracle.streams import read_sub_blocks
from oracle.words import GlobalWords, read_words

__all__ = ["BlockSymbols", "GlobalWords", "Part", "decode_tadoc", "join_root", "read_block", "read_head", "read_words"]

_HEADER = struct.Struct("<IIHBB")


@dataclass(frozen=True)
class BlockSymbols:
    """The symbols of a block, by number. The block begins `skip` bytes after the beginning of the first one."""

    skip: int
    symbols: list[int]


def read_block(payload: bytes, uncompressed_size: int, part: Part) -> BlockSymbols:
    """Returns the symbols of a block of a part. Raises PayloadError if the payload is invalid."""
    if not 0 < uncompressed_size <= MAX_BLOCK_SIZE:
        raise PayloadError("the block has an impossible size")
    if not TADOC_HEADER_SIZE + BIT_PADDING <= len(payload) <= uncompressed_size + TADOC_MAX_OVERHEAD:
        raise PayloadError("the payload has an impossible size")
    num_symbols, base, skip, width, reserved = _HEADER.unpack_from(payload)
    if num_symbols == 0 or width > MAX_SIZE_WIDTH or reserved != 0:
        raise PayloadError("the payload has no symbols, impossible sizes or an unknown flag")
    (stream,) = read_sub_blocks(payload[TADOC_HEADER_SIZE : len(payload) - BIT_PADDING], [(base, width)])
    ranks = stream.read_array(num_symbols, part.code.read_number)
    stream.check_ends()
    return BlockSymbols(skip, [symbol_of_rank(part.symbols_by_rank, rank) for rank in ranks])


def decode_tadoc(payload: bytes, uncompressed_size: int, part: Part) -> bytes:
    """Returns the content of a block of a part. Raises PayloadError if the payload is invalid."""
    block = read_block(payload, uncompressed_size, part)
    if len(part.expansions.contents[block.symbols[0]]) <= block.skip:
        raise PayloadError("the first symbol ends before the block begins")
    end = block.skip + uncompressed_size
    output = bytearray()
    previous = None
    for symbol in block.symbols:
        part.expansions.take_space(output, previous, symbol)
        if len(output) >= end and not part.is_splitter(symbol):
            raise PayloadError("a symbol begins after the end of the block")
        output += part.expansions.contents[symbol]
        previous = symbol
    if len(output) < end:
        raise PayloadError("the symbols are shorter than the block")
    return bytes(output[block.skip : end])


def join_root(blocks: Iterable[BlockSymbols]) -> list[int]:
    """Returns the root of a part: the symbols of its blocks, where a symbol that two blocks share occurs once."""
    return [symbol for block in blocks for symbol in block.symbols[1 if block.skip else 0 :]]
