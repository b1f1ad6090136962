"""The statistics of a mount, compared byte for byte with coreutils."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from coreutils_oracle import BINARY_PROBE_SIZE, add, count_with_coreutils, files_under, is_text, pack

EXAMPLES = Path(__file__).parents[2] / "examples" / "corpus"
MIB = 1 << 20

Mount = Callable[[Path], Path]
each_kind = pytest.mark.parametrize("kind", ["parts", "blocks"])


def make_words(seed: int, size: int) -> bytes:
    """Returns text of frequent and rare words, some of them invalid UTF-8, separated by all kinds of whitespace."""
    rng = random.Random(seed)
    vocabulary = [rng.randbytes(rng.randrange(1, 8)).translate(_NO_WHITESPACE) for _ in range(400)]
    vocabulary += [b"word%d" % number for number in range(400)]
    pieces = []
    length = 0
    while length < size:
        word = vocabulary[min(int(rng.paretovariate(0.7)), len(vocabulary)) - 1]
        pieces.append(word + rng.choice((b" ", b" ", b"\n", b"\r\n", b"\t\v\f  ")))
        length += len(pieces[-1])
    return b"".join(pieces)[:size]


_NO_WHITESPACE = bytes(ord("x") if byte in b"\0 \t\n\v\f\r" else byte for byte in range(256))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Text and binary files of many sizes, odd names, links, holes, and equal contents."""
    root = tmp_path / "tree"
    (root / "deep/er").mkdir(parents=True)
    contents = {
        "empty": b"",
        "blank": b" \n\t\v\f\r" * 3000,
        "no newline": b"the last word is cut here: wor",
        "continues": b"d is not the end of a word of the file before",
        "deep/one-word": b"x" * 100_000,
        "deep/text": make_words(1, 300_000),
        "deep/same": make_words(1, 300_000),
        "deep/er/more": make_words(2, 70_001),
        "\udcff\n name": make_words(3, 1000),
        "late-nul": b"a word\n".ljust(BINARY_PROBE_SIZE, b".") + b"\0 after\0the probe\n",
        "last-nul": b"binary\n".ljust(BINARY_PROBE_SIZE - 1, b".") + b"\0",
        "deep/binary": b"\0text\n" * 5,
        "deep/er/noise": random.Random(1).randbytes(50_000),
    }
    contents |= {f"deep/small-{seed}": make_words(seed, seed * 17) for seed in range(100)}
    for name, content in contents.items():
        (root / name).write_bytes(content)
    with open(root / "deep/sparse", "wb") as file:
        file.write(b"\n".join(b"line %d" % number for number in range(2000)))
        file.truncate(MIB)
        file.seek(0, os.SEEK_END)
        file.write(b" after the hole")
    os.link(root / "deep/text", root / "another-name")
    (root / "link").symlink_to("deep/text")
    os.mkfifo(root / "fifo")
    return root


def check(stats: Path, root: Path, word_rule: str = "whitespace") -> None:
    wordcount, sort = count_with_coreutils(files_under(root), word_rule)
    assert (stats / "sort").read_bytes() == sort
    assert (stats / "wordcount").read_bytes() == wordcount
    assert sort


def binary_files(stats: Path) -> list[str]:
    return (stats / "binary-files").read_text().splitlines()


@each_kind
def test_the_bundled_corpus(tmp_path: Path, mounted_stats: Mount, kind: str) -> None:
    stats = mounted_stats(pack(tmp_path / "a.gomp", EXAMPLES, kind=kind))
    check(stats, EXAMPLES)
    assert binary_files(stats) == []


@each_kind
def test_a_tree_of_odd_files(tmp_path: Path, tree: Path, mounted_stats: Mount, kind: str) -> None:
    stats = mounted_stats(pack(tmp_path / "a.gomp", tree, kind=kind))
    check(stats, tree)
    binary = ["deep/binary", "deep/er/noise", "deep/sparse", "last-nul"]
    assert sorted(str(path.relative_to(tree)) for path in files_under(tree) if not is_text(path)) == binary
    assert binary_files(stats) == binary


@each_kind
def test_identifiers(tmp_path: Path, tree: Path, mounted_stats: Mount, kind: str) -> None:
    """The words that programmers look for."""
    (tree / "source.c").write_bytes(b"static void f(spinlock_t *l) { l->x_1 += 0x7f; /* don't */ }\n" * 9)
    stats = mounted_stats(pack(tmp_path / "a.gomp", tree, kind=kind, words="identifiers"))
    check(stats, tree, "identifiers")
    assert b"\nspinlock_t\t9\n" in (stats / "sort").read_bytes()


@each_kind
def test_a_tar_with_large_files(tmp_path: Path, mounted_stats: Mount, kind: str) -> None:
    """Files that are read in pieces and span several parts of the grammar."""
    root = tmp_path / "tree"
    root.mkdir()
    text = make_words(4, MIB)
    for name, count in (("large", 9), ("middle", 3), ("small", 1)):
        (root / name).write_bytes(text[:-1] * count + b"end")
    (root / "binary").write_bytes(b"\0" + text * 3)
    subprocess.run(["tar", "-C", root, "-cf", tmp_path / "a.tar", "."], check=True)
    stats = mounted_stats(pack(tmp_path / "a.gomp", tmp_path / "a.tar", kind=kind))
    check(stats, root)
    assert binary_files(stats) == ["binary"]


@pytest.mark.parametrize("kinds", [("parts",) * 2, ("blocks", "parts"), ("parts", "blocks"), ("blocks",) * 2])
def test_added_segments(tmp_path: Path, tree: Path, mounted_stats: Mount, kinds: tuple[str, str]) -> None:
    """Segments are counted together. For a file that was replaced, only the new content is counted."""
    archive = pack(tmp_path / "a.gomp", tree, kind=kinds[0])
    (tree / "deep/text").unlink()  # the content has another name
    (tree / "deep/text").write_bytes(make_words(7, 20_000) + b" only in the new file")
    (tree / "deep/er/more").write_bytes(b"\0binary now, and only in the new file")
    (tree / "deep/binary").write_bytes(b"text now")
    (tree / "empty").write_bytes(make_words(8, 500))
    (tree / "no newline").write_bytes(b"")
    (tree / "late").write_bytes(make_words(9, 40_000))
    add(archive, tree, kind=kinds[1])
    stats = mounted_stats(archive)
    check(stats, tree)
    binary = ["deep/er/more", "deep/er/noise", "deep/sparse", "last-nul"]
    assert binary_files(stats) == binary


def test_a_single_replaced_file(tmp_path: Path, mounted_stats: Mount) -> None:
    """A mount keeps its counts; a new mount shows the new counts."""
    (tmp_path / "kept").write_bytes(b"kept words")
    (tmp_path / "replaced").write_bytes(b"old words, old words")
    archive = pack(tmp_path / "a.gomp", tmp_path / "kept", tmp_path / "replaced")
    before = mounted_stats(archive)
    (tmp_path / "replaced").write_bytes(b"new words")
    add(archive, tmp_path / "replaced")
    after = mounted_stats(archive)
    assert (before / "sort").read_bytes() == b"kept\t1\nold\t2\nwords\t2\nwords,\t1\n"
    assert (after / "sort").read_bytes() == b"kept\t1\nnew\t1\nwords\t2\n"
    assert (after / "wordcount").read_bytes() == b"words\t2\nkept\t1\nnew\t1\n"


def test_no_text_at_all(tmp_path: Path, mounted_stats: Mount) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/binary").write_bytes(b"\0")
    (tmp_path / "tree/empty").touch()
    stats = mounted_stats(pack(tmp_path / "a.gomp", tmp_path / "tree"))
    assert (stats / "wordcount").read_bytes() == (stats / "sort").read_bytes() == b""
    assert binary_files(stats) == ["binary"]


def test_concurrent_readers(tmp_path: Path, mounted_stats: Mount) -> None:
    """The first readers wait for the same computation. Reads of ranges agree with the whole text."""
    (tmp_path / "text").write_bytes(b"".join(b"%d " % (number * number % 99_991) for number in range(200_000)))
    stats = mounted_stats(pack(tmp_path / "a.gomp", tmp_path / "text"))
    expected = count_with_coreutils([tmp_path / "text"])

    def read(index: int) -> None:
        content = expected[index % 2]
        with open(stats / ("wordcount", "sort")[index % 2], "rb") as file:
            assert file.read() == content
            assert os.fstat(file.fileno()).st_size == len(content)
            start = index * 50_000
            assert os.pread(file.fileno(), 70_000, start) == content[start : start + 70_000]
            assert os.pread(file.fileno(), 10, len(content)) == b""

    with ThreadPoolExecutor(8) as executor:
        list(executor.map(read, range(8)))
    head = subprocess.run(["head", "-n3", stats / "wordcount"], capture_output=True, check=True).stdout
    assert expected[0].startswith(head)
    assert head.count(b"\n") == 3


def test_the_index_as_a_database(tree: Path, tmp_path: Path, mounted_stats: Mount) -> None:
    stats = mounted_stats(pack(tmp_path / "a.gomp", tree))
    assert "index.sqlite" not in os.listdir(stats)
    connection = sqlite3.connect(f"file:{stats / 'index.sqlite'}?immutable=1", uri=True)
    names = {bytes(name) for (name,) in connection.execute("SELECT name FROM dirent WHERE parent = 1")}
    connection.close()
    assert names == set(os.listdir(os.fsencode(tree)))
    assert "index.sqlite" in (stats / "README").read_text()
