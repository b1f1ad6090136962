"""Ranked search, compared with BM25 in plain Python, by the command, in a mount and from Python."""

from __future__ import annotations

import json
import math
import os
import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from coreutils_oracle import add, pack, run_gompfs
from oracle.grammar import split_words
from tree_helpers import write_files

from gompfs.archive import Archive
from gompfs.errors import OptionError
from gompfs.statistics.query import StatsQuery
from gompfs.statistics.ranked_search import MAX_WORDS
from gompfs.statistics.tasks import compute

VOCABULARY = [b"whale", b"Whale", b"WHALE", b"sea", b"Ahab", b"ahab", b"ship", b"the", b"of", b"a"]


def contents_of(seed: int) -> dict[bytes, bytes]:
    """Texts of many lengths. The words of a file are from a part of the vocabulary, so that not all files have all."""
    rng = random.Random(seed)
    contents = {}
    for number in range(60):
        words = rng.sample(VOCABULARY, rng.randrange(1, len(VOCABULARY)))
        text = b"".join(rng.choice(words) + rng.choice((b" ", b"\n", b"\t")) for _ in range(1 + number * 11))
        contents[b"dir%d/file %d\t" % (number % 3, number)] = text
    contents |= {b"long": b"x" * 500 + b" " + b"harpoon " * 100, b"binary": b"\0 whale", b"empty": b""}
    return contents | {b"large": b"the ship of a\n" * 90_000 + b"\tthe ship Pequod  \n" + b"Pequod\n" * 20}


def forms(word: bytes) -> set[bytes]:
    return {word, word.capitalize(), word.upper()} if word == word.lower() else {word}


def scores(contents: Mapping[bytes, bytes], words: list[bytes], num_inodes: int) -> dict[bytes, str]:
    """Returns the printed score of each file that has a word."""
    counted = {path: Counter(split_words(text)) for path, text in contents.items() if b"\0" not in text}
    mean = sum(map(len, contents.values())) / num_inodes
    totals: dict[bytes, float] = {}
    for word in words:
        counts = {path: n for path, c in counted.items() if (n := sum(c[form] for form in forms(word)))}
        idf = math.log(1 + (num_inodes - len(counts) + 0.5) / (len(counts) + 0.5))
        for path, n in counts.items():
            length = 0.25 + 0.75 * len(contents[path]) / mean
            totals[path] = totals.get(path, 0.0) + idf * n * 2.2 / (n + 1.2 * length)
    return {path: f"{score:.3f}" for path, score in totals.items()}


def unescaped(field: bytes) -> bytes:
    return field.replace(b"\\t", b"\t")


@pytest.fixture(scope="module", params=["parts", "blocks", "two segments"])
def archive(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[bytes, bytes]]:
    tmp_path, contents = tmp_path_factory.mktemp("ranked"), contents_of(1)
    if request.param != "two segments":
        return pack(tmp_path / "a.gomp", write_files(tmp_path / "tree", contents), kind=request.param), contents
    old = write_files(tmp_path / "old", {path: b"whale " + text for path, text in list(contents.items())[::2]})
    path = pack(tmp_path / "a.gomp", old)
    add(path, write_files(tmp_path / "tree", contents))
    return path, contents


@pytest.mark.parametrize(
    "words", [[b"whale"], [b"WHALE"], [b"ahab", b"ship"], [b"sea", b"Ahab", b"nothing"], [b"the", b"of", b"pequod"]]
)
def test_scores(archive: tuple[Path, dict[bytes, bytes]], words: list[bytes]) -> None:
    path, contents = archive
    with Archive(path) as opened:
        num_inodes, _ = opened.index.totals()
        expected = scores(contents, words, num_inodes)
        for top in (1, 7, 1000):
            text = compute(b"search/" + b" ".join(words), opened, StatsQuery(top=top)).read()
            found = [line.split(b"\t") for line in text.splitlines()]
            printed = [fields[0].decode() for fields in found]
            assert printed == sorted(expected.values(), key=float, reverse=True)[:top]
            for score, name, number, line in found:
                assert expected[unescaped(name)] == score.decode()
                assert contents[unescaped(name)].split(b"\n")[int(number) - 1].strip() == unescaped(line)
                assert weight(unescaped(line), words) > 0
    assert len(found) == len(expected) > 7


def weight(line: bytes, words: list[bytes]) -> int:
    """Returns how many of the words are in a line."""
    return sum(not forms(word).isdisjoint(split_words(line)) for word in words)


def test_lines(archive: tuple[Path, dict[bytes, bytes]]) -> None:
    """The line with most of the words, without white space around it, or what is near the match in a long one."""
    with Archive(archive[0]) as opened:
        best = compute(b"search/ship pequod", opened, StatsQuery(top=1)).read()
        assert best.split(b"\t")[1:] == [b"large", b"90001", b"the ship Pequod\n"]
        (line,) = compute(b"search/harpoon", opened).read().splitlines()
        assert line.split(b"\t")[1:] == [b"long", b"1", b"x" * 59 + b" " + b"harpoon " * 17 + b"harp"]


def test_the_command(archive: tuple[Path, dict[bytes, bytes]]) -> None:
    path, _ = archive
    lines = run_gompfs("search", path, "ship", "Ahab")
    assert lines.count(b"\n") == 10
    assert run_gompfs("search", path, "ship", "Ahab", "--top", "2") == b"".join(lines.splitlines(keepends=True)[:2])
    assert run_gompfs("stats", path, "search/ship Ahab") == lines
    first = json.loads(run_gompfs("search", path, "pequod", "--json"))[0]
    assert {name: first[name] for name in ("file", "line_number", "line")} == {
        "file": "large",
        "line_number": 90001,
        "line": "the ship Pequod",
    }
    assert type(first["score"]) is float
    rows = run_gompfs("stats", path, "search/ship Ahab", "--format", "jsonl")
    assert [json.loads(row)["score"] for row in rows.splitlines()] == [
        float(line.split(b"\t")[0]) for line in lines.splitlines()
    ]
    run_gompfs("search", path, "nowhere", status=1)
    run_gompfs("search", path, " ", status=2)
    run_gompfs("stats", path, "search/ship", "--file", "large", status=2)


def test_limits(archive: tuple[Path, dict[bytes, bytes]]) -> None:
    words = [b"w%d" % number for number in range(MAX_WORDS - 1)]
    with Archive(archive[0]) as opened:
        for number in (MAX_WORDS - 1, MAX_WORDS):
            text = compute(b"search/" + b" ".join([*words, b"whale", b"whale"][:number]), opened).read()
            assert (text != b"") == (number == MAX_WORDS)
        with pytest.raises(OptionError, match="1 to 64 different words, not 65"):
            compute(b"search/" + b" ".join([*words, b"whale", b"sea"]), opened)


@pytest.mark.parametrize("num_forms", [63, 64, 65])
def test_many_words_in_a_part(tmp_path: Path, num_forms: int) -> None:
    """Up to 64 words of a part are counted side by side, more of them as n-grams; in one part and in several."""
    words = [b"w%d" % number for number in range(33)]
    all_forms = [form for word in words for form in (word, word.upper())][:num_forms]
    contents = {b"one": b" ".join(all_forms), b"several": b" ".join(all_forms * 800), b"other": b"word"}
    path = pack(tmp_path / "a.gomp", write_files(tmp_path / "tree", contents), part_size=50_000)
    with Archive(path) as opened:
        expected = scores(contents, words, opened.index.totals()[0])
        lines = compute(b"search/" + b" ".join(words), opened).read().splitlines()
        assert {line.split(b"\t")[1]: line.split(b"\t")[0].decode() for line in lines} == expected
    assert len(expected) == 2


@pytest.mark.parametrize("size", [199, 200, 201])
def test_lines_of_the_longest_size(tmp_path: Path, size: int) -> None:
    """A line of more than 200 bytes is cut."""
    line = b"y" * 100 + b" whale " + b"z" * (size - 107)
    path = pack(tmp_path / "a.gomp", write_files(tmp_path / "tree", {b"a": line + b"\n", b"b": b"sea"}))
    with Archive(path) as opened:
        (found,) = compute(b"search/whale", opened).read().splitlines()
        assert found.split(b"\t")[3] == (line if size <= 200 else line[41:241])


def test_a_mount(archive: tuple[Path, dict[bytes, bytes]], mounted_stats: Callable[[Path], Path]) -> None:
    stats = mounted_stats(archive[0])
    assert (stats / "search/ship Ahab").read_bytes() == run_gompfs("search", archive[0], "ship", "Ahab")
    assert run_gompfs("search", stats.parent, "ship", "Ahab", "--top", "3").count(b"\n") == 3
    assert not (stats / "search/nowhere").exists()
    assert os.listdir(stats / "search") == []
