"""verify compares the words of files with those of the grammar."""

from __future__ import annotations

import os
import random
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from forged_index import forge_index
from xxhash import xxh3_64_intdigest

from gompfs._native import grammar as _grammar
from gompfs.archive import Archive
from gompfs.codec import Codec, build_block
from gompfs.engine import select_engine
from gompfs.errors import ArchiveFormatError
from gompfs.format import FOOTER_SIZE, Footer
from gompfs.grammar import Grammar, GrammarBuilder
from gompfs.grammar.grammar import WORD_RULE_KINDS
from gompfs.grammar.word_characters import word_character_bitmap, word_characters
from gompfs.model import WORD_RULES
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source, pack_archive
from gompfs.statistics.tasks import compute
from gompfs.verify import verify_archive


@pytest.mark.parametrize("words", WORD_RULES)
@pytest.mark.parametrize("seed", range(10))
def test_texts_in_pieces_have_their_words(seed: int, words: str) -> None:
    """Files are cut at any position and continue in the next piece.

    A changed word is found, and nothing else is reported.
    """
    rng = random.Random(seed)
    alphabet = [*b"ab \t\n\v\f\r\0\x1f\x85\xa0\xff'7._", *"\u00e9\u0394\u4e2d\u3002".encode()]
    texts = {ino: bytes(rng.choices(alphabet, k=rng.randrange(3000))) for ino in range(2, 30)}
    builder = GrammarBuilder("repair", words)
    builder.add_files(list(texts.items()))
    grammar = Grammar.from_bytes(b"".join(builder.finish()))
    assert not grammar.has_short_rules()
    check = _grammar.TextCheck(grammar.native, WORD_RULE_KINDS[words], word_characters(words))
    for place, (ino, text) in enumerate(texts.items()):
        check.begin([(0, place)])
        for piece in cut(text, rng):
            check.add(piece)
        assert check.end() is None, ino
        other = text + b" more"
        check.begin([(0, place)])
        for piece in cut(other, rng):
            check.add(piece)
        number, in_text, in_grammar = check.end() or (0, b"", b"")
        assert (in_text, in_grammar) == (b"more", None)
        assert number == int(grammar.files()[0][2][place])


def cut(text: bytes, rng: random.Random) -> list[bytes]:
    places = sorted(rng.choices(range(len(text) + 1), k=rng.choice([0, 1, 5, 300])))
    return [text[begin:end] for begin, end in zip([0, *places], [*places, len(text)], strict=True)]


def with_section(path: Path, change: Callable[[Grammar, bytes], bytes]) -> None:
    """Replaces the grammar of an archive, with valid checksums."""
    with Archive(path) as archive:
        content = bytes(archive.read_section(archive.sections[0]))
        section = change(Grammar.from_bytes(content), content)
        block_size = archive.block_size
        start, size = archive.footer.index_offset, archive.footer.index_size
    whole = path.read_bytes()
    database = path.with_suffix(".sqlite")
    database.write_bytes(whole[start : start + size])
    body, places = whole[:start], []
    for first in range(0, len(section), block_size):
        piece = section[first : first + block_size]
        body += bytes(-len(body) % 16)
        block = build_block(Codec.STORED, piece, piece).data
        places.append((len(body), len(block)))
        body += block
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute(
        "UPDATE section SET uncompressed_size = ?, archive_offsets = ?, compressed_sizes = ?",
        (len(section), b"".join(struct.pack("<Q", offset) for offset, _ in places),
         b"".join(struct.pack("<I", size) for _, size in places)),
    )  # fmt: skip
    connection.close()
    image = database.read_bytes()
    body += bytes(-len(body) % 4096)
    footer = Footer(1, len(body), len(image), xxh3_64_intdigest(image), 0)
    path.write_bytes(body + image + bytes(-len(image) % FOOTER_SIZE) + footer.to_bytes())


TEXTS = {"a": b"one two three two one", "b": b"three three one two", "c": b"two one " * 40, "d": b"", "e": b"one"}

VERSION_1 = PackOptions(version=1, words="whitespace")


@pytest.fixture
def texts_archive(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name, text in TEXTS.items():
        (tree / name).write_bytes(text)
    pack_archive([open_source(tree)], tmp_path / "a.gomp", VERSION_1, engine=select_engine("cpu"))
    return tmp_path / "a.gomp"


def problems_of(path: Path) -> list[str]:
    with Archive(path) as archive:
        report = verify_archive(archive)
        assert not report.damages
        return [f"{report.paths[p.ino].decode() if p.ino else ''}: {p.reason}" for p in report.problems]


def swap_in_dictionary(_grammar: Grammar, content: bytes) -> bytes:
    """Replaces a word by another one of the same length and position in byte order."""
    assert content.count(b"one") == 1
    return content.replace(b"one", b"oNe")


def exchange_words(_grammar: Grammar, content: bytes) -> bytes:
    """Exchanges two words of a part, so that the total number of words stays the same."""
    words = [b"one", b"three", b"two"]
    assert all(word[1:] in content for word in words)
    head = content.index(b"two") + 3 if b"two" in content else content.index(b"wo") + 2
    return content[:head] + rewrite_words(content[head:])


def rewrite_words(part: bytes) -> bytes:
    """Exchanges the first two words of a part in its delta-coded list of words."""
    at = 2 + (part[1] > 127)
    files = part[at]
    at += 1 + files
    num_words = part[at]
    assert num_words == 3
    places, last = [], 0
    for coded in part[at + 1 : at + 4]:
        last += coded >> 1 if coded % 2 == 0 else -(coded >> 1) - 1
        places.append(last)
    places[0], places[1] = places[1], places[0]
    coded, last = [], 0
    for place in places:
        difference = place - last
        coded.append(2 * difference if difference >= 0 else -2 * difference - 1)
        last = place
    return part[: at + 1] + bytes(coded) + part[at + 4 :]


def exchange_files(_grammar: Grammar, content: bytes) -> bytes:
    """Moves a splitter of the root, so that file lengths change but not the words of the part."""
    symbols = content.rindex(bytes([0]))
    for at in range(symbols - 1, 0, -1):
        if content[at] == 0 and content[at - 1] % 2 == 1 and content[at - 1] < 128 and content[at - 2] < 128:
            return content[: at - 1] + bytes([0, content[at - 1]]) + content[at + 1 :]
    raise AssertionError("there is no splitter after a word")


@pytest.mark.parametrize("change", [swap_in_dictionary, exchange_words, exchange_files])
def test_other_words_are_found(texts_archive: Path, change: Callable[[Grammar, bytes], bytes]) -> None:
    """verify only compared the number of words per file, and so accepted other words, or the same in another order."""
    assert problems_of(texts_archive) == []
    with_section(texts_archive, change)
    problems = problems_of(texts_archive)
    assert problems
    assert all(" in the grammar" in problem for problem in problems)
    assert {problem.partition(":")[0] for problem in problems} <= set(TEXTS)


def test_the_first_different_word_is_named(texts_archive: Path) -> None:
    with_section(texts_archive, swap_in_dictionary)
    assert problems_of(texts_archive) == [
        "a: its word 0 is one, and oNe in the grammar",
        "b: its word 2 is one, and oNe in the grammar",
        "c: its word 1 is one, and oNe in the grammar",
        "e: its word 0 is one, and oNe in the grammar",
    ]


def test_characters_of_newer_unicode_versions_are_words(tmp_path: Path) -> None:
    """verify accepted a file of other words if one of them had a character that is not in Unicode 3.2.

    It did so for both word rules.
    """
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_bytes(b"to be or not to be")
    (tree / "b").write_bytes("\u1c89 word \xd4 another".encode())
    pack_archive([open_source(tree)], tmp_path / "a.gomp", VERSION_1, engine=select_engine("cpu"))
    assert problems_of(tmp_path / "a.gomp") == []
    forge_index(tmp_path / "a.gomp", "UPDATE extent SET stream_offset = 18 WHERE stream_offset = 0")
    assert problems_of(tmp_path / "a.gomp") == ["a: its word 0 is \\u1c89, and to in the grammar"]


def test_version_1_has_no_identifiers(texts_archive: Path) -> None:
    """A section with the word rule 2 is damaged in an archive of version 1, and so is the name in the index."""
    forge_index(texts_archive, "UPDATE meta SET value = 'identifiers' WHERE key = 'words'")
    assert ": meta: words is not one of whitespace, letters" in problems_of(texts_archive)
    with pytest.raises(ArchiveFormatError, match="words is not one of whitespace, letters"):
        add_to_archive(texts_archive, [], PackOptions(), engine=select_engine("cpu"))
    with_section(texts_archive, lambda _, section: section[:6] + b"\2" + section[7:])
    damaged = "the grammar section is damaged: its header is invalid"
    assert f": segment 0: {damaged}" in problems_of(texts_archive)
    with Archive(texts_archive) as archive:
        for name in (b"wordcount", b"term_vector"):
            with pytest.raises(ArchiveFormatError, match=damaged):
                compute(name, archive)


def test_letters_of_another_unicode_version_are_not_reported(tmp_path: Path) -> None:
    """The archive may come from a Python with another Unicode version, whose set of letters differs."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_text("old \u1c89\u1c8a words \ua7cb!")
    options = PackOptions(Codec.GOMPRESSO_BIT, words="letters")
    bitmap = bytearray(word_character_bitmap())
    for code_point in (0x1C89, 0x1C8A, 0xA7CB):
        bitmap[code_point // 8] ^= 1 << code_point % 8
    with mock.patch("gompfs.grammar.builder.word_characters", return_value=bytes(bitmap)):
        pack_archive([open_source(tree)], tmp_path / "a.gomp", options, engine=select_engine("cpu"))
    assert problems_of(tmp_path / "a.gomp") == []


@pytest.mark.parametrize(
    ("words", "version", "builder"),
    [
        ("whitespace", 1, "repair"),
        ("letters", 1, "sequitur"),
        ("identifiers", 2, "repair"),
        ("identifiers", 2, "parts"),
        pytest.param("whitespace", 1, "sequitur", marks=pytest.mark.slow),
        pytest.param("letters", 1, "repair", marks=pytest.mark.slow),
        pytest.param("identifiers", 2, "sequitur", marks=pytest.mark.slow),
        pytest.param("whitespace", 2, "parts", marks=pytest.mark.slow),
        pytest.param("letters", 2, "parts", marks=pytest.mark.slow),
    ],
)
def test_packed_archives_are_sound(words: str, version: int, builder: str, tmp_path: Path) -> None:
    """Texts that span several parts of a grammar and several blocks; equal, empty, sparse and binary files."""
    rng = random.Random(words)
    tree = tmp_path / "tree"
    tree.mkdir()
    text = b" ".join(rng.choices((b"to", b"be", b"or", "n\u00f6t".encode(), b"\n"), k=3_000_000))
    for name, content in {"a": text, "b": text, "c": b"", "d": b"\n\n", "e": b"no end", "f": b"\0 a"}.items():
        (tree / name).write_bytes(content)
    with open(tree / "g", "wb") as file:
        file.write(b"a hole follows")
        file.truncate(1 << 20)
    codec = Codec.GOMPRESSO_TADOC if builder == "parts" else Codec.GOMPRESSO_BIT
    builder = "repair" if builder == "parts" else builder
    options = PackOptions(codec, words=words, version=version, grammar_builder=builder)
    pack_archive([open_source(tree)], tmp_path / "a.gomp", options, engine=select_engine("cpu"))
    with Archive(tmp_path / "a.gomp") as archive:
        report = verify_archive(archive)
        assert (report.problems, report.damages) == ([], [])
    (tree / "a").write_bytes(b"replaced words")
    (tree / "f").write_bytes(b"now a text")
    os.link(tree / "a", tree / "linked")
    for name in ("b", "c", "g"):
        (tree / name).unlink()
    add_to_archive(tmp_path / "a.gomp", [open_source(tree)], options, engine=select_engine("cpu"))
    with Archive(tmp_path / "a.gomp") as archive:
        assert verify_archive(archive).problems == []
