"""Parts that the C++ core makes of text decode to that text, with the readable decoder and with that of the core.

Their symbols are compared with the text as well: the root of each part has the tokens that docs/format.md asks
for, and each token of a segment is stored once.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from both_decoders import decode_tadoc, open_block, read_block, read_head, read_words
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle.block import check_block
from oracle.payload import decode_payload
from oracle.tadoc import GlobalWords, Part, join_root
from payloads import CORPUS
from tadoc_grammar import SPLITTER, Piece, Token, tokens_of
from xxhash import xxh3_64_intdigest

from gompfs._native.text import PartsBuilder
from gompfs.codec import BLOCK_HEADER_SIZE, BlockHeader, BlockStatus, Codec
from gompfs.text.word_characters import WORD_RULE_KINDS, word_characters

ALICE = (CORPUS / "carroll" / "alice29.txt").read_bytes()
WORD_RULES = ("identifiers", "whitespace", "letters")
NO_WORDS = bytes(8)


@dataclass
class Built:
    """What PartsBuilder made of some files."""

    files: Sequence[bytes]
    word_rule: str
    block_size: int
    sizes: list[int]
    section: bytes
    parts: list[tuple[bytes, list[bytes]]]
    pieces: list[list[Piece]] = field(default_factory=list)
    """The pieces of files of each part."""

    @property
    def num_grammars(self) -> int:
        return sum(bool(head) for head, _ in self.parts)


def build(
    files: Sequence[bytes], directory: Path, word_rule: str, block_size: int, part_size: int, step: int = 0
) -> Built:
    """Builds parts; from pieces of `step` bytes if it is not 0."""
    rule = WORD_RULE_KINDS[word_rule], word_characters(word_rule)
    builder = PartsBuilder(*rule, block_size, part_size, 2, str(directory))
    if step == 0:
        builder.add_files(files)
    for content in files if step else ():
        for start in range(0, len(content), step):
            builder.add_bytes(content[start : start + step])
        builder.end_file()
    builder.add_inodes([(number, number) for number in range(len(files))])
    builder.finish()
    parts = []
    while some := builder.next_parts():
        parts += [(head, [block for block, _, _ in blocks]) for head, blocks in some]
    built = Built(files, word_rule, block_size, builder.part_sizes(), builder.word_section(), parts)
    built.pieces = [[] for _ in parts]
    contents = [bytearray() for _ in files]
    distance = 1 << 32
    starts = [part * distance for part in range(len(parts))]
    for file, file_offset, address, size in builder.extent_rows(0, len(files), starts):
        part, offset = divmod(address, distance)
        assert file_offset == len(contents[file])
        assert offset == sum(len(piece.content) for piece in built.pieces[part])
        piece = files[file][len(contents[file]) :][:size]
        contents[file] += piece
        built.pieces[part].append(Piece(piece, len(contents[file]) == len(files[file])))
    assert contents == list(files)
    return built


def check(built: Built) -> None:
    """Decodes all parts and compares them with the files."""
    words = read_words(built.section or NO_WORDS)
    local: Counter[Token] = Counter()
    for (head, blocks), size, pieces in zip(built.parts, built.sizes, built.pieces, strict=True):
        text = b"".join(piece.content for piece in pieces)
        assert len(text) == size
        expected = [text[start : start + built.block_size] for start in range(0, size, built.block_size)]
        if head:
            part = check_head(head, words, built.section or NO_WORDS)
            assert check_blocks(blocks, expected, part) == symbols_of(part, words, pieces, built.word_rule)
            local.update(local_tokens(part))
        else:
            for (header, payload), content in zip(map(open_sound, blocks), expected, strict=True):
                assert header.codec <= Codec.GOMPRESSO_BIT
                assert decode_payload(header.codec, payload, header.uncompressed_size) == content
    assert max(local.values(), default=1) == 1, "two heads have the same word"
    shared = {Token(words.word(number), True) for number in range(words.num_words)}
    shared |= {Token(separator, False) for separator in words.separators}
    assert len(shared) == words.num_words + len(words.separators)
    assert not shared & local.keys()


def open_sound(block: bytes) -> tuple[BlockHeader, bytes]:
    header, status = check_block(block)
    assert header is not None
    assert status is BlockStatus.OK
    return header, block[BLOCK_HEADER_SIZE:]


def check_head(head: bytes, words: GlobalWords, section: bytes) -> Part:
    header, payload = open_sound(head)
    assert header.codec is Codec.HEAD
    part = read_head(payload, header.uncompressed_size, words)
    assert xxh3_64_intdigest(part.pool) == header.content_xxh3
    assert open_block(head, section)[1] is BlockStatus.OK
    return part


def check_blocks(blocks: Sequence[bytes], expected: Sequence[bytes], part: Part) -> list[int]:
    """Compares the blocks of a part with their contents. Returns the root."""
    symbols = []
    for block, content in zip(blocks, expected, strict=True):
        header, payload = open_sound(block)
        assert (header.codec, header.uncompressed_size) == (Codec.GOMPRESSO_TADOC, len(content))
        assert header.content_xxh3 == xxh3_64_intdigest(content)
        assert decode_tadoc(payload, len(content), part) == content
        symbols.append(read_block(payload, len(content), part))
    assert symbols[0].skip == 0
    return list(tokens_below(join_root(symbols), part))


def tokens_below(symbols: Sequence[int], part: Part) -> Iterator[int]:
    """Yields the numbers of the words, separators and splitters that some symbols stand for."""
    first_rule = len(part.symbols_by_rank) - len(part.rules)
    for symbol in symbols:
        if symbol < first_rule:
            yield symbol
        else:
            yield from tokens_below(part.rules[symbol - first_rule], part)


def tokens_by_number(part: Part, words: GlobalWords) -> list[Token]:
    tokens = [SPLITTER] if part.has_splitter else []
    first_separator = len(tokens) + part.num_local_words + len(part.global_words)
    last = len(part.symbols_by_rank) - len(part.rules)
    for number in range(len(tokens), last):
        is_word = number < first_separator
        content = part.expansions.contents[number]
        tokens.append(Token(content[:-1] if is_word else content, is_word))
    first_global = part.has_splitter + part.num_local_words
    assert tokens[first_global:first_separator] == [Token(words.word(each), True) for each in part.global_words]
    return tokens


def symbols_of(part: Part, words: GlobalWords, pieces: Sequence[Piece], word_rule: str) -> list[int]:
    """Returns the tokens that the document asks for in a part, as symbol numbers."""
    number_of = {token: number for number, token in enumerate(tokens_by_number(part, words))}
    return [number_of[token] for token in tokens_of(pieces, word_rule) if isinstance(token, Token)]


def local_tokens(part: Part) -> list[Token]:
    first_word = int(part.has_splitter)
    first_separator = first_word + part.num_local_words + len(part.global_words)
    contents = part.expansions.contents
    words = contents[first_word : first_word + part.num_local_words]
    separators = contents[first_separator : first_separator + part.num_local_separators]
    return [Token(word[:-1], True) for word in words] + [Token(separator, False) for separator in separators]


PIECES = (
    b"a", b"ab", b"abc", b"the ", b" ", b"  ", b"\n", b"\r\n", b"\t", b"; ", b"x_", b"\xc3\xa9", b"\xff\xfe", b"\0",
    b"don't ", b"'", b"_", b"to be or not to be, ", b"    return value;\n" * 3, b"w" * 70,
)  # fmt: skip
TEXT = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=60).map(str.encode),
    st.lists(st.sampled_from(PIECES), max_size=60).map(b"".join),
)
FILES = st.lists(st.tuples(TEXT, st.sampled_from((0, 1, 1, 3, 20))).map(lambda item: item[0] * item[1]), max_size=8)
SIZES = st.one_of(st.sampled_from((1, 2, 31, 32, 33, 1 << 20)), st.integers(1, 300))


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FILES, st.sampled_from(WORD_RULES), SIZES, SIZES, st.sampled_from((0, 0, 1, 7)))
def test_random_text(
    tmp_path: Path, files: list[bytes], word_rule: str, block_size: int, part_size: int, step: int
) -> None:
    check(build(files, tmp_path, word_rule, block_size, part_size, step))


def lines(count: int, seed: int = 1) -> bytes:
    rng = random.Random(seed)
    words = [b"if", b"value", b"return", b"(x, y)", b"0x1f", b"name_of", b"\xce\xb1\xce\xb2", b"don't"]
    return b"".join(b" ".join(rng.choices(words, k=rng.randint(1, 9))) + b";\n" for _ in range(count))


LETTERS = bytes(random.Random(6).choices(b"abcdefghijklmnopqrstuvwxyz", k=65_535))
TREES = {
    "no newline at the end": [lines(200).rstrip(), lines(100, 2).rstrip(), b"last"],
    "single spaces at the ends": [b" " + lines(100).strip() + b" ", b" ", b"a ", b" b", lines(99, 3) + b" "],
    "lines that end with CR LF": [lines(300).replace(b"\n", b"\r\n")],
    "tabs": [lines(300).replace(b" ", b"\t\t")],
    "NULs": [lines(400) + bytes(5) + lines(400, 2), bytes(9000)],
    "invalid UTF-8": [lines(300).replace(b"value", b"\xff\xc0v\xe2\x82").replace(b"(", b"\x80")],
    "empty files": [b"", lines(80), b"", b"", lines(80, 2), b""],
    "one file": [ALICE[:60_000]],
    "one byte": [b"x"],
    "one word of a file": [b"word"] * 300,
    "long tokens": [b"w" * 200_000, lines(50) + b"v" * 70_000 + b" " + b"." * 70_000 + lines(50)],
    "the longest tokens": [(LETTERS[1:] + b"," * 65_535) * 3],
    "tokens that are too long": [LETTERS + b",", b"," * 65_536, b"x"],
    "repetitive": [b"to be or not to be, " * 9000],
    "one line, again and again": [b"x\n" * 90_000],
    "one byte, again and again": [b"a" * 3000, b" " * 3000, b"\n" * 3000],
    "random bytes": [random.Random(5).randbytes(40_000)],
    "many files": [b"%d: %s\n" % (number % 90, lines(1, number % 70)) for number in range(2000)],
    "files with the same text": [ALICE[:20_000]] * 9,
}
LAYOUTS = ((1 << 14, 1 << 20), (1 << 20, 1 << 20), (1 << 14, 5000), (1 << 15, 40_000))


@pytest.mark.parametrize("name", TREES)
def test_trees(name: str, tmp_path: Path) -> None:
    for number, (block_size, part_size) in enumerate(LAYOUTS):
        word_rule = WORD_RULES[(number + len(name)) % 3]
        check(build(TREES[name], tmp_path, word_rule, block_size, part_size))


@pytest.mark.parametrize("word_rule", WORD_RULES)
def test_files_over_several_parts(word_rule: str, tmp_path: Path) -> None:
    built = build([ALICE[:50_000], b"", ALICE[50_000:]], tmp_path, word_rule, 1 << 14, 1 << 15, 1000)
    assert built.num_grammars == len(built.parts) >= 4
    assert len(built.section) > 5000
    check(built)


def test_parts_of_a_byte(tmp_path: Path) -> None:
    files = [b"a b, c\n", b"", b" d", b"a b, c\n" * 30]
    for word_rule in WORD_RULES:
        built = build(files, tmp_path, word_rule, 1 << 14, 1)
        assert len(built.parts) > 60
        check(built)


def test_some_trees_are_grammars(tmp_path: Path) -> None:
    """The cases above reach what they are for: grammars of several levels, global words, and text that is none."""
    built = build(TREES["long tokens"], tmp_path, "identifiers", 1 << 14, 40_000)
    assert 0 < built.num_grammars < len(built.parts)
    for name in ("NULs", "invalid UTF-8", "many files", "repetitive", "the longest tokens"):
        assert build(TREES[name], tmp_path, "identifiers", 1 << 14, 1 << 20).num_grammars > 0, name
    built = build(TREES["files with the same text"], tmp_path, "identifiers", 1 << 14, 40_000)
    header, payload = open_sound(built.parts[0][0])
    part = read_head(payload, header.uncompressed_size, read_words(built.section))
    assert len(part.level_sizes) > 1
    assert len(part.global_words) > 500


def test_tables_of_numbers_are_no_grammars(tmp_path: Path) -> None:
    """Each number is a word of its own, but gompresso-bit finds what it shares with the number before."""
    numbers = b"".join(b"0x%04x, " % number for number in range(30_000))
    built = build([numbers, ALICE[:100_000]], tmp_path, "identifiers", 1 << 17, len(numbers))
    assert [bool(head) for head, _ in built.parts] == [False, True]
    assert sum(map(len, built.parts[0][1])) < len(numbers) / 8
    check(built)
