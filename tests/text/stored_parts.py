"""Parts of text in memory, as the C++ core reads them from an archive, and their word grammars."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from both_decoders import frame
from oracle.constants import MAX_EXPANSION_SIZE
from plain_grammars import Files, plain_grammar_of
from tadoc_builder import BuiltPart, GlobalTokens, build_part
from tadoc_grammar import Piece, words_of

from gompfs._native.text import WordRule, read_segment_grammar
from gompfs.codec import Codec
from gompfs.text.grammar import Grammar
from gompfs.text.word_characters import word_characters

BLOCK_SIZE = 16
_LARGER_BLOCK_SIZE = 1 << 14
_WORDS_OF_PART = 1500


class Part(NamedTuple):
    """A head and blocks with their headers, or a text; and the size of the text."""

    size: int
    head: bytes = b""
    blocks: Sequence[bytes] = ()
    text: bytes = b""


class Extent(NamedTuple):
    """A row of the index; the offset is in a part."""

    ino: int
    file_offset: int
    part: int
    offset: int
    size: int


def framed(built: BuiltPart) -> Part:
    head = frame(Codec.HEAD, built.head, len(built.pool))
    pairs = zip(built.blocks, built.contents, strict=True)
    blocks = [frame(Codec.GOMPRESSO_TADOC, block, len(content)) for block, content in pairs]
    return Part(sum(map(len, built.contents)), head, blocks)


def whole_files(parts: Sequence[Part]) -> list[Extent]:
    return [Extent(number + 1, 0, number, 0, part.size) for number, part in enumerate(parts)]


def arguments(
    parts: Sequence[Part],
    extents: Sequence[Extent] | None = None,
    words: GlobalTokens | None = None,
    rule: str = "identifiers",
    block_size: int = BLOCK_SIZE,
) -> tuple[Any, ...]:
    """Returns the arguments of the C++ core for parts of an archive that is not on disk."""
    file = bytearray()
    begins, heads, first_blocks, blocks = (array("Q") for _ in range(4))
    block_sizes = array("I")

    def store(block: bytes) -> int:
        file.extend(bytes(-len(file) % 16))
        file.extend(block)
        return len(file) - len(block)

    for part in parts:
        begins.append(len(blocks) * block_size)
        first_blocks.append(len(blocks))
        heads.append(store(part.head))
        for block in part.blocks or [b""] * -(-part.size // block_size):
            blocks.append(store(block))
            block_sizes.append(len(block))
    rows = [
        (each.ino, each.file_offset, begins[each.part] + each.offset, each.size)
        for each in (whole_files(parts) if extents is None else extents)
    ]
    stored = (
        lambda offset, size: bytes(file[offset : offset + size]), block_size, begins,
        array("Q", [part.size for part in parts]), heads, array("I", [len(part.head) for part in parts]),
        first_blocks, [part.text for part in parts], blocks, block_sizes,
    )  # fmt: skip
    section = words.section() if words else b""
    flat = array("Q", [field for row in rows for field in row])
    return stored, flat, section, 1 << 20, WordRule[rule.upper()], word_characters(rule)


def grammar_of(files: Files, word_rule: str = "whitespace") -> Grammar:
    """Returns the grammar of files that are stored in parts: with rules, if they have no more than a few words."""
    parts: list[Part] = []
    extents: list[Extent] = []
    waiting: list[tuple[int, bytes]] = []
    num_words = 0

    def end_part() -> None:
        if waiting:
            offset = 0
            for ino, content in waiting:
                extents.append(Extent(ino, 0, len(parts), offset, len(content)))
                offset += len(content)
            pieces = [Piece(content) for _, content in waiting]
            parts.append(framed(build_part(pieces, block_size=_LARGER_BLOCK_SIZE, word_rule=word_rule)))
            waiting.clear()

    for ino, content in files:
        words = words_of(content, word_rule)
        if len(words) > _WORDS_OF_PART or len(content) >= MAX_EXPANSION_SIZE:
            end_part()
            extents.append(Extent(ino, 0, len(parts), 0, len(content)))
            parts.append(Part(len(content), text=content))
        elif content:
            num_words += len(words)
            waiting.append((ino, content))
            if num_words > _WORDS_OF_PART:
                end_part()
                num_words = 0
    end_part()
    given = arguments(parts, extents, rule=word_rule, block_size=_LARGER_BLOCK_SIZE)
    return Grammar(read_segment_grammar(*given, 2))


BUILDERS = {"parts": grammar_of, "plain": plain_grammar_of}
"""The grammars of files, with rules and without."""
