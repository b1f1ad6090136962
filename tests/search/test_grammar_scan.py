"""Lines that are counted or made in the grammar, without the other text, are those of a search that reads all files."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from forged_index import forge_index
from random_searches import random_pattern
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.errors import OptionError
from gompfs.model import ROOT_INO
from gompfs.search.query import SearchQuery
from gompfs.search.search import ArchiveSearch

QUICK, MANY = 40, 1500  # patterns
WORDS = [b"foo", b"Foo", b"foobar", b"bar", b"b_a_r", b"x1", b"1024", b"don't", b"a", b"aa", b"two", b"if", b"return"]
OTHER_WORDS = ["été".encode(), "Straße".encode(), "кот".encode(), b"caf\xe9", b"\xc3", "\u212aoo".encode()]
SEPARATORS = [b" ", b" ", b" ", b"\n", b"\n\n", b"  ", b"(", b") {\n", b", ", b"-", b"\t", b";\n\t", b" = ", b"\r\n"]
RARE = [b"\0", b"\xff\xfe", b"\xef\xbb\xbf", "\uff0c".encode(), b"\xf0\x9f\x91\xa9"]
PATTERNS = [
    *(r"foo", r" = ", r"^foo", r"foo$", r"^$", r"^\s*return", r"\bfoo\b", r"foo.*bar", r"[A-Z]o{2}", r"(a|foo) +if"),
    *(r"o\n?b", r"\w+ \w+ return", r"fo?o?$|^a", r"[^a-z ]\d+", r"\S+", r".", r"..\)", r"(?i)FOO", r"(?i)koo"),
    *(r"\p{Lu}oo", r"(?-u)\xe9", r"if \(.*\) \{", r"a a", r"^ ", r" $", r"a{2,9}", r"\Afoo", r"foo\z", r"x*foo"),
    *(r"^.{0,20}$", r"\x00", r"é|ß", r"(?m:^)b"),
]


FILLER = b"qq\n\tqqqq qqq,\n"


def random_text(generator: random.Random, *, is_sparse: bool = False) -> bytes:
    """Returns lines that often repeat, so that parts have rules; some with odd bytes.

    If `is_sparse`, there are many other lines among them.
    """
    words = WORDS + (OTHER_WORDS if generator.random() < 0.5 else [])
    phrases = [
        b"".join(generator.choice(words) + generator.choice(SEPARATORS) for _ in range(generator.randrange(1, 9)))
        for _ in range(12)
    ]
    chosen = generator.choices(phrases, k=generator.choice([0, 1, 3, 40, 80 if is_sparse else 2500]))
    text = b"".join(phrase + (FILLER * generator.randrange(200) if is_sparse else b"") for phrase in chosen)
    if generator.random() < 0.2:
        at = generator.randrange(len(text) + 1) if generator.random() < 0.5 else 0
        text = text[:at] + generator.choice(RARE) + text[at:]
    return text.rstrip(b"\n") if generator.random() < 0.3 else text


@pytest.fixture(scope="module", params=["identifiers", "letters", "whitespace", "sparse identifiers", "sparse letters"])
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Files of which some are in several parts, and parts of several blocks."""
    generator = random.Random(request.param)
    *sparse, words = request.param.split()
    root = tmp_path_factory.mktemp("scanned") / "tree"
    root.mkdir()
    for number in range(60):
        (root / f"{number:02}").write_bytes(random_text(generator, is_sparse=bool(sparse)))
    target = root.parent / "tree.gomp"
    pack(target, root, codec=Codec.GOMPRESSO_TADOC, words=words, block_size=1 << 14, part_size=50_000)
    with Archive(target, engine=select_engine("cpu")) as opened:
        yield opened


def search(archive: Archive, query: SearchQuery) -> tuple[bytes, int]:
    """Returns the output, and how many files have matches: with --quiet, only whether some have."""
    running = ArchiveSearch(archive, query, [(b"", ROOT_INO)])
    output = b"".join(running)
    assert running.failures == []
    num_files = running.totals.files_with_matches
    return (b"", min(num_files, 1)) if query.quiet else (output, num_files)


OUTPUTS = ["count", "files_with_matches", "files_without_match", "quiet", "line_number", "count_matches"]


def check(archive: Archive, pattern: str, **options: object) -> None:
    for output in OUTPUTS:
        arguments = {"patterns": (pattern.encode(),), output: True, **options}
        try:
            expected = search(archive, SearchQuery(read_all=True, **arguments))  # type: ignore[arg-type]
        except OptionError:
            return
        assert search(archive, SearchQuery(**arguments)) == expected, arguments  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(archive: Archive, pattern: str) -> None:
    check(archive, pattern)


def random_options(generator: random.Random) -> dict[str, object]:
    chosen = generator.sample(["ignore_case", "word_regexp", "line_regexp", "text", "smart_case"], 2)
    options: dict[str, object] = {name: generator.random() < 0.2 for name in chosen}
    return options | ({"max_count": generator.randrange(4)} if generator.random() < 0.1 else {})


def compare(archive: Archive, count: int, seed: int | str) -> None:
    generator = random.Random(seed)
    for _ in range(count):
        check(archive, random_pattern(generator), **random_options(generator))


def test_random_patterns(archive: Archive) -> None:
    compare(archive, QUICK, "quick")


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_random_patterns(archive: Archive) -> None:
    compare(archive, MANY, int(time.time()))


@pytest.mark.parametrize("pattern", ["foo", "^foo", r"[A-Z]o{2}", r"foo.*bar\b?"])
def test_no_block_is_decoded_to_count(archive: Archive, pattern: str) -> None:
    """Lines are decoded only where a file has odd bytes."""
    with Archive(archive.path, engine=select_engine("cpu")) as fresh:
        query = SearchQuery((pattern.encode(),), count=True, glob=(b"0*",))
        _, num_files = search(fresh, query)
        assert num_files > 3
        assert fresh.blocks.misses < fresh.num_blocks // 2


RARE_LINE = b"two foo (bar)\n"


@pytest.fixture(scope="module")
def large_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Files in many parts, each with few lines that match: some where a part ends, one without a line feed."""
    root = tmp_path_factory.mktemp("large") / "tree"
    root.mkdir()
    generator = random.Random(7)
    for number in range(4):
        runs = [bytes(generator.choices(b"qrstuv \n", k=997)) * generator.randrange(1, 60) for _ in range(40)]
        (root / f"{number}").write_bytes(RARE_LINE.join(runs) + b"\n" + RARE_LINE.rstrip())
    (root / "long lines").write_bytes(b"one foo two qqq " * 4000 + b"\n" + b"three qq " * 9000)
    target = root.parent / "tree.gomp"
    pack(target, root, codec=Codec.GOMPRESSO_TADOC, block_size=1 << 14, part_size=40_000)
    with Archive(target, engine=select_engine("cpu")) as opened:
        yield opened


@pytest.mark.parametrize("pattern", ["foo", r"foo \(bar\)$", r"^two", r"[a-z]oo|bar\b", r"three"])
def test_lines_in_several_parts(large_files: Archive, pattern: str) -> None:
    check(large_files, pattern)
    check(large_files, pattern, max_count=3)
    check(large_files, pattern, stats=True)
    check(large_files, pattern, only_matching=True, glob=(b"[0-9]",))


@pytest.mark.parametrize("output", ["line_number", "count_matches", "json"])
def test_no_block_is_decoded_for_lines(large_files: Archive, output: str) -> None:
    with Archive(large_files.path, engine=select_engine("cpu")) as fresh:
        query = SearchQuery((b"foo",), glob=(b"[0-9]",), **{output: True})  # type: ignore[arg-type]
        assert search(fresh, query)[1] == 4
        assert fresh.blocks.misses == 0


def test_parts_are_decoded_where_many_lines_match(large_files: Archive) -> None:
    with Archive(large_files.path, engine=select_engine("cpu")) as fresh:
        assert search(fresh, SearchQuery((b"q",), glob=(b"[0-9]",)))[1] == 4
        assert fresh.blocks.misses != 0


@pytest.mark.parametrize("pattern", [r"(a|aa|aaa)*(foo|fo|f)*b{1,400}$", r"([a-z ]{1,60}){1,30}x", r"(\w+\s+){20}foo"])
def test_hostile_patterns(archive: Archive, pattern: str) -> None:
    """Automata that would be too large are not used, or parts take too long, which are decoded then."""
    list(ArchiveSearch(archive, SearchQuery((pattern.encode(),), count=True), [(b"", ROOT_INO)]))


@pytest.mark.parametrize("change", ["file_offset = 900", "file_offset = 1", "size = size - 6", "size = size + 60"])
def test_files_that_are_not_whole_pieces(tmp_path: Path, change: str) -> None:
    """Extents that begin with a hole, or end before or after the file, in an archive whose checksums are right."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/text").write_bytes(b"foo bar\n" * 200 + b"two foo\n" * 50)
    (tmp_path / "tree/after").write_bytes(b"foo foo\n" * 100)
    target = tmp_path / "tree.gomp"
    pack(target, tmp_path / "tree", codec=Codec.GOMPRESSO_TADOC)
    forge_index(
        target, f"UPDATE extent SET {change} WHERE ino = (SELECT ino FROM dirent WHERE name = CAST('text' AS BLOB))"
    )
    with Archive(target, engine=select_engine("cpu")) as opened:
        for pattern in (b"foo", b"two foo$", b"^bar"):
            assert (
                search(opened, SearchQuery((pattern,), count=True))[0]
                == (search(opened, SearchQuery((pattern,), count=True, read_all=True))[0])
            )


def test_lines_over_many_parts(tmp_path: Path) -> None:
    """The state at the end of a part is handed on to the next one 8 times; files that need more are decoded."""
    (tmp_path / "tree").mkdir()
    generator = random.Random(8)
    for number in range(6, 12):
        words = bytes(generator.choices(b"qrst ", k=5003)) * (number * 8)
        (tmp_path / f"tree/{number}").write_bytes(b"foo " + words[: number * 40_000] + b" bar\nbar\nfoo")
    target = tmp_path / "tree.gomp"
    pack(target, tmp_path / "tree", codec=Codec.GOMPRESSO_TADOC, block_size=1 << 14, part_size=40_000)
    decoded = []
    for number in range(6, 12):
        query = SearchQuery((rb"foo.*bar",), count=True, glob=(b"%d" % number,))
        with Archive(target, engine=select_engine("cpu")) as opened:
            assert search(opened, query)[1] == 1
            decoded.append(opened.blocks.misses != 0)
            check(opened, r"foo.*bar$", glob=(b"%d" % number,))
    assert decoded == [False] * 3 + [True] * 3


def test_the_largest_automata(tmp_path: Path) -> None:
    """Patterns of as many states as an automaton may have, of fewer and of more, in one part and in several."""
    (tmp_path / "tree").mkdir()
    lines = b"".join(b"x y " * 510 + b"x" * number + b"\n" for number in range(24))
    (tmp_path / "tree/one").write_bytes(lines)
    (tmp_path / "tree/several").write_bytes(lines * 4)
    target = tmp_path / "tree.gomp"
    pack(target, tmp_path / "tree", codec=Codec.GOMPRESSO_TADOC, part_size=50_000)
    with Archive(target, engine=select_engine("cpu")) as opened:
        for size in range(2036, 2056):
            check(opened, f"^[xy ]{{{size}}}$")
