"""The words that statistics take from heads of parts are those of the text, or the part is refused.

Decoders of blocks do not compare the tokens of a head with the word rule, and most parts here decode without an error.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from forged_index import forge_index
from stored_parts import Extent, Part, arguments, framed
from tadoc_builder import GlobalTokens, PartSymbols, build_block, build_part
from tadoc_grammar import SPLITTER, Grammar, Piece, Rule, Symbol, Token
from tree_helpers import pack

from gompfs._native.statistics import check_words_of_parts, parts_word_count_report
from gompfs._native.text import read_segment_grammar
from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import Codec
from gompfs.errors import ArchiveFormatError
from gompfs.statistics.tasks import compute

BLOCK_SIZE = 16
NO_WORD = "no word by the rule"
IN_TWO_PARTS = "a word of its text is in two parts"
DAMAGED = "a part of its text is damaged"
NO_PIECE = "an extent of a file is not a piece of a part"


def part_of(*root: Symbol, words: GlobalTokens | None = None) -> Part:
    """Returns a part with these symbols, which is one file if the last one is a splitter."""
    text = b"".join(symbol.content for symbol in root if isinstance(symbol, Token))
    return framed(build_part([Piece(text)], words, block_size=BLOCK_SIZE, grammar=Grammar(list(root), [])))


def word(content: bytes) -> Token:
    return Token(content, True)


def separator(content: bytes) -> Token:
    return Token(content, False)


def counts(given: tuple[Any, ...]) -> bytes:
    return b"".join(parts_word_count_report(*given, None, False, 0, 2).pieces(0, 9, 2))


def refused(given: tuple[Any, ...], reason: str) -> None:
    """All statistics refuse the parts, and so does `verify`."""
    with pytest.raises(ValueError, match=reason):
        counts(given)
    with pytest.raises(ValueError, match=reason):
        read_segment_grammar(*given, 2)
    with pytest.raises(ValueError, match=reason):
        check_words_of_parts(*given, 2)


def accepted(given: tuple[Any, ...], expected: bytes) -> None:
    assert counts(given) == expected
    grammar = read_segment_grammar(*given, 2)
    found = [grammar.word(number) for number in range(grammar.num_words)]
    assert found == [line.split(b"\t")[0] for line in expected.splitlines()]
    check_words_of_parts(*given, 2)


def test_words_that_are_words() -> None:
    words = GlobalTokens([b"b_2"], [b", "])
    part = part_of(word(b"a"), separator(b", "), word(b"b_2"), separator(b"\n"), SPLITTER, words=words)
    accepted(arguments([part], words=words), b"a\t1\nb_2\t1\n")
    assert not counts(arguments([part], [], words))


@pytest.mark.parametrize(
    ("rule", "root"),
    [
        ("identifiers", [word(b"a,b"), SPLITTER]),
        ("identifiers", [word(b"a\n"), SPLITTER]),
        ("identifiers", [word(b"x" * 200), separator(b"."), word(b"y" * 200 + b"-"), SPLITTER]),
        ("identifiers", [separator(b" x "), SPLITTER]),
        ("identifiers", [separator(b"." * 100 + b"\xff"), SPLITTER]),
        ("whitespace", [word(b"a\tb"), SPLITTER]),
        ("whitespace", [word(b"a"), separator(b"\n,"), word(b"b"), SPLITTER]),
        ("letters", [word(b"a_b"), SPLITTER]),
        ("letters", [word(b"\xe2\x80\x93"), SPLITTER]),
        ("letters", [word(b"a"), separator(b"\xc3\xa9"), word(b"b"), SPLITTER]),
    ],
)
def test_words_and_separators_that_are_none(rule: str, root: list[Symbol]) -> None:
    refused(arguments([part_of(*root)], rule=rule), NO_WORD)


@pytest.mark.parametrize("words", [GlobalTokens([b"a", b"b-"]), GlobalTokens([b"a"], [b"\n", b"z"])])
def test_a_section_with_words_that_are_none(words: GlobalTokens) -> None:
    """Even if no part uses them."""
    part = part_of(word(b"a"), SPLITTER, words=words)
    refused(arguments([part], words=words), NO_WORD)


def test_a_character_in_two_separators() -> None:
    """The bytes of two separators may together be a letter."""
    root: list[Symbol] = [word(b"a"), separator(b"-\xc3"), separator(b"\xa9-"), word(b"b"), SPLITTER]
    refused(arguments([part_of(*root)], rule="letters"), DAMAGED)
    text = b"a-\xc3\xa9-b a-\xc3\xa9-b"
    body: list[Symbol] = [word(b"a"), Rule(0), word(b"b")]
    built = build_part([Piece(text)], block_size=BLOCK_SIZE, grammar=Grammar([*body, *body, SPLITTER], [root[1:3]]))
    refused(arguments([framed(built)], rule="letters"), DAMAGED)


ROOT: list[Symbol] = [word(b"first"), separator(b".\n"), word(b"a_longer_word"), word(b"second_one"), SPLITTER]
"""Two blocks; the third symbol is in both."""


def two_blocks(skip: int | None = None, *, other_symbol: bool = False, extra: bool = False) -> Part:
    """Returns a part whose second block is changed, with right checksums."""
    text = b"first.\na_longer_word second_one"
    grammar = Grammar(ROOT, [])
    built = build_part([Piece(text)], block_size=BLOCK_SIZE, grammar=grammar)
    ranks = PartSymbols(grammar, GlobalTokens()).rank
    (old_skip,) = struct.unpack_from("<H", built.blocks[1], 8)
    assert old_skip == BLOCK_SIZE - 7
    symbols = [ranks[ROOT[3] if other_symbol else ROOT[2]], ranks[ROOT[3]], *([ranks[ROOT[0]]] if extra else []), 0]
    symbols[-1] = ranks[SPLITTER]
    built.blocks[1] = build_block(symbols, old_skip if skip is None else skip, built.plan.rank_code)
    return framed(built)


def test_blocks_that_do_not_fit_together() -> None:
    accepted(arguments([two_blocks()]), b"a_longer_word\t1\nfirst\t1\nsecond_one\t1\n")
    for skip in (0, 1, BLOCK_SIZE - 8, BLOCK_SIZE - 6, 13, 14, 65535):
        refused(arguments([two_blocks(skip)]), DAMAGED)
    refused(arguments([two_blocks(other_symbol=True)]), DAMAGED)
    refused(arguments([two_blocks(extra=True)]), f"{DAMAGED}|{NO_PIECE}")
    whole = two_blocks()
    for size in (whole.size - 1, whole.size + 1):
        refused(arguments([whole._replace(size=size)], []), DAMAGED)


def test_a_file_that_goes_on_inside_a_word() -> None:
    after = part_of(word(b"bar"), separator(b"\n"), SPLITTER)

    def file_in(first: Part) -> list[Extent]:
        return [Extent(1, 0, 0, 0, first.size), Extent(1, first.size, 1, 0, after.size)]

    good = framed(build_part([Piece(b"foo\n", ends_file=False)], block_size=BLOCK_SIZE))
    accepted(arguments([good, after], file_in(good)), b"bar\t1\nfoo\t1\n")
    cut = part_of(word(b"foo"), SPLITTER)
    refused(arguments([cut, after], file_in(cut)), IN_TWO_PARTS)
    accepted(arguments([cut, after]), b"bar\t1\nfoo\t1\n")
    for text, is_cut in ((b"foo", True), (b"foo ", False)):
        first = Part(len(text), text=text)
        given = arguments([first, after], file_in(first))
        if is_cut:
            refused(given, IN_TWO_PARTS)
        else:
            accepted(given, b"bar\t1\nfoo\t1\n")


def test_a_word_that_is_stored_twice() -> None:
    given = arguments([part_of(word(b"a"), SPLITTER), part_of(word(b"b"), separator(b","), word(b"a"), SPLITTER)])
    grammar = read_segment_grammar(*given, 2)
    assert [grammar.word(number) for number in range(grammar.num_words)] == [b"a", b"b"]
    with pytest.raises(ValueError, match="a word of its text is stored twice"):
        check_words_of_parts(*given, 2)


@pytest.mark.parametrize(("packed", "forged"), [("whitespace", "identifiers"), ("identifiers", "whitespace")])
def test_an_archive_with_another_rule_in_its_index(
    packed: str, forged: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/code").write_bytes(b"if (x, y) { return f[0]; }\n" * 200)
    (tmp_path / "tree/empty").touch()
    path = tmp_path / "a.gomp"
    pack(path, tmp_path / "tree", codec=Codec.GOMPRESSO_TADOC, words=packed, part_size=3000)
    assert run(["verify", str(path)]) == 0
    forge_index(path, f"UPDATE meta SET value = '{forged}' WHERE key = 'words'")
    capfd.readouterr()
    assert run(["verify", str(path)]) == 1
    assert NO_WORD in capfd.readouterr().out
    for name in (b"wordcount", b"sort", b"inverted_index", b"sequence_count", b"word/x"):
        with Archive(path) as archive, pytest.raises(ArchiveFormatError, match=NO_WORD):
            compute(name, archive).read()
    assert run(["cat", str(path), "code"]) == 0


NOT_TEXT = {
    "INSERT INTO binary_file SELECT ino FROM dirent WHERE name = CAST('code' AS BLOB)": "and listed as a binary file",
    "UPDATE inode SET size = size + 9 WHERE ino IN (SELECT ino FROM dirent WHERE name = CAST('code' AS BLOB))":
    "and has holes",
    "DELETE FROM binary_file": "it is neither in parts of text nor listed as a binary file",
    "UPDATE meta SET value = '9' WHERE key = 'words'": "words is not one of",
    "DELETE FROM meta WHERE key = 'words'": "words is not one of",
}  # fmt: skip


@pytest.mark.parametrize("statement", NOT_TEXT)
def test_an_index_that_says_otherwise_which_files_are_text(
    statement: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What statistics count is then not defined, so `verify` says so."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/code").write_bytes(b"if (x, y) { return f[0]; }\n" * 200)
    (tmp_path / "tree/more").write_bytes(b"else z++;\n" * 200)
    (tmp_path / "tree/binary").write_bytes(b"\0" + b"a b c " * 200)
    path = tmp_path / "a.gomp"
    pack(path, tmp_path / "tree", codec=Codec.GOMPRESSO_TADOC, words="identifiers", part_size=3000)
    assert run(["verify", str(path)]) == 0
    forge_index(path, statement)
    capfd.readouterr()
    assert run(["verify", str(path)]) == 1
    assert NOT_TEXT[statement] in capfd.readouterr().out
    if "meta" in statement:
        with Archive(path) as archive, pytest.raises(ArchiveFormatError, match="unknown word rule"):
            compute(b"wordcount", archive)
