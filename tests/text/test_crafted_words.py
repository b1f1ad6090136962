"""Archives whose heads have words that are not those of the text: a search must not miss what `cat` shows.

Decoders take words and separators for bytes, and a search concludes from the words of a part what its text does not
have. So it looks at them itself. What it cannot see without decoding, `verify` reports.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

import pytest
from archive_builder import BLOCK_SIZE, ArchiveBuilder, StoredPart
from forged_index import forge_index
from oracle.block import build_block as seal
from tadoc_builder import BuiltPart, GlobalTokens, PartSymbols, build_block, build_part
from tadoc_grammar import SPLITTER, Grammar, Piece, Symbol, Token
from tree_helpers import add, pack

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import Codec
from gompfs.errors import ArchiveFormatError
from gompfs.model import PartKind
from gompfs.statistics.tasks import compute

SHARED = GlobalTokens([b"a", b"b"], [b"\n"])


def word(content: bytes) -> Token:
    return Token(content, True)


def separator(content: bytes) -> Token:
    return Token(content, False)


def built(*root: Symbol, words: GlobalTokens = SHARED) -> BuiltPart:
    """Returns a part of these symbols. Its text is what they concatenate to."""
    text = b""
    for before, symbol in zip([SPLITTER, *root], root, strict=False):
        assert isinstance(before, Token)
        assert isinstance(symbol, Token)
        text += (b" " if before.is_word and symbol.is_word else b"") + symbol.content
    return build_part([Piece(text)], words, block_size=BLOCK_SIZE, grammar=Grammar(list(root), []))


def stored(part: BuiltPart) -> StoredPart:
    blocks = [
        seal(Codec.GOMPRESSO_TADOC, block, content).data
        for block, content in zip(part.blocks, part.contents, strict=True)
    ]
    return StoredPart(sum(map(len, part.contents)), blocks, seal(Codec.HEAD, part.head, part.pool).data)


def write_archive(
    path: Path,
    parts: Sequence[BuiltPart],
    extents: Sequence[tuple[int, int, int]] = (),
    words: GlobalTokens = SHARED,
    rule: str = "identifiers",
) -> Path:
    """Writes an archive of one file with extents (number of a part, offset in it, size), by default all of the parts.

    Returns its path.
    """
    made = ArchiveBuilder(meta={"words": rule}, parts=[stored(part) for part in parts])
    first_blocks = [sum(len(part.blocks) for part in parts[:number]) for number in range(len(parts))]
    extents = extents or [(number, 0, part.size) for number, part in enumerate(made.parts)]
    ino = made.add_entry(b"file", stat.S_IFREG | 0o644, size=sum(size for _, _, size in extents))
    file_offset = 0
    for part, offset, size in extents:
        made._extents.append((ino, file_offset, first_blocks[part] * BLOCK_SIZE + offset, size))
        file_offset += size
    section = words.section()
    made.sections["words"] = [(seal(Codec.STORED, section, section).data, len(section))]
    path.write_bytes(made.build())
    return path


def output(capfdbinary: pytest.CaptureFixture[bytes], *arguments: str) -> tuple[int, bytes]:
    capfdbinary.readouterr()
    status = run(list(arguments))
    return int(status or 0), capfdbinary.readouterr().out


IN_SEPARATOR = [word(b"a"), separator(b" needle "), word(b"b"), separator(b"\n"), SPLITTER]
IN_WORD = [word(b"a"), word(b"x(needle"), separator(b"\n"), SPLITTER]
KELVIN = [word(b"a"), separator(b"\n"), separator(b"\xe2\x84"), separator(b"\xaa"), word(b"ernel"), separator(b"\n")]
CASES = {
    "letters in a separator": (["needle"], IN_SEPARATOR, SHARED, "identifiers"),
    "letters in a separator, without case": (["-i", "NEEDLE"], IN_SEPARATOR, SHARED, "identifiers"),
    "letters in a separator, in a regular expression": (["ne+dle *b"], IN_SEPARATOR, SHARED, "identifiers"),
    "letters in a separator, words are letters": (["needle"], IN_SEPARATOR, SHARED, "letters"),
    "letters in a separator, words are between spaces": (["needle"], IN_SEPARATOR, SHARED, "whitespace"),
    "a separator in a word": (["-F", "(needle"], IN_WORD, SHARED, "identifiers"),
    "a separator in a word, words are letters": (["-F", "(needle"], IN_WORD, SHARED, "letters"),
    "letters in a shared separator": (
        ["needle"], IN_SEPARATOR, GlobalTokens([b"a", b"b"], [b" needle "]), "identifiers",
    ),
    "a separator in a shared word": (["-F", "(needle"], IN_WORD, GlobalTokens([b"x(needle"]), "identifiers"),
    "letters in a separator that no part uses": (
        ["-F", "(needle"], IN_WORD, GlobalTokens([b"a"], [b" z "]), "identifiers",
    ),
    "a character in two separators": (["-i", "kernel"], [*KELVIN, SPLITTER], SHARED, "letters"),
    "a character in two shared separators": (
        ["-i", "kernel"], [*KELVIN, SPLITTER], GlobalTokens([], [b"\xaa", b"x", b"\xe2\x84"]), "letters",
    ),
    "a character in a separator and a word": (
        ["-i", "kernel"], [word(b"a"), separator(b"\n\xe2\x84"), word(b"\xaaernel"), SPLITTER], SHARED, "letters",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_search_finds_what_cat_shows(name: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    pattern, root, words, rule = CASES[name]
    path = write_archive(tmp_path / "a.gomp", [built(*root, words=words)], words=words, rule=rule)
    status, content = output(capfdbinary, "cat", str(path), "file")
    assert status == 0
    assert content in b"".join(built(*root).contents)
    found = output(capfdbinary, "grep", "-a", *pattern, str(path))
    assert found == output(capfdbinary, "grep", "--read-all", "-a", *pattern, str(path))
    assert found[0] == 0
    assert output(capfdbinary, "verify", str(path))[0] == 1


def test_extents_that_are_no_pieces(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """The bytes of two extents are a word that no part has."""
    part = built(word(b"nee"), word(b"dle"), separator(b"\n"), SPLITTER)
    other = built(word(b"a"), word(b"dle"), separator(b"\n"), SPLITTER)
    for number, extents in enumerate(([(0, 0, 3), (0, 4, 4)], [(0, 0, 3), (1, 2, 4)])):
        path = write_archive(tmp_path / f"{number}.gomp", [part, other], extents)
        assert output(capfdbinary, "cat", str(path), "file") == (0, b"needle\n")
        assert output(capfdbinary, "grep", "needle", str(path)) == (0, b"file:needle\n")
        assert output(capfdbinary, "verify", str(path))[0] == 1


def test_honest_parts_are_skipped(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Otherwise the tests above would show nothing."""
    root = [word(b"a"), separator(b"\n"), word(b"b"), separator(b"\n")]
    path = write_archive(tmp_path / "a.gomp", [built(*root), built(*root, SPLITTER)])
    assert output(capfdbinary, "verify", str(path))[0] == 0
    status, text = output(capfdbinary, "grep", "--stats", "needle", str(path))
    assert status == 1
    assert b"1 files skipped" in text or b"0 files searched" in text, text


def splitter_in_a_word() -> list[BuiltPart]:
    return [built(word(b"nee"), SPLITTER, word(b"dle"), separator(b"\n"), SPLITTER)]


def blocks_that_do_not_fit() -> list[BuiltPart]:
    """The second block begins inside a word that the first one does not end in."""
    root = [word(b"x" * (BLOCK_SIZE - 4)), word(b"nee"), word(b"b"), separator(b"\n"), word(b"xxdle"), SPLITTER]
    grammar = Grammar(list(root), [])
    text = root[0].content + b" nee b\nxxdle"
    part = build_part([Piece(text)], SHARED, block_size=BLOCK_SIZE, grammar=grammar)
    ranks = PartSymbols(grammar, SHARED).rank
    part.blocks[1] = build_block([ranks[root[4]], ranks[root[3]]], 2, part.plan.rank_code)
    part.contents[1] = b"dle\n"
    return [part]


def word_in_two_parts() -> list[BuiltPart]:
    return [built(word(b"nee"), SPLITTER), built(word(b"dle"), separator(b"\n"), SPLITTER)]


@pytest.mark.parametrize("make", [splitter_in_a_word, blocks_that_do_not_fit, word_in_two_parts])
def test_what_a_search_believes(make, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Faults that only decoding shows: `verify` reports them, and --read-all finds the text."""
    path = write_archive(tmp_path / "a.gomp", make())
    status, content = output(capfdbinary, "cat", str(path), "file")
    assert status == 0
    assert b"needle" in content
    assert output(capfdbinary, "grep", "-o", "--read-all", "needle", str(path)) == (0, b"file:needle\n")
    assert output(capfdbinary, "verify", str(path))[0] == 1


def test_a_damaged_section_of_words_is_reported(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Files that need it are not skipped as files without the words."""
    path = write_archive(tmp_path / "a.gomp", [built(word(b"a"), separator(b"\n"), SPLITTER)])
    content = bytearray(path.read_bytes())
    content[content.index(SHARED.section())] ^= 1
    path.write_bytes(content)
    assert run(["grep", "needle", str(path)]) == 2
    assert b"file" in capfdbinary.readouterr().err


def test_a_section_of_words_of_another_size(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Parts that use it are damaged, as for statistics and `verify`; others can be read."""
    parts = [built(word(b"a"), separator(b"\n"), SPLITTER)]
    path = write_archive(tmp_path / "a.gomp", parts)
    assert output(capfdbinary, "cat", str(path), "file") == (0, b"a\n")
    for change in ("+ 1", "- 1"):
        forge_index(path, f"UPDATE section SET uncompressed_size = uncompressed_size {change}")
        assert output(capfdbinary, "cat", str(path), "file") == (1, b"")
        assert output(capfdbinary, "verify", str(path))[0] == 1
        assert output(capfdbinary, "stats", str(path), "wordcount")[0] == 1
        forge_index(path, f"UPDATE section SET uncompressed_size = uncompressed_size - (0 {change})")
    own = [built(word(b"c"), separator(b"."), SPLITTER)]
    path = write_archive(tmp_path / "own.gomp", own)
    forge_index(path, "UPDATE section SET uncompressed_size = uncompressed_size + 1")
    assert output(capfdbinary, "cat", str(path), "file") == (0, b"c.")


def ino_of(name: str) -> str:
    return f"(SELECT ino FROM dirent WHERE name = CAST('{name}' AS BLOB))"


@pytest.fixture
def two_generations(tmp_path: Path) -> Path:
    """An archive with one file of text in each of two segments, `old` and `new`, and `data`, which is binary."""
    for name, text in (("old", b"one two\n" * 300), ("new", b"three four\n" * 300), ("data", b"\0\1" * 500)):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_bytes(text)
    path = tmp_path / "a.gomp"
    options = {"codec": Codec.GOMPRESSO_TADOC, "words": "identifiers"}
    pack(path, tmp_path / "old", **options)
    add(path, tmp_path / "new", **options)
    add(path, tmp_path / "data", **options)
    assert run(["verify", str(path)]) == 0
    return path


def joined(first: str, second: str, size: int) -> list[str]:
    """Returns statements that append the bytes of the second file, which gets empty, to the first one of `size`."""
    return [
        f"UPDATE extent SET ino = {ino_of(first)}, file_offset = {size} WHERE ino = {ino_of(second)}",
        f"UPDATE inode SET size = (SELECT SUM(size) FROM extent WHERE ino = inode.ino) WHERE ino = {ino_of(first)}",
        f"UPDATE inode SET size = 0 WHERE ino = {ino_of(second)}",
        f"DELETE FROM binary_file WHERE ino = {ino_of(second)}",
    ]


@pytest.mark.parametrize(
    ("first", "second", "size", "reason"),
    [
        ("new", "old", 3300, b"it does not continue in the next part of text"),
        ("old", "data", 2400, b"it is in parts of text and in others"),
    ],
)
def test_extents_in_other_parts(
    first: str,
    second: str,
    size: int,
    reason: bytes,
    two_generations: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Of one segment. Statistics refuse such an archive, or count words of half a file; `verify` reports it."""
    path = two_generations.with_name("once.gomp")
    sources = [two_generations.with_name(name) / name for name in ("old", "new", "data")]
    pack(path, *sources, codec=Codec.GOMPRESSO_TADOC, words="identifiers")
    forge_index(path, *joined(first, second, size))
    assert len(output(capfdbinary, "cat", str(path), first)[1]) > size
    status, text = output(capfdbinary, "verify", str(path))
    assert status == 1
    assert reason in text


@pytest.mark.parametrize("kind", ["head", "words", "raw"])
def test_a_nul_in_text(kind: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Statistics count the words of the file, and another `pack` would take it for binary."""
    words = GlobalTokens([b"a"], [b"\0"]) if kind == "words" else SHARED
    root = [word(b"a"), separator(b"\0"), word(b"c"), separator(b"\n")]
    path = write_archive(tmp_path / "a.gomp", [built(*root, SPLITTER, words=words)], words=words)
    if kind == "raw":
        text = b"a\0c\n"
        made = ArchiveBuilder(meta={"words": "identifiers"})
        made.parts = [StoredPart(len(text), [seal(Codec.STORED, text, text).data], kind=PartKind.TEXT)]
        made.add_file(b"file", len(text), 0)
        path.write_bytes(made.build())
    assert output(capfdbinary, "cat", str(path), "file") == (0, b"a\0c\n")
    status, text = output(capfdbinary, "verify", str(path))
    assert status == 1
    assert b"inode 2 (/file): it is in parts of text and has a NUL near its beginning" in text


def test_a_nul_after_the_beginning_is_text(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/late").write_bytes(b"word " * 1638 + b"ab\0 more\n")
    (tmp_path / "tree/next").write_bytes(b"word more\n")
    pack(tmp_path / "a.gomp", tmp_path / "tree", codec=Codec.GOMPRESSO_TADOC, words="identifiers")
    assert output(capfdbinary, "verify", str(tmp_path / "a.gomp"))[0] == 0
    with Archive(tmp_path / "a.gomp") as archive:
        assert not archive.index.binary_files()


@pytest.mark.parametrize("statement", ["DELETE FROM meta", "UPDATE meta SET value = 'tokens'"])
def test_an_unknown_word_rule(statement: str, two_generations: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Files are read and searched as a whole; words are not counted by a rule that is a guess."""
    forge_index(two_generations, f"{statement} WHERE key = 'words'")
    path = str(two_generations)
    assert output(capfdbinary, "cat", path, "old") == (0, b"one two\n" * 300)
    assert output(capfdbinary, "grep", "-c", "two", path) == (0, b"old:300\n")
    assert b"new" in output(capfdbinary, "ls", path)[1]
    assert output(capfdbinary, "stats", path, "wordcount")[0] == 1
    assert output(capfdbinary, "verify", path)[0] == 1
    with Archive(two_generations) as archive, pytest.raises(ArchiveFormatError, match="unknown word rule"):
        compute(b"wordcount", archive)
    if "tokens" in statement:
        capfdbinary.readouterr()
        assert run(["repack", path, f"{path}.new"]) == 1
        assert b"unknown word rule 'tokens' in the index" in capfdbinary.readouterr().err
    assert run(["repack", "--words", "identifiers", path, f"{path}.new"]) == 0
    assert output(capfdbinary, "verify", f"{path}.new")[0] == 0
