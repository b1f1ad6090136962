"""Searches, single files, ranges of words and tf-idf, in a mount and by the command, compared with plain Python."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import statistics_oracle
from coreutils_oracle import add, pack, run_gompfs
from oracle.grammar import split_words
from statistics_oracle import ngrams_of, sequence_count, term_vector
from tree_helpers import write_files

from gompfs.archive import Archive
from gompfs.statistics.query import StatsQuery
from gompfs.statistics.tasks import compute

MIB = 1 << 20
Mount = Callable[[Path], Path]
both_kinds = pytest.mark.parametrize("kind", ["parts", "blocks"])


def contents_of(seed: int) -> dict[str, bytes]:
    """Few distinct words, so that sequences repeat; files with many kinds of ends, and a word of 1 MiB."""
    rng = random.Random(seed)
    vocabulary = [b"to", b"be", b"or", b"not", b"\xff\xfe", b"a\x01", b"a", b"x" * MIB]

    def text(num_words: int) -> bytes:
        return b"".join(rng.choice(vocabulary[:-1]) + rng.choice((b" ", b"\n", b"\t ")) for _ in range(num_words))

    contents = {"empty": b"", "blank": b" \n", "one": b"to", "cut": b"to be or", "long": b"a " + vocabulary[-1] + b" a"}
    contents |= {f"dir/sub/{number}": text(number * 7) for number in range(40)}
    return contents | {"dir/large": text(60_000)}


def search(contents: Mapping[str, bytes], words: list[bytes]) -> bytes:
    """Returns the expected lines for a word or a phrase."""
    texts = ngrams_of(((os.fsencode(name), content) for name, content in contents.items()), len(words))
    found = [(path, ngrams[b" ".join(words)]) for path, ngrams in texts.items() if ngrams[b" ".join(words)]]
    return b"".join(b"%s\t%d\n" % item for item in sorted(found, key=lambda item: (-item[1], item[0])))


def tfidf(contents: Mapping[str, bytes], top: int) -> bytes:
    return statistics_oracle.tfidf(ngrams_of((os.fsencode(name), content) for name, content in contents.items()), top)


@pytest.fixture(scope="module", params=["parts", "blocks", "two segments of parts", "two segments of blocks"])
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """An archive and its files; some files of an earlier segment were replaced."""
    tmp_path, contents = tmp_path_factory.mktemp("questions"), contents_of(1)
    write_files(tmp_path / "tree", contents)
    kind = request.param.rpartition(" ")[2]
    target = pack(tmp_path / "a.gomp", tmp_path / "tree", kind=kind)
    if request.param.startswith("two segments"):
        later = {"dir/sub/3": b"to be or not to be", "late": b"be or not", "one": b""}
        write_files(tmp_path / "later", later)
        add(target, tmp_path / "later", kind=kind)
        contents |= later
    return target, contents


PHRASES = [
    [b"to"],
    [b"a\x01"],
    [b"x" * 200],
    [b"be", b"or"],
    [b"a\x01", b"a"],
    [b"a", b"a\x01", b"\xff\xfe"],
    [b"to", b"be", b"or", b"not"],
    [b"to", b"to", b"to", b"to", b"to"],
]


def test_searches(archive: tuple[Path, dict[str, bytes]]) -> None:
    path, contents = archive
    with Archive(path) as opened:
        for words in PHRASES:
            expected = search(contents, words)
            assert compute(b"phrase/" + b" ".join(words), opened).read() == expected
            if len(words) == 1:
                assert compute(b"word/" + words[0], opened).read() == expected
        assert compute(b"word/" + b"x" * MIB, opened).read() == b"long\t1\n"
        assert compute(b"phrase/a " + b"x" * MIB + b" a", opened).read() == b"long\t1\n"
        alone = StatsQuery(ino=opened.resolve("dir/large").ino)
        assert compute(b"word/to", opened, alone).read() == search({"dir/large": contents["dir/large"]}, [b"to"])
        assert compute(b"word/to", opened, StatsQuery(top=2)).read().count(b"\n") == 2


def test_tfidf(archive: tuple[Path, dict[str, bytes]]) -> None:
    path, contents = archive
    with Archive(path) as opened:
        assert compute(b"tfidf", opened).read() == tfidf(contents, 10)
        assert compute(b"tfidf", opened, StatsQuery(top=2)).read() == tfidf(contents, 2)
        alone = StatsQuery(ino=opened.resolve("dir/large").ino, top=3)
        lines = tfidf(contents, 3).split(b"\n")
        assert compute(b"tfidf", opened, alone).read() == next(
            line + b"\n" for line in lines if line.startswith(b"dir/large\t")
        )
        assert compute(b"tfidf", opened, StatsQuery(ino=opened.resolve("empty").ino)).read() == b""


@both_kinds
def test_a_mount(tmp_path: Path, mounted_stats: Mount, kind: str) -> None:
    contents = contents_of(2) | {"dir/binary": b"\0word", "tab\tname": b"to be"}
    write_files(tmp_path / "tree", contents)
    (tmp_path / "tree/link").symlink_to("one")
    stats = mounted_stats(pack(tmp_path / "a.gomp", tmp_path / "tree", kind=kind))
    texts = {name.replace("\t", "\\t"): text for name, text in contents.items() if name != "dir/binary"}
    assert (stats / "word/to").read_bytes() == search(texts, [b"to"])
    assert (stats / "phrase/to be or").read_bytes() == search(texts, [b"to", b"be", b"or"])
    assert (stats / "tfidf").read_bytes() == tfidf(texts, 10)
    for missing in ("word/nowhere", "word/to be", "phrase/not a sequence", "files/dir/binary", "files/link", "stats"):
        assert not (stats / missing).exists(), missing
    long = split_words(texts["dir/sub/9"])[:20]
    assert (stats / os.fsdecode(b"phrase/" + b" ".join(long))).read_bytes() == search(texts, long)
    assert sorted(os.listdir(stats / "files")) == ["blank", "cut", "dir", "empty", "long", "one", "tab\tname"]
    assert sorted(os.listdir(stats / "files/dir")) == ["large", "sub"]
    assert sorted(os.listdir(stats / "files/one")) == ["sequence_count", "sort", "term_vector", "wordcount"]
    assert os.listdir(stats / "word") == []
    for name in ("empty", "one", "long", "dir/large", "dir/sub/17"):
        alone = [(os.fsencode(name), contents[name])]
        of_file = stats / "files" / name
        assert (of_file / "sequence_count").read_bytes() == sequence_count(ngrams_of(alone, 3))
        assert (of_file / "wordcount").read_bytes() == sequence_count(ngrams_of(alone))
        assert (of_file / "sort").read_bytes() == b"".join(
            sorted(sequence_count(ngrams_of(alone)).splitlines(keepends=True), key=lambda line: line.split(b"\t")[0])
        )
        assert (of_file / "term_vector").read_bytes() == term_vector(ngrams_of(alone))


def test_many_answers(tmp_path: Path, mounted_stats: Mount) -> None:
    """Old answers are dropped, and computed again on demand."""
    (tmp_path / "text").write_bytes(b" ".join(b"w%d" % number for number in range(600)))
    stats = mounted_stats(pack(tmp_path / "a.gomp", tmp_path / "text"))
    for _ in range(2):
        for number in range(0, 600, 2):
            assert (stats / f"word/w{number}").read_bytes() == b"text\t1\n"


def test_the_command(tmp_path: Path) -> None:
    write_files(tmp_path / "tree", {"a": b"to be or not to be", "b/c": b"be x/y be"})
    archive = pack(tmp_path / "a.gomp", tmp_path / "tree")
    assert run_gompfs("stats", archive, "word/be") == b"a\t2\nb/c\t2\n"
    assert run_gompfs("stats", archive, "word/x/y") == b"b/c\t1\n"
    assert run_gompfs("stats", archive, "phrase/to be", "--top", "1") == b"a\t2\n"
    assert run_gompfs("stats", archive, "files/b/c/wordcount") == b"be\t2\nx/y\t1\n"
    assert json.loads(run_gompfs("stats", archive, "word/not", "--json")) == [{"file": "a", "count": 1}]
    assert json.loads(run_gompfs("stats", archive, "tfidf", "--top", "1", "--json"))[0] == {
        "file": "a",
        "words": [{"word": "to", "score": 1.386}],
    }


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("phrase/" + " ".join("a" * 256),), 2, b"1 to 255 words, not 256"),
        (("files/nowhere/sort",), 1, b"nowhere"),
        (("files/a/inverted_index",), 2, b"unknown statistic"),
        (("word/",), 2, b"word/WORD"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: tuple[str, ...], status: int, message: bytes) -> None:
    write_files(tmp_path / "tree", {"a": b"a b"})
    error = run_gompfs("stats", pack(tmp_path / "a.gomp", tmp_path / "tree"), *arguments, status=status)
    assert message in error
    assert error.count(b"\n") == 1
