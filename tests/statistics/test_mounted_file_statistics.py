"""The statistics of files and sequences, in a mount and by the command, compared with awk and coreutils."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from coreutils_oracle import add, files_under, is_text, pack, run_gompfs, shell

from gompfs.archive import Archive
from gompfs.statistics.query import StatsQuery
from gompfs.statistics.tasks import NAMES, compute

EXAMPLES = Path(__file__).parents[2] / "examples" / "corpus"
Mount = Callable[[Path], Path]
each_kind = pytest.mark.parametrize("kind", ["parts", "blocks"])

# Prints, for every path on standard input, lines of path, tab and n consecutive words.
_NGRAMS = r"""
    while IFS= read -r -d '' path; do
        { cat -- "$path"; echo; } | tr -s '[:space:]' '\n' | sed '/^$/d' | awk -v n=%d -v path="$path" '
            { words[NR] = $0 }
            NR >= n {
                line = words[NR - n + 1]
                for (at = NR - n + 2; at <= NR; ++at) line = line " " words[at]
                print path "\t" line
            }'
    done |"""
_COUNTED = r" sort | uniq -c | sed -E 's/^ *([0-9]+) /\1\t/' |"  # count, path, words
_JOINED = r"""
    awk -F'\t' '
        ($1 "") != (last "") { printf "%s%s", (NR > 1 ? "\n" : ""), $1; last = $1 }
        { printf "\t%s", $2 }
        END { if (NR) printf "\n" }'"""
_INVERTED_INDEX = _NGRAMS % 1 + r" sort -u | awk -F'\t' '{ print $2 FS $1 }' | sort -t $'\t' -k1,1 -k2,2 |" + _JOINED
_BY_PATH = r""" sort -t $'\t' -k2,2 -k1,1nr -k3,3 | awk -F'\t' '{ print $2 FS $1 " " $3 }' |"""
_TERM_VECTOR = _NGRAMS % 1 + _COUNTED + _BY_PATH + _JOINED
_BY_COUNT = r" cut -f2 | sort | uniq -c | sed -E 's/^ *([0-9]+) (.*)$/\2\t\1/' | sort -t $'\t' -k2,2nr -k1,1"
_SEQUENCE_COUNT = _NGRAMS % 3 + _BY_COUNT
_BY_NGRAM = r""" sort -t $'\t' -k3,3 -k1,1nr -k2,2 | awk -F'\t' '{ print $3 FS $1 " " $2 }' |"""
_RANKED_INVERTED_INDEX = _NGRAMS % 3 + _COUNTED + _BY_NGRAM + _JOINED
SCRIPTS = {
    "inverted_index": _INVERTED_INDEX,
    "term_vector": _TERM_VECTOR,
    "sequence_count": _SEQUENCE_COUNT,
    "ranked_inverted_index": _RANKED_INVERTED_INDEX,
}


_expected: dict[tuple[str, frozenset[tuple[str, bytes]]], bytes] = {}


def expected(root: Path, name: str) -> bytes:
    """Returns what coreutils and awk compute for the text files under a directory, once for equal files."""
    paths = [os.path.relpath(path, root) for path in files_under(root) if is_text(path)]
    key = name, frozenset((path, (root / path).read_bytes()) for path in paths)
    if key not in _expected:
        listed = b"".join(os.fsencode(path) + b"\0" for path in paths)
        _expected[key] = shell(f"cd {os.fspath(root)!r}\n{SCRIPTS[name]}", listed)
    return _expected[key]


def check(stats: Path, root: Path) -> None:
    for name in SCRIPTS:
        content = (stats / name).read_bytes()
        assert content == expected(root, name), name
        assert content


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The files of `make_tree`, which a test may change."""
    return make_tree(tmp_path / "tree")


def make_tree(root: Path) -> Path:
    """Makes text files without NUL, with many kinds of ends."""
    rng = random.Random(21)
    vocabulary = [rng.randbytes(rng.randrange(1, 6)).translate(_WORD_BYTES) for _ in range(60)]
    (root / "deep/er").mkdir(parents=True)

    def text(num_words: int) -> bytes:
        spaces = (b" ", b"\n", b"\r\n", b"\t\v\f")
        chosen = (min(int(rng.paretovariate(0.8)), 60) - 1 for _ in range(num_words))
        return b"".join(vocabulary[number] + rng.choice(spaces) for number in chosen)

    contents = {"empty": b"", "blank": b" \n" * 50, "one": b"word", "two": b"two words", "deep/text": text(9000)}
    contents |= {"cut": text(800)[:-1], "deep/same": contents["deep/text"], "long": b"y " + b"x" * 5000 + b" z z"}
    contents |= {"with space": text(30), "\udcff\udcfe": text(40), "binary": b"\0a b c", "deep/er/more": text(2000)}
    contents |= {f"deep/small-{number}": text(number % 7) for number in range(80)}
    for name, content in contents.items():
        (root / name).write_bytes(content)
    return root


_WORD_BYTES = bytes(b"abcdexyz.,\xff\xc3\xa9\x01\x1f~"[byte % 16] for byte in range(256))


@each_kind
def test_the_bundled_corpus(tmp_path: Path, mounted_stats: Mount, kind: str) -> None:
    check(mounted_stats(pack(tmp_path / "a.gomp", EXAMPLES, kind=kind)), EXAMPLES)


@each_kind
def test_a_tree(tmp_path: Path, tree: Path, mounted_stats: Mount, kind: str) -> None:
    check(mounted_stats(pack(tmp_path / "a.gomp", tree, kind=kind)), tree)


@pytest.mark.parametrize("kinds", [("parts",) * 2, ("blocks", "parts"), ("parts", "blocks"), ("blocks",) * 2])
def test_added_segments(tmp_path: Path, tree: Path, mounted_stats: Mount, kinds: tuple[str, str]) -> None:
    """Segments are counted together. For a file that was replaced, only the new content is counted."""
    archive = pack(tmp_path / "a.gomp", tree, kind=kinds[0])
    (tree / "deep/text").write_bytes(b"only in the new file, " * 20)
    (tree / "one").write_bytes(b"\0binary now")
    (tree / "binary").write_bytes(b"text now, and text now, and text now")
    (tree / "late").write_bytes(b"text now, and late")
    add(archive, tree, kind=kinds[1])
    check(mounted_stats(archive), tree)


@each_kind
def test_one_file(tmp_path: Path, tree: Path, kind: str) -> None:
    """--file gives the result of an archive with that file only, also for a file of an older segment."""
    archive = pack(tmp_path / "a.gomp", tree, kind=kind)
    (tmp_path / "late").write_bytes(b"a b c d b c d")
    add(archive, tmp_path / "late")
    for path in (b"deep/text", b"cut", b"empty"):
        alone = tmp_path / f"alone-{path.rpartition(b'/')[2].decode()}"
        (alone / "deep").mkdir(parents=True)
        shutil.copy(tree / os.fsdecode(path), alone / os.fsdecode(path))
        with Archive(archive) as of_all, Archive(pack(tmp_path / "alone.gomp", alone, force=True)) as of_one:
            others = ("tfidf", "info", "binary-files", "sha256sums")
            for name in (name.encode() for name in NAMES if name not in others):
                query = StatsQuery(ino=of_all.resolve(path).ino)
                assert compute(name, of_all, query).read() == compute(name, of_one).read(), (path, name)
    options = ["--file", "late", "--n", "2", "--top", "2"]
    assert run_gompfs("stats", archive, "sequence_count", *options) == b"b c\t2\nc d\t2\n"


def test_json(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/a\tb\\\n").write_bytes(b"x y z x y z x")
    archive = pack(tmp_path / "a.gomp", tmp_path / "tree")
    name = "a\tb\\\n"

    def ask(*arguments: str) -> object:
        return json.loads(run_gompfs("stats", "--json", archive, *arguments))

    assert ask("inverted_index", "--top", "1") == [{"word": "x", "files": [name]}]
    assert ask("term_vector", "--top", "2") == [
        {"file": name, "words": [{"word": "x", "count": 3}, {"word": "y", "count": 2}]}
    ]
    assert ask("sequence_count", "--top", "1", "--n", "4") == [{"words": ["x", "y", "z", "x"], "count": 2}]
    assert ask("ranked_inverted_index", "--n", "1")[0] == {"words": ["x"], "files": [{"file": name, "count": 3}]}
    assert run_gompfs("stats", archive, "inverted_index", "--top", "1") == b"x\ta\\tb\\\\\\n\n"


@pytest.fixture(scope="module")
def with_and_without(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Archives of the same tree with and without a grammar."""
    folder = tmp_path_factory.mktemp("usage")
    tree = make_tree(folder / "tree")
    return [pack(folder / f"{kind}.gomp", tree, kind=kind) for kind in ("parts", "blocks")]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("sort", "--n", "2"), 2, b"--n is only for sequence_count, ranked_inverted_index and overlap"),
        (("info", "--file", "one"), 2, b"--file has no meaning for info"),
        (("list", "--top", "2"), 2, b"--top has no meaning for list"),
        (("sequence_count", "--n", "6"), 2, b"the n-grams of sequence_count have 1 to 5 words, not 6"),
        (("sort", "--top", "0"), 2, b"--top"),
        (("sort", "--file", "binary"), 1, b"binary: a binary file has no statistics"),
        (("term_vector", "--file", "binary"), 1, b"binary: a binary file has no statistics"),
        (("term_vector", "--file", "deep"), 1, b"deep: not a regular file"),
        (("term_vector", "--file", "nowhere"), 1, b"nowhere"),
    ],
)
def test_wrong_usage(with_and_without: list[Path], arguments: tuple[str, ...], status: int, message: bytes) -> None:
    for archive in with_and_without:
        error = run_gompfs("stats", archive, *arguments, status=status)
        assert message in error
        assert error.count(b"\n") == 1
