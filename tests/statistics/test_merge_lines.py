"""Texts of statistics that cannot be merged or sorted. How others are merged is compared in test_cluster.py."""

from __future__ import annotations

import pytest

from gompfs._native.statistics import LineMerge, merge_lines, sort_lines, sort_lines_by_count


def test_no_lines_and_top() -> None:
    assert sort_lines(b"") == sort_lines_by_count(b"", 0) == merge_lines([b"", b""], LineMerge.ADD_COUNTS, 0) == b""
    assert sort_lines_by_count(b"a\t1\nb\t3\nc\t3\n", 2) == b"b\t3\nc\t3\n"


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
