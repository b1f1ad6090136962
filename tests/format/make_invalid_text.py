"""Makes invalid archives: `python -m tests.format.make_invalid_text DIRECTORY`.

They break rules on the frame of the file, and on text in parts. As in make_invalid.py, each archive has a single fault,
a file `sound`, and a file `damaged`. The text of each file is a part of its own, a grammar with a single block. The
part of `damaged` uses the section `words`, the other one does not.
tests/data/invalid/text/expected.toml says what commands must do with each archive.
"""

from __future__ import annotations

import stat
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from uuid import UUID

if __name__ == "__main__":
    import tests.rooms  # noqa: F401

from archive_builder import BLOCK_SIZE, ArchiveBuilder, StoredPart, position_of, with_generation, with_index
from both_decoders import frame
from make_invalid import make_missing, patched, resealed
from oracle.block import build_block as seal
from oracle.constants import MAX_DICTIONARY_SIZE
from tadoc_builder import BuiltPart, GlobalTokens, HeadPlan, build_block, build_part
from tadoc_grammar import SPLITTER, Grammar, Piece, Rule, Symbol, Token, tokens_of
from xxhash import xxh3_64_intdigest

from gompfs.codec import Codec, CodecOptions
from gompfs.engine import select_engine
from gompfs.format import SUPERBLOCK_SIZE, GenerationHeader, Superblock, encode_columns
from gompfs.model import PartKind

SOUND = (b"what is sound stays readable; " * 600)[:BLOCK_SIZE]
DAMAGED = b"to be or not to be, to be or not to be, that was the question\nto be, whether a question\n"
GLOBAL = GlobalTokens([b"question", b"whether"], [b"\n"])

A, BE, NOT, OR, THAT = (Token(word, True) for word in (b"a", b"be", b"not", b"or", b"that"))
THE, TO, WAS, QUESTION, WHETHER = (Token(word, True) for word in (b"the", b"to", b"was", b"question", b"whether"))
COMMA, LINE = Token(b", ", False), Token(b"\n", False)
TO_BE, QUESTION_LINE, TO_BE_OR_NOT, TO_BE_COMMA = map(Rule, range(4))
RULES: list[list[Symbol]] = [[TO, BE], [QUESTION, LINE], [TO_BE, OR, NOT], [TO_BE, COMMA]]
FIRST_LINE: list[Symbol] = [*[TO_BE_OR_NOT, TO_BE_COMMA] * 2, THAT, WAS, THE, QUESTION_LINE]
SECOND_LINE: list[Symbol] = [TO_BE_COMMA, WHETHER, A, QUESTION_LINE]
# The symbols of the part of `damaged`, by their ranks. Array 11 of its head is 11, 1, 2, 0; array 12 is 10, 13, 15, 14,
# 16 (docs/format.md, section 12).
RANKS = [
    TO_BE_COMMA, TO_BE_OR_NOT, TO_BE, QUESTION_LINE, THAT, WAS, SPLITTER, A, THE, WHETHER, BE, TO, QUESTION, LINE,
    NOT, OR, COMMA,
]  # fmt: skip
ROOT = [RANKS.index(symbol) for symbol in (*FIRST_LINE, *SECOND_LINE, SPLITTER)]
NO_SYMBOL = len(RANKS)


@cache
def part() -> BuiltPart:
    """Returns the part of `damaged`."""
    built = build_part([Piece(DAMAGED)], GLOBAL, grammar=Grammar([*FIRST_LINE, *SECOND_LINE, SPLITTER], RULES))
    assert built.plan.arrays[11:] == [[11, 1, 2, 0], [10, 13, 15, 14, 16]]
    assert built.blocks == [build_block(ROOT, 0, built.plan.rank_code)]
    return built


@cache
def sound_part() -> StoredPart:
    return stored(build_part([Piece(SOUND)]))


def stored(built: BuiltPart) -> StoredPart:
    (payload,), (content,) = built.blocks, built.contents
    block = seal(Codec.GOMPRESSO_TADOC, payload, content).data
    return StoredPart(len(content), [block], seal(Codec.HEAD, built.head, built.pool).data)


def builder(
    *statements: str,
    head: bytes | None = None,
    block: bytes | None = None,
    words: bytes | None = None,
    damaged: StoredPart | None = None,
) -> ArchiveBuilder:
    """Returns what makes an archive. Arguments change the index, or replace what the file `damaged` is stored in."""
    made = ArchiveBuilder(statements=list(statements), meta={"words": "identifiers"})
    intact = stored(part())
    damaged = damaged or replace(intact, head=head or intact.head, blocks=[block or intact.blocks[0]])
    made.parts = [sound_part(), damaged]
    made.add_file(b"sound", len(SOUND), 0)
    made.add_file(b"damaged", len(DAMAGED), BLOCK_SIZE)
    made.add_entry(b"folder", stat.S_IFDIR | 0o755)
    section = GLOBAL.section()
    made.sections["words"] = [(words or seal(Codec.STORED, section, section).data, len(section))]
    return made


def archive(*statements: str) -> bytes:
    return builder(*statements).build()


# The chain, the trailers and the index


def superblock_with(**fields: int) -> bytes:
    whole = archive()
    superblock = Superblock.from_bytes(whole[:SUPERBLOCK_SIZE])
    return superblock._replace(**fields).to_bytes() + whole[SUPERBLOCK_SIZE:]


def generation_with(change: Callable[[GenerationHeader], bytes]) -> bytes:
    """Returns an archive with a second generation, in which `folder` has another name, and which has this header."""
    _, later = builder("UPDATE dirent SET name = x'6c61746572' WHERE ino = 4").content_and_columns()
    whole, start = with_generation(archive(), later)
    header = GenerationHeader.from_bytes(whole[start : start + SUPERBLOCK_SIZE])
    return patched(whole, start, change(header))


def flipped(content: bytes, *offsets: int) -> bytes:
    for offset in offsets:
        content = patched(content, offset, bytes([content[offset] ^ 1]))
    return content


def copies_flipped(*copies: int) -> bytes:
    """Returns an archive with a damaged byte in these copies of the index."""
    whole = archive()
    return flipped(whole, *(position_of(whole).copy_offset(copy) + 200 for copy in copies))


def footers_with(**fields: int) -> bytes:
    return with_index(*builder().content_and_columns(), **fields)


def copies_that_differ() -> bytes:
    """Copy 0 of the index is one in which `folder` has another name."""
    content, columns = builder().content_and_columns()
    other = columns.replace(b"folder", b"FOLDER")
    wholes = [with_index(content, each, sealed_columns(each)) for each in (other, columns)]
    end = position_of(wholes[0]).copy_end(0)
    return wholes[0][:end] + wholes[1][end:]


def sealed_columns(columns: bytes, codec: Codec = Codec.STORED) -> bytes:
    assert len(columns) <= BLOCK_SIZE
    return seal(codec, columns, columns).data


def columns_with_more(more: bytes) -> bytes:
    """Returns an archive in which bytes follow the blocks of the index, within its stored size."""
    content, columns = builder().content_and_columns()
    index = encode_columns(columns, [])
    return with_index(content, columns, index.ljust(-(-len(index) // 16) * 16, b"\0") + more)


def columns_of_codec(codec: Codec) -> bytes:
    content, columns = builder().content_and_columns()
    return with_index(content, columns, sealed_columns(columns, codec))


def small_index_blocks() -> bytes:
    """The index claims more bytes than 341 times its payload."""
    content, columns = builder().content_and_columns()
    return with_index(content, columns, frame(Codec.GOMPRESSO_BIT, bytes(40), BLOCK_SIZE), columns_size=BLOCK_SIZE)


# Rows of the index


def packed(column: str, code: str, *values: int) -> str:
    """Returns SQL that replaces a packed column of the segment."""
    return f"UPDATE segment SET {column} = x'{struct.pack(f'<{len(values)}{code}', *values).hex()}'"


def head_sizes(*, of_damaged: int) -> str:
    return packed("head_sizes", "I", len(sound_part().head), of_damaged)


def data_part(*statements: str) -> bytes:
    """Returns an archive in which `damaged` is in a part of kind 0."""
    block = seal(Codec.STORED, DAMAGED, DAMAGED).data
    return builder(*statements, damaged=StoredPart(len(DAMAGED), [block], kind=PartKind.DATA)).build()


def dictionary_part(
    *statements: str,
    block: bytes | None = None,
    kind: PartKind = PartKind.DICTIONARY,
    dictionary: Sequence[tuple[bytes, int]] = (),
) -> bytes:
    """Returns an archive in which `damaged` is a stored block in a part of kind 3, and with a dictionary.

    Arguments replace the block, the kind, and the blocks of the dictionary with their uncompressed sizes.
    """
    block = block or seal(Codec.STORED, DAMAGED, DAMAGED).data
    made = builder(
        "INSERT INTO binary_file VALUES (3)", *statements, damaged=StoredPart(len(DAMAGED), [block], kind=kind)
    )
    made.sections["dictionary"] = list(dictionary) or [(seal(Codec.STORED, SOUND, SOUND).data, len(SOUND))]
    return made.build()


def large_dictionary() -> bytes:
    blocks = select_engine("cpu", 1).encode_blocks(bytes(MAX_DICTIONARY_SIZE + 1), BLOCK_SIZE, CodecOptions())
    return dictionary_part(dictionary=[(block.data, block.uncompressed_size) for block in blocks])


def words_at_odd_offset() -> bytes:
    """The section `words`, whose block is the last one of the file, does not begin at a multiple of 16."""
    content, columns = builder("UPDATE section SET archive_offset = archive_offset + 8").content_and_columns()
    start = content.rindex(b"GBLK")
    return with_index(content[:start] + bytes(8) + content[start:] + bytes(8), columns)


# Heads, blocks and the section `words`


def head_with(
    change: Callable[[HeadPlan], object] = lambda plan: None,
    *fields: tuple[str, int, int],
    codes: dict[int, list[int]] | None = None,
    more: bytes = b"",
    pool: bytes | None = None,
) -> bytes:
    """Returns an archive with a changed head: its plan, class codes, fields of its payload, or the stated pool."""
    built = part()
    plan = replace(built.plan, arrays=list(built.plan.arrays))
    change(plan)
    payload = bytearray(plan.write(codes=codes))
    for code, offset, value in fields:
        struct.pack_into(f"<{code}", payload, offset, value)
    pool = built.pool if pool is None else pool
    return builder(head=seal(Codec.HEAD, bytes(payload) + more, pool).data).build()


def put(array: int, *items: int) -> Callable[[HeadPlan], object]:
    return lambda plan: plan.arrays.__setitem__(array, list(items))


def token_bytes(content: bytes) -> Callable[[HeadPlan], object]:
    return lambda plan: setattr(plan, "token_bytes", content)


def head_changed(change: Callable[[bytes], bytes]) -> bytes:
    return builder(head=change(stored(part()).head)).build()


def block_with(
    ranks: Sequence[int] = ROOT, *fields: tuple[str, int, int], skip: int = 0, more: bytes = b"", padding: bytes = b""
) -> bytes:
    """Returns an archive with these symbols in the block of `damaged`, with fields of its header replaced."""
    payload = bytearray(build_block(ranks, skip, part().plan.rank_code))
    for code, offset, value in fields:
        struct.pack_into(f"<{code}", payload, offset, value)
    payload[len(payload) - len(padding) :] = padding
    return builder(block=seal(Codec.GOMPRESSO_TADOC, bytes(payload) + more, DAMAGED).data).build()


def block_changed(change: Callable[[bytes], bytes]) -> bytes:
    return builder(block=change(stored(part()).blocks[0])).build()


def with_content_checksum(block: bytes) -> bytes:
    return resealed(block, 16, xxh3_64_intdigest(b"other").to_bytes(8, "little"))


def words_with(section: bytes, damaged: StoredPart | None = None) -> bytes:
    """Returns an archive with another section `words`, and perhaps with another part of `damaged`."""
    made = builder(damaged=damaged)
    blocks = select_engine("cpu", 1).encode_blocks(section, BLOCK_SIZE, CodecOptions())
    made.sections["words"] = [(block.data, block.uncompressed_size) for block in blocks]
    return made.build()


def too_large_words() -> bytes:
    """The words share prefixes of 254 bytes. All have 5 MB, and are stored in some hundred bytes."""
    words = [b"%02x" % number + b"w" * 252 + b"%02x" % within for number in range(80) for within in range(256)]
    section = GlobalTokens([*GLOBAL.words, *words], GLOBAL.separators).section()
    return words_with(section)


def words_changed(change: Callable[[bytes], bytes]) -> bytes:
    section = GLOBAL.section()
    return builder(words=change(seal(Codec.STORED, section, section).data)).build()


def tokens_with(old: list[Symbol], new: list[Symbol], global_tokens: GlobalTokens = GLOBAL) -> StoredPart:
    """Returns the text of `damaged` as a part without rules, in which the first tokens `old` are replaced by `new`."""
    tokens = tokens_of([Piece(DAMAGED)])
    start = next(start for start in range(len(tokens)) if tokens[start : start + len(old)] == old)
    root = [*tokens[:start], *new, *tokens[start + len(old) :]]
    return stored(build_part([Piece(DAMAGED)], global_tokens, grammar=Grammar(root, [])))


SECTION = GLOBAL.section()

MAKERS: dict[str, Callable[[], bytes]] = {
    "superblock-no-index": lambda: superblock_with(index_offset=0, index_size=0),
    "superblock-index-after-file": lambda: superblock_with(index_offset=1 << 40),
    "superblock-index-at-odd-offset": lambda: superblock_with(
        index_offset=position_of(archive()).index_offset + 8, index_size=position_of(archive()).index_size - 8
    ),
    "superblock-checksum": lambda: flipped(archive(), 56),
    "generation-uuid": lambda: generation_with(lambda header: header._replace(uuid=UUID(int=2).bytes).to_bytes()),
    "generation-number": lambda: generation_with(lambda header: header._replace(generation=3).to_bytes()),
    "generation-checksum": lambda: generation_with(lambda header: flipped(header.to_bytes(), 60)),
    "generation-incomplete": lambda: generation_with(
        lambda header: header._replace(index_offset=0, index_size=0).to_bytes()
    ),
    "truncated": lambda: archive()[: position_of(archive()).copy_end(0) - 1],
    "truncated-copy-1": lambda: archive()[:-1],
    "bytes-after-generation": lambda: archive() + bytes(16),
    "copy-0": lambda: copies_flipped(0),
    "copy-1": lambda: copies_flipped(1),
    "both-copies": lambda: copies_flipped(0, 1),
    "copies-that-differ": copies_that_differ,
    "footer-features": lambda: footers_with(features=1 << 31 | 1),
    "footer-before": lambda: footers_with(previous_footer=64),
    "columns-checksum": lambda: footers_with(columns_xxh3=1),
    "columns-size": lambda: footers_with(columns_size=len(builder().content_and_columns()[1]) - 1),
    "columns-too-large": small_index_blocks,
    "columns-more-blocks": lambda: columns_with_more(sealed_columns(b"more")),
    "columns-codec-3": lambda: columns_of_codec(Codec.GOMPRESSO_TADOC),
    "columns-codec-4": lambda: columns_of_codec(Codec.HEAD),
    "part-kind": lambda: archive(packed("part_kinds", "B", 2, 3)),  # made when no part could have this kind
    "part-kind-4": lambda: archive(packed("part_kinds", "B", 2, 4)),
    "part-empty": lambda: archive(
        packed("part_kinds", "B", 2, 2, 2),
        packed("part_sizes", "Q", BLOCK_SIZE, len(DAMAGED), 0),
        packed("head_sizes", "I", len(sound_part().head), len(stored(part()).head), 0),
    ),
    "part-of-more-blocks": lambda: archive(packed("part_sizes", "Q", BLOCK_SIZE + 1, len(DAMAGED))),
    "part-of-all-numbers": lambda: archive(packed("part_sizes", "Q", (1 << 63) - BLOCK_SIZE, 2 * BLOCK_SIZE)),
    "part-without-head": lambda: archive(head_sizes(of_damaged=0)),
    "part-of-text-with-head": lambda: archive(packed("part_kinds", "B", 2, PartKind.TEXT)),
    "part-of-data-with-head": lambda: archive(
        packed("part_kinds", "B", 2, PartKind.DATA), "INSERT INTO binary_file VALUES (3)"
    ),
    "part-size": lambda: archive(packed("part_sizes", "Q", BLOCK_SIZE, len(DAMAGED) + 1)),
    "dictionary-missing": lambda: dictionary_part("DELETE FROM section WHERE kind = 'dictionary'"),
    "dictionary-of-segment-1": lambda: dictionary_part("UPDATE section SET segment = 1 WHERE kind = 'dictionary'"),
    "dictionary-empty": lambda: dictionary_part(
        "UPDATE section SET uncompressed_size = 0, archive_offset = 0, compressed_sizes = x'' WHERE kind = 'dictionary'"
    ),
    "dictionary-too-large": large_dictionary,
    "dictionary-checksum": lambda: dictionary_part(
        dictionary=[(flipped(seal(Codec.STORED, SOUND, SOUND).data, 40), len(SOUND))]
    ),
    "dictionary-codec": lambda: dictionary_part(
        dictionary=[(resealed(seal(Codec.STORED, SOUND, SOUND).data, 4, b"\5"), len(SOUND))]
    ),
    "block-codec-2-with-dictionary": lambda: dictionary_part(block=seal(Codec.GOMPRESSO_BIT, bytes(64), DAMAGED).data),
    "block-codec-5-without-dictionary": lambda: dictionary_part(
        block=seal(Codec.GOMPRESSO_BIT_DICTIONARY, bytes(64), DAMAGED).data, kind=PartKind.DATA
    ),
    "head-outside-file": lambda: archive(head_sizes(of_damaged=1 << 20)),
    "head-too-small": lambda: archive(head_sizes(of_damaged=31)),
    "heads-at-odd-offset": lambda: archive("UPDATE segment SET heads_offset = heads_offset + 8"),
    "words-at-odd-offset": words_at_odd_offset,
    "sections-share-block": lambda: archive(
        "INSERT INTO section SELECT segment, 'more', uncompressed_size, archive_offset, compressed_sizes FROM section"
    ),
    "extent-after-part": lambda: archive("UPDATE extent SET stream_offset = stream_offset + 1 WHERE ino = 3"),
    "extents-in-piece": lambda: archive(
        "UPDATE extent SET size = 60 WHERE ino = 3",
        f"INSERT INTO extent VALUES (3, 60, {BLOCK_SIZE + 60}, {len(DAMAGED) - 60})",
    ),
    "text-listed-as-binary": lambda: archive("INSERT INTO binary_file VALUES (3)"),
    "data-not-listed-as-binary": data_part,
    "head-checksum": lambda: head_changed(lambda head: flipped(head, 40)),
    "head-content": lambda: head_changed(with_content_checksum),
    "head-codec": lambda: head_changed(lambda head: resealed(head, 4, b"\3")),
    "head-reserved": lambda: head_changed(lambda head: resealed(head, 6, b"\1")),
    "head-flag": lambda: head_with(lambda plan: None, ("B", 39, 2)),
    "head-symbol-count": lambda: head_with(lambda plan: None, ("I", 0, (1 << 32) - 5)),
    "head-token-bytes": lambda: head_with(lambda plan: None, ("I", 20, 2)),
    "head-code-over-full": lambda: head_with(codes={0: [1, 1, 1]}),
    "head-code-incomplete": lambda: head_with(codes={0: [1, 2, 3]}),
    "head-lane-after-end": lambda: head_with(lambda plan: None, ("I", 28, 50)),
    "head-lane-not-read": lambda: head_with(put(10, 0, 0, 0, 0)),
    "head-bytes-after-end": lambda: head_with(more=b"\0"),
    "head-empty-word": lambda: head_with(token_bytes(b" abe not or that e o was , ")),
    "head-prefix": lambda: head_with(put(0, 0, 2, 0, 0, 0, 2, 1, 0)),
    "head-global-word": lambda: head_with(put(2, 0, 1)),
    "head-global-separator": lambda: head_with(put(5, 1)),
    "head-classes": lambda: head_with(put(9, 2, 2, 1, 1)),
    "head-rule-of-itself": lambda: head_with(put(12, 2, 13, 15, 14, 16)),
    "head-rule-of-later-rule": lambda: head_with(put(12, 1, 13, 15, 14, 16)),
    "head-rule-of-splitter": lambda: head_with(put(12, 6, 13, 15, 14, 16)),
    "head-rule-rank": lambda: head_with(put(12, NO_SYMBOL, 13, 15, 14, 16)),
    # a reader whose sums wrap at 2^32 finds the rule `or be`, and a pool of the same size
    "head-first-rank-wraps": lambda: head_with(
        put(11, 15, (1 << 32) - 3, 2, 0), pool=part().pool.replace(b"to be", b"or be")
    ),
    "head-no-word": lambda: builder(damaged=tokens_with([BE, COMMA, TO], [Token(b"be,", True), TO])).build(),
    "head-no-separator": lambda: builder(
        damaged=tokens_with([WHETHER, A, QUESTION], [WHETHER, Token(b" a ", False), QUESTION])
    ).build(),
    "head-word-of-section": lambda: builder(
        damaged=tokens_with([], [], GlobalTokens([b"other", b"whether"], [b"\n"]))
    ).build(),
    "head-pool-larger": lambda: head_with(pool=part().pool + b" "),
    "head-pool-smaller": lambda: head_with(pool=part().pool[:-1]),
    "block-checksum": lambda: block_changed(lambda block: flipped(block, 40)),
    "block-content": lambda: block_changed(with_content_checksum),
    "block-codec": lambda: block_changed(lambda block: resealed(block, 4, b"\2")),
    "block-without-symbols": lambda: block_with(ROOT, ("I", 0, 0)),
    "block-reserved": lambda: block_with(ROOT, ("B", 11, 1)),
    "block-rank": lambda: block_with([*ROOT[:-2], NO_SYMBOL, *ROOT[-1:]]),
    "block-content-shorter": lambda: block_with([*ROOT[:-2], ROOT[-1]]),
    "block-content-longer": lambda: block_with([*ROOT, RANKS.index(A)]),
    "block-splitter-first": lambda: block_with([RANKS.index(SPLITTER), *ROOT]),
    "block-skip": lambda: block_with([RANKS.index(A), *ROOT], skip=2),
    "block-lane-after-end": lambda: block_with(ROOT, ("I", 4, 50)),
    "block-lane-not-read": lambda: block_with(ROOT, ("I", 0, len(ROOT) - 1)),
    "block-bytes-after-end": lambda: block_with(more=b"\0"),
    "block-padding": lambda: block_with(padding=b"\xff" * 8),
    "block-splitter-in-file": lambda: block_with([*ROOT[:8], RANKS.index(SPLITTER), *ROOT[8:]]),
    "block-splitter-missing": lambda: block_with(ROOT[:-1]),
    "words-checksum": lambda: words_changed(lambda block: flipped(block, 40)),
    "words-codec": lambda: words_changed(lambda block: resealed(block, 4, b"\3")),
    "words-missing": lambda: archive("DELETE FROM section"),
    "words-count": lambda: words_with(patched(SECTION, 0, b"\xff\xff\xff\xff")),
    "words-prefix": lambda: words_with(patched(SECTION, 9, b"\x09")),
    "words-lengths": lambda: words_with(patched(SECTION, len(SECTION) - 3, b"\2")),
    "words-not-used": lambda: words_with(
        patched(SECTION, len(SECTION) - 3, b"\2"), stored(build_part([Piece(DAMAGED)]))
    ),
    "words-too-large": too_large_words,
}

if __name__ == "__main__":
    make_missing(MAKERS, Path(sys.argv[1]))
