"""`gompfs grep -E NAME`: files are decoded before they are searched, with the output of ripgrep."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from ripgrep import is_comparable, ripgrep
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.errors import OptionError
from gompfs.model import ROOT_INO
from gompfs.search.encodings import encoding_names, encoding_tables
from gompfs.search.messages import SearchRequest
from gompfs.search.query import SearchQuery
from gompfs.search.search import ArchiveSearch

ERROR = 2
PIECE = 512 << 10
"""The size of the pieces in which files above 16 MiB are searched (native/search/large_file_search.cpp)."""
ENCODINGS = (
    *("utf-8", "utf-16", "utf-16be", "ibm866", "koi8-r", "koi8-u", "macintosh", "x-mac-cyrillic", "x-user-defined"),
    *(f"iso-8859-{number}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16)),
    *(f"windows-{number}" for number in (874, *range(1250, 1259))),
    *("gbk", "gb18030", "big5", "euc-jp", "shift_jis", "euc-kr", "iso-2022-jp"),
)
LONG_SEQUENCES = ("gbk", "gb18030", "euc-jp", "utf-8", "shift_jis")
SAMPLES = {
    "latin1": "foo é bar\nÉté foo\n",
    "koi8-r": "ёлка foo\nжили\n",
    "shift_jis": "漢字 foo カタカナ ｱｲｳ\n表\n",
    "euc-jp": "漢字 foo カタカナ\n",
    "gb18030": "汉字 foo 😀 é\n",
    "big5": "漢字 foo\n功能\n",
    "euc-kr": "한국어 foo\n",
    "iso-2022-jp": "漢字 foo カタカナ\n",
    "utf-16le": "foo é\nÉté foo 漢😀\n",
    "utf-16be": "foo é\nÉté foo 漢😀\n",
    "utf-8": "été foo\n",
}
"""Texts by encodings, each of which has a character that is encoded as more than one byte in UTF-8."""

Capture = pytest.CaptureFixture[bytes]


def sequences(rng: random.Random) -> dict[str, bytes]:
    """Contents of files: all sequences of two bytes, many of three and four, and random ones."""
    pairs = (bytes([lead, trail, 10]) for lead in range(128, 256) for trail in range(256) if trail != 10)
    quads = (
        bytes([first, second, third, fourth, 10])
        for first in range(0x81, 0xFF)
        for second in range(0x30, 0x3A)
        for third in range(0x81, 0xFF, 9)
        for fourth in (0x30, 0x35, 0x39)
    )
    sets = [b"\x1b(B", b"\x1b(J", b"\x1b(I", b"\x1b$@", b"\x1b$B", b"\x1b", b"\x1b$", b"\x1b(", b"\n"]
    escapes = (rng.choice([rng.choice(sets), bytes(rng.choices(range(256), k=3))]) for _ in range(60_000))
    some_bytes = [10, *range(256), *range(0x80, 0x100), *range(0x30, 0x3A), 0x8E, 0x8F]
    return {
        "pairs": b"".join(pairs),
        "quads": b"".join(quads),
        "triples": b"".join(
            bytes([0x8F, first, second, 10]) for first in range(0xA0, 256) for second in range(0x9F, 256)
        ),
        "random": bytes(rng.choices(some_bytes, k=100_000)) + b"\n",
        "escapes": b"".join(escapes) + b"\x1b(B\n",
        "kanji": b"".join(b"\x1b$B%c%c\x1b(B\n" % (first, second) for first in range(256) for second in range(256)),
        "mark-8": b"\xef\xbb\xbfabc\xe9\xe9t\xc3\xa9\n",
        "mark-le": b"\xff\xfe" + "aé\nfoo\n".encode("utf-16-le"),
        "mark-be": b"\xfe\xff" + "aé\nfoo\n".encode("utf-16-be"),
    }


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its archive is beside it."""
    root = tmp_path_factory.mktemp("encodings") / "tree"
    root.mkdir()
    contents = sequences(random.Random(3))
    contents |= {f"text-{name}": (text * 30).encode(name) for name, text in SAMPLES.items()}
    contents["nul"] = b"foo\n\0foo\nfoo\xe9\n"
    for name, content in contents.items():
        (root / name).write_bytes(content)
    pack(root.parent / "tree.gomp", root, codec=Codec.GOMPRESSO_TADOC, block_size=16384)
    return root


def check(capfd: Capture, tree: Path, *arguments: str) -> bytes:
    """Compares the output with that of ripgrep, and returns it."""
    wanted = ripgrep(*arguments, cwd=tree)
    status = run(["grep", "--sort=path", *arguments, str(tree.parent / "tree.gomp")])
    assert (status, capfd.readouterr().out) == wanted, arguments
    return wanted[1]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_all_sequences_of_bytes(capfdbinary: Capture, tree: Path, encoding: str) -> None:
    """Those that are not valid become U+FFFD; how many they become is what ripgrep's decoder says."""
    arguments = ["-a", "-n", "-E", encoding, ""]
    if not is_comparable(arguments):
        pytest.skip("this version of ripgrep differs from the newest one; see tests/search/ripgrep.py")
    if encoding != "iso-2022-jp":
        arguments += ["-g", "!escapes", "-g", "!kanji"]
    if encoding not in LONG_SEQUENCES:
        arguments += ["-g", "!triples", "-g", "!quads"]
    output = check(capfdbinary, tree, *arguments)
    assert output.decode()  # all of it is UTF-8


OPTIONS = (
    *(["-c", "foo"], ["-l", "foo"], ["--count-matches", "o"], ["-o", "[é漢ёл汉한]+"], ["-C1", "-n", "^.é"]),
    *(["-r", "<$0>", "[é漢ё汉한]."], ["-U", "-n", "foo.*\\n[^f]"], ["-i", "ÉTÉ"], ["-w", "foo"], ["-v", "-c", "foo"]),
)


@pytest.mark.parametrize("encoding", SAMPLES)
def test_options(capfdbinary: Capture, tree: Path, encoding: str) -> None:
    texts = ["-g", f"text-{encoding}", "-g", "nul", "-g", "mark-*", "-E", encoding]
    outputs = [check(capfdbinary, tree, *texts, *options) for options in OPTIONS]
    assert sum(output != b"" for output in outputs) > len(OPTIONS) / 2
    if encoding == "latin1":
        for option in ("-c", "-n"):
            paths = ["-E", encoding, option, "foo"]
            wanted = ripgrep(*paths, "nul", cwd=tree)
            assert run(["grep", *paths, str(tree.parent / "tree.gomp"), "nul"]) == wanted[0]
            assert capfdbinary.readouterr().out == wanted[1]


def test_json(capfdbinary: Capture, tree: Path) -> None:
    def messages(output: bytes) -> list[bytes]:
        return [line for line in output.splitlines() if b'"type":"match"' in line or b'"type":"begin"' in line]

    arguments = ["--json", "-E", "shift_jis", "-g", "text-*", "foo|漢"]
    wanted = ripgrep(*arguments, cwd=tree)[1]
    assert run(["grep", "--sort=path", *arguments, str(tree.parent / "tree.gomp")]) == 0
    assert messages(capfdbinary.readouterr().out) == messages(wanted)
    assert len(messages(wanted)) > 60
    assert "漢字 foo".encode() in wanted


def test_marks_and_none(capfdbinary: Capture, tree: Path) -> None:
    """A mark of UTF-16 counts more than a name; with none, marks are bytes like others."""
    marks = ["-g", "mark-*"]
    assert check(capfdbinary, tree, *marks, "foo").count(b"foo") == 2
    assert check(capfdbinary, tree, *marks, "-E", "latin1", "foo").count(b"foo") == 2
    assert check(capfdbinary, tree, *marks, "-E", "none", "foo") == b""
    assert check(capfdbinary, tree, *marks, "-a", "-E", "none", "(?-u)f\\x00o") != b""
    assert check(capfdbinary, tree, *marks, "-a", "-E", "none", "(?-u)^\\xef\\xbb\\xbf") != b""


def test_large_files(capfdbinary: Capture, tmp_path: Path) -> None:
    """They are decoded piece by piece, and characters go across the ends of pieces."""
    root = tmp_path / "tree"
    root.mkdir()
    rng = random.Random(4)
    for encoding, text in (("shift_jis", "漢字カ"), ("gb18030", "汉€\u0e01é"), ("utf-16le", "漢😀é")):
        lines = [
            (text * rng.randrange(1, 90) + rng.choice(["foo", "a", ""]) + "\n").encode(encoding) for _ in range(99)
        ]
        content = b"".join(rng.choices(lines, k=(17 << 20) * len(lines) // sum(map(len, lines))))
        (root / encoding).write_bytes(content)
        borders = range(PIECE, len(content), PIECE)
        assert sum(not is_whole(content[border - 400 : border], encoding) for border in borders) > 3
    pack(tmp_path / "tree.gomp", root, codec=Codec.STORED)
    for encoding in ("shift_jis", "gb18030", "utf-16le"):
        for options in (["-n", "-m40", "漢foo|éfoo"], ["--count-matches", "\ufffd|foo$|字カ漢|汉€"]):
            arguments = ["-g", encoding, "-E", encoding, *options]
            wanted = ripgrep(*arguments, cwd=root)
            status = run(["grep", "--sort=path", *arguments, str(tmp_path / "tree.gomp")])
            assert (status, capfdbinary.readouterr().out) == wanted, arguments


def is_whole(end: bytes, encoding: str) -> bool:
    """Whether the last line of a text does not end inside of a character."""
    feed = "\n".encode(encoding)
    last = end[end.rfind(feed) + len(feed) :]
    try:
        last.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def test_a_character_that_is_cut_off(capfdbinary: Capture, tmp_path: Path) -> None:
    """At the end of a file it becomes U+FFFD. ripgrep leaves it out in some files, and writes parts of it in others."""
    for number, content in enumerate([b"ab\x81", b"abc\x81", b"ab\x81\x30\x81", b"\x81"]):
        (tmp_path / f"{number}").write_bytes(content)
        pack(tmp_path / f"{number}.gomp", tmp_path / f"{number}")
        assert run(["grep", "-I", "-E", "shift_jis", "", str(tmp_path / f"{number}.gomp")]) == 0
        wanted = content.replace(b"\x81", "\ufffd".encode()) + b"\n"
        assert capfdbinary.readouterr().out == wanted


def test_words_that_are_there_only_after_decoding(capfdbinary: Capture, tree: Path, tmp_path: Path) -> None:
    """No file is skipped by its words, which are those of its bytes."""
    root = tmp_path / "tree"
    root.mkdir()
    (root / "menu").write_text("un café noir\n" * 900, encoding="utf-8")
    (root / "other").write_text("".join(f"word{number} x\n" for number in range(900)))
    pack(tmp_path / "tree.gomp", root, codec=Codec.GOMPRESSO_TADOC, part_size=5000)
    with Archive(tmp_path / "tree.gomp", engine=select_engine("cpu")) as opened:
        for word, encoding, is_there in (("cafÃ", "auto", False), ("cafÃ", "latin1", True), ("café", "utf-8", True)):
            query = SearchQuery((word.encode(),), count=True, encoding=encoding)
            search = ArchiveSearch(opened, query, [(b"", ROOT_INO)])
            assert b"".join(search) == (b"menu:900\n" if is_there else b"")
            assert (search.totals.skipped_files == 0) == is_there
    for encoding, word in (("latin1", "Été"), ("koi8-r", "жили"), ("utf-16le", "漢"), ("gb18030", "汉字")):
        output = check(capfdbinary, tree, "-c", "-g", f"text-{encoding}", "-E", encoding, word)
        assert output == f"text-{encoding}:30\n".encode()
        check(capfdbinary, tree, "-c", "-F", "-w", "-g", "text-*", "-E", encoding, word)


def test_names(capfd: pytest.CaptureFixture[str], tree: Path) -> None:
    """Names are those of ripgrep; others are refused with its status."""
    file = tree / "text-latin1"
    archive = str(tree.parent / "tree.gomp")
    some = random.Random(5).sample(encoding_names(), 25)
    for name in (*some, " Latin1\t", "US-ASCII", "nope", "", "replacement", "iso-2022-kr", "hz-gb-2312", "latin 1"):
        wanted = ripgrep("-c", "-E", name, "^", file)[0]
        status = run(["grep", "-c", "-E", name, "^", archive, "text-latin1"])
        errors = capfd.readouterr().err
        assert status == wanted, name
        assert (errors != "") == (status == ERROR), name
    assert run(["grep", "-E", "nope", "foo", archive]) == ERROR
    assert re.fullmatch(r"gompfs: .*'--encoding': unknown encoding: nope\. .*\n", capfd.readouterr().err)


def test_tables_are_made_once() -> None:
    """Whatever the label is: a daemon would keep one for each that it is asked."""
    assert encoding_tables(" GBK ") is encoding_tables("gb18030")
    with pytest.raises(OptionError, match="unknown encoding"):
        encoding_tables("nope")
    with pytest.raises(ValueError, match="an encoding is a name"):
        SearchRequest.decode(b'{"query": {"patterns": [], "encoding": 7}, "roots": []}')


def test_search_zip_is_refused(capfd: pytest.CaptureFixture[str], tree: Path) -> None:
    for option in ("-z", "--search-zip"):
        assert run(["grep", option, "foo", str(tree.parent / "tree.gomp")]) == ERROR
        errors = capfd.readouterr().err
        assert re.fullmatch(
            r"gompfs: .*not supported: .*gompfs cat ARCHIVE PATH \| zcat \| rg, or rg -z in .*\n", errors
        )
