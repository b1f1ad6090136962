"""Texts of statistics of several archives, merged line by line, beside the same in Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from itertools import chain

import pytest

from gompfs._native.statistics import LineMerge, merge_lines, sort_lines, sort_lines_by_count
from gompfs.statistics.paths import escape_path

Fields = list[bytes]


def text_of(lines: Iterable[tuple[bytes, Fields]]) -> bytes:
    return b"".join(b"\t".join([key, *fields]) + b"\n" for key, fields in lines)


def random_terms(rng: random.Random, make: Callable[[int], Fields]) -> list[dict[bytes, Fields]]:
    terms = [bytes(rng.choices(b"a\x01 \\\xff", k=rng.randint(1, 4))) for _ in range(60)]
    return [{term: make(archive) for term in rng.sample(terms, rng.randint(0, 40))} for archive in range(5)]


def merged(parts: list[dict[bytes, Fields]], how: LineMerge, top: int = 0) -> bytes:
    return merge_lines([text_of(sorted(part.items())) for part in parts], how, top)


def joined(parts: list[dict[bytes, Fields]], join: Callable[[list[Fields]], Fields]) -> bytes:
    keys = sorted(set().union(*parts))
    return text_of((key, join([part[key] for part in parts if key in part])) for key in keys)


def test_counts_are_added() -> None:
    rng = random.Random(1)
    parts = random_terms(rng, lambda _: [b"%d" % rng.choice((1, 7, 1 << 62))])
    expected = joined(parts, lambda fields: [b"%d" % sum(int(count) for (count,) in fields)])
    assert merged(parts, LineMerge.ADD_COUNTS) == expected
    halves = [merged(parts[:2], LineMerge.ADD_COUNTS), merged(parts[2:], LineMerge.ADD_COUNTS)]
    assert merge_lines(halves, LineMerge.ADD_COUNTS, 0) == expected


def random_paths(rng: random.Random, archive: int) -> list[bytes]:
    return [b"%s%d" % (bytes(rng.choices(b"a\t\n\\\r", k=3)), archive) for _ in range(rng.randint(1, 5))]


def test_paths_are_sorted_as_they_are_without_escapes() -> None:
    rng = random.Random(2)
    raw = random_terms(rng, lambda archive: sorted(random_paths(rng, archive)))
    parts = [{key: list(map(escape_path, paths)) for key, paths in part.items()} for part in raw]
    expected = joined(raw, lambda lists: [escape_path(path) for path in sorted(chain(*lists))])
    assert merged(parts, LineMerge.JOIN_PATHS) == expected


@pytest.mark.parametrize("top", [0, 2])
def test_ranked_paths(top: int) -> None:
    rng = random.Random(3)

    def ranked(paths: Iterable[bytes]) -> list[bytes]:
        items = [(int(path[-3:]), path[:-3]) for path in paths]
        in_order = sorted(items, key=lambda item: (-item[0], item[1]))
        return [b"%d %s" % (count, escape_path(path)) for count, path in in_order[: top or None]]

    def some(archive: int) -> list[bytes]:
        return [b"%s%03d" % (path, rng.randint(1, 3)) for path in random_paths(rng, archive)]

    raw = random_terms(rng, some)
    parts = [{key: ranked(paths) for key, paths in part.items()} for part in raw]
    assert merged(parts, LineMerge.JOIN_RANKED_PATHS, top) == joined(raw, lambda lists: ranked(chain(*lists)))


def test_files_are_sorted_by_path() -> None:
    rng = random.Random(4)
    paths = {b"%s%d" % (random_paths(rng, 0)[0], number) for number in range(50)}
    texts = [
        text_of((escape_path(path), [b"1 word"]) for path in sorted(paths) if path[-1] % 3 == archive)
        for archive in range(3)
    ]
    expected = text_of((escape_path(path), [b"1 word"]) for path in sorted(paths))
    assert merge_lines(texts, LineMerge.JOIN_FILES, 0) == expected


def test_lines_are_sorted_by_term_and_by_count() -> None:
    rng = random.Random(5)
    counts = {bytes(rng.choices(b"a\x01 \\\xff", k=5)): rng.randint(1, 9) for _ in range(300)}
    by_term = text_of((term, [b"%d" % count]) for term, count in sorted(counts.items()))
    in_order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    by_count = text_of((term, [b"%d" % count]) for term, count in in_order)
    assert sort_lines(by_count) == by_term
    assert sort_lines_by_count(by_term, 0) == by_count
    assert sort_lines_by_count(by_term, 7) == b"".join(by_count.splitlines(keepends=True)[:7])
    assert sort_lines(b"") == sort_lines_by_count(b"", 0) == merge_lines([b"", b""], LineMerge.ADD_COUNTS, 0) == b""


@pytest.mark.parametrize(
    ("texts", "how"),
    [
        ([b"a\t1"], LineMerge.ADD_COUNTS),
        ([b"b\t1\na\t1\n"], LineMerge.ADD_COUNTS),
        ([b"a\t1\na\t1\n"], LineMerge.ADD_COUNTS),
        ([b"a\t1\n", b"a\tx\n"], LineMerge.ADD_COUNTS),
        ([b"a\n", b"a\t1\n"], LineMerge.ADD_COUNTS),
        ([b"a\t-1\n", b"a\t1\n"], LineMerge.ADD_COUNTS),
        ([b"a\t%d\n" % (2**64 - 1), b"a\t1\n"], LineMerge.ADD_COUNTS),
        ([b"a\t1 p\n", b"a\tp\n"], LineMerge.JOIN_RANKED_PATHS),
        ([b"p\tx\n", b"p\tx\n"], LineMerge.JOIN_FILES),
    ],
)
def test_other_texts_are_refused(texts: list[bytes], how: LineMerge) -> None:
    with pytest.raises(ValueError, match=r"line|counts"):
        merge_lines(texts, how, 0)
    with pytest.raises(ValueError, match="a line without a count"):
        sort_lines_by_count(b"a\n", 0)
