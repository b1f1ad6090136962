"""A search that skips files by the words in the heads of their parts finds the same as one that reads all files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from searched_tree import PATTERNS, make_tree
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.errors import OptionError
from gompfs.model import ROOT_INO
from gompfs.search.query import SearchQuery
from gompfs.search.search import ArchiveSearch, SearchTotals

WORDS = ["foo", "food", "bar", "b_a_r", "suspend", "Suspend", "\u017fuspend", "x1", "1024", "été", "кот", "don't"]
SEPARATORS = [" ", "  ", "\n", "(", ")\n", ", ", "-", "\t", "'", "\0"]

texts = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SEPARATORS)), max_size=60).map(
    lambda tokens: "".join(word + separator for word, separator in tokens)
)
tokens = [*WORDS, *(separator for separator in SEPARATORS if "\n" not in separator), "oo", "spen", "ar", "102"]
literals = st.lists(st.sampled_from(tokens), min_size=1, max_size=4).map("".join)


def found(archive: Archive, query: SearchQuery) -> tuple[bytes, SearchTotals]:
    search = ArchiveSearch(archive, query, [(b"", ROOT_INO)])
    return b"".join(search), search.totals


def check(archive: Archive, **options: object) -> SearchTotals:
    """Compares both searches. Returns the totals of the one that skips files."""
    pruned, totals = found(archive, SearchQuery(read_all=False, **options))  # type: ignore[arg-type]
    whole, _ = found(archive, SearchQuery(read_all=True, **options))  # type: ignore[arg-type]
    assert pruned == whole
    return totals


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("searched")
    make_tree(root / "tree")
    (root / "tree" / "rare").write_text("a rare_word, here\n")
    target = root / "tree.gomp"
    pack(target, root / "tree", codec=Codec.GOMPRESSO_TADOC, part_size=5000)
    return target


def is_valid(pattern: str) -> bool:
    try:
        SearchQuery((pattern.encode(),)).matcher()
    except OptionError:
        return False
    return True


@pytest.mark.parametrize("pattern", list(filter(is_valid, PATTERNS)))
def test_patterns(archive: Path, pattern: str) -> None:
    with Archive(archive, engine=select_engine("cpu")) as opened:
        check(opened, patterns=(pattern.encode(),), line_number=True)


def test_files_are_skipped(archive: Path) -> None:
    with Archive(archive, engine=select_engine("cpu")) as opened:
        totals = check(opened, patterns=(b"no_such_word",))
        assert (totals.files, totals.skipped_files) != (0, 0)
        assert totals.skipped_files > totals.files
        assert check(opened, patterns=(b"no_such_word",), invert_match=True).skipped_files == 0
        assert check(opened, patterns=(b"no_such_word",), files_without_match=True).skipped_files == 0


@pytest.mark.timeout(600)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    files=st.lists(texts, min_size=1, max_size=5),
    patterns=st.lists(literals, min_size=1, max_size=6),
    words=st.sampled_from(["identifiers", "letters", "whitespace"]),
    part_size=st.sampled_from([None, 1, 40, 500]),
)
def test_literals(files: list[str], patterns: list[str], words: str, part_size: int | None) -> None:
    """Literals that begin, end or cross words, with parts that end inside of files."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "tree"
        root.mkdir()
        for number, text in enumerate(files):
            (root / f"{number}").write_text(text)
        (root / "utf-16").write_bytes(b"\xff\xfe" + "".join(files).encode("utf-16-le"))
        target = Path(directory) / "tree.gomp"
        pack(target, root, codec=Codec.GOMPRESSO_TADOC, words=words, part_size=part_size)
        with Archive(target, engine=select_engine("cpu")) as archive:
            for pattern in patterns:
                check(archive, patterns=(pattern.encode(),), fixed_strings=True, text=True)
                check(archive, patterns=(pattern.encode(),), fixed_strings=True, ignore_case=True)
