"""Statistics of archives whose later generations have files with contents of earlier ones."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from coreutils_oracle import add, count_with_coreutils, files_under, pack, run_gompfs
from tree_helpers import write_files

from gompfs.archive import Archive
from gompfs.verify import verify_archive

NAMES = (
    *("wordcount", "sort", "inverted_index", "term_vector", "sequence_count", "ranked_inverted_index", "tfidf"),
    *("word/common", "phrase/common words", "binary-files"),
)


def text(seed: str, size: int) -> bytes:
    rng = random.Random(seed)
    return " ".join(rng.choices(["common", "words", "of", "all", "files", seed, f"{seed}-2"], k=size)).encode() + b"\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Texts of one and of several parts, equal ones, binary files, empty ones."""
    root = tmp_path / "tree/first"
    contents = {f"{number}": text(f"w{number}", 40 + 300 * number) for number in range(5)}
    contents |= {"long": text("long", 3000), "same": text("w1", 340), "empty": b"", "binary": b"\0" + text("b", 90)}
    write_files(root, contents)
    return tmp_path / "tree"


@pytest.mark.parametrize("first", ["parts", "blocks"])
@pytest.mark.parametrize("then", ["parts", "blocks"])
def test_statistics_are_those_of_the_tree(tree: Path, tmp_path: Path, first: str, then: str) -> None:
    archive = pack(tmp_path / "a.gomp", tree, kind=first)
    # Other names of all contents, then replaced and touched files, then what was replaced under a third name.
    shutil.copytree(tree / "first", tree / "second")
    add(archive, tree, kind=then)
    replaced = (tree / "first/long").read_bytes()
    (tree / "first/long").write_bytes(text("new", 500))
    (tree / "first/3").unlink()
    (tree / "first/3").write_bytes(b"\0 binary now" * 50)
    (tree / "second/binary").write_bytes(text("text now", 60))
    os.utime(tree / "second/2", ns=(1, 1))
    add(archive, tree, kind=then)
    (tree / "second/long").write_bytes(text("newer", 700))
    add(archive, tree, kind=then)
    write_files(tree, {"third/long": replaced, "third/binary": b"\0" + text("b", 90)})
    add(archive, tree, kind=then)
    fresh = pack(tmp_path / "fresh.gomp", tree, kind=then)
    for name in NAMES:
        assert run_gompfs("stats", archive, name) == run_gompfs("stats", fresh, name), name
    by_count, _ = count_with_coreutils(files_under(tree))
    assert run_gompfs("stats", archive, "wordcount") == by_count
    with Archive(archive, verify=True) as opened:
        assert verify_archive(opened).is_sound
        streams = [sum(segment.parts.sizes) for segment in opened.segments]
    # Contents of files that are no longer in the index are stored again.
    assert (streams[1], *streams[3:]) == (0, len(text("newer", 700)), len(replaced))
