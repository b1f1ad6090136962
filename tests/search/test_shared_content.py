"""Content that several files share is searched once, and what was found is printed for each of them, as by ripgrep."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import pytest
from ripgrep import is_comparable, ripgrep
from tree_helpers import pack

from gompfs.cli.application import run
from gompfs.codec import Codec

Capture = pytest.CaptureFixture[bytes]

SEARCHES = [
    ["foo"],
    ["-n", "foo"],
    ["-c", "foo"],
    ["--count-matches", "o"],
    ["-l", "foo"],
    ["--files-without-match", "foo"],
    ["-v", "-n", "-m2", "foo"],
    ["-n", "-C2", "foo"],
    ["-n", "-B1", "-A3", "--heading", "foo"],
    ["-o", "--column", "fo+"],
    ["-U", "-n", r"foo\nbar"],
    ["-U", "-o", r"foo\nbar"],
    ["--vimgrep", "foo"],
    ["-n", "-r", "<$0>", "fo+"],
    ["-M20", "foo"],
    ["-a", "-n", "foo"],
    ["--color=always", "-n", "foo"],
    ["-e", ""],
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with its archive: hard links and equal files, small and large, text and binary, in several directories."""
    root = tmp_path_factory.mktemp("shared")
    generator = random.Random(5)

    def lines(number: int) -> bytes:
        words = [b"foo", b"bar", b"a longer line with foo in it", b"", b"x y z"]
        return b"".join(generator.choice(words) + b"\n" for _ in range(number))

    rare = b"some line\n" * 4000
    contents = {
        "few": rare + b"foo\nbar\n" + rare,
        "none": rare,
        "many": lines(10_000),
        "binary": rare + b"foo\n\0foo\n" + rare,
        "mark": b"\xff\xfe" + ("some line\n" * 3000 + "foo\nbar\n").encode("utf-16-le"),
        "large": rare * 430 + b"foo\nbar\n" + rare,
    }
    for directory in ("a", "b", "c"):
        (root / "tree" / directory).mkdir(parents=True)
        for name, content in contents.items():
            (root / "tree" / directory / name).write_bytes(content)
    for name in contents:
        os.link(root / "tree" / "a" / name, root / "tree" / f"link-{name}")
    pack(root / "tree.gomp", root / "tree", codec=Codec.GOMPRESSO_TADOC)
    return root


@pytest.mark.parametrize("search", SEARCHES, ids=" ".join)
def test_the_output_is_that_of_ripgrep(capfdbinary: Capture, shared: Path, search: list[str]) -> None:
    if not is_comparable(search):
        pytest.skip("this version of ripgrep prints something else")
    status = run(["grep", "--sort=path", *search, str(shared / "tree.gomp")])
    assert (status, capfdbinary.readouterr().out) == ripgrep(*search, cwd=shared / "tree")


@pytest.mark.parametrize("options", [[], ["-r", "<$0>"], ["-v", "-C1", "-m2"], ["-U"]], ids=" ".join)
def test_json_of_equal_files_is_equal(capfdbinary: Capture, shared: Path, options: list[str]) -> None:
    assert run(["grep", "--sort=path", "--json", *options, "fo+", str(shared / "tree.gomp")]) == 0
    files: dict[str, list[object]] = {}
    for line in capfdbinary.readouterr().out.splitlines()[:-1]:
        data = json.loads(line)["data"]
        messages = files.setdefault(data.pop("path")["text"], [])
        for stats in filter(None, [data.get("stats")]):
            del stats["elapsed"], stats["bytes_printed"]  # the path is a part of it
        messages.append(data)
    assert len(files) > 4
    for path, messages in files.items():
        if path.startswith(("b/", "c/")):
            assert messages == files[f"a/{path[2:]}"]


def test_files_that_are_named(capfdbinary: Capture, shared: Path) -> None:
    """A NUL means another thing in a file that is named than in one that was found in a directory."""
    for paths in (["a", "a/binary"], ["a/binary", "b"], ["link-binary", "a/binary"]):
        status = run(["grep", "--sort=path", "-c", "foo", str(shared / "tree.gomp"), *paths])
        assert (status, capfdbinary.readouterr().out) == ripgrep("-c", "foo", *paths, cwd=shared / "tree")


@pytest.mark.parametrize("size", [4 << 20, 17 << 20])
def test_many_files_with_the_same_content(capfdbinary: Capture, tmp_path: Path, size: int) -> None:
    """An archive of 160 kB with 4,000 files that share 4 MB took more than 40 s."""
    (tmp_path / "tree").mkdir()
    first = tmp_path / "tree" / "0"
    first.write_bytes((b"acccccccccccccccccccccccccc\n" * (size // 28)) + b"ab\n")
    for number in range(1, 4000):
        os.link(first, tmp_path / "tree" / str(number))
    pack(tmp_path / "tree.gomp", tmp_path / "tree", codec=Codec.GOMPRESSO_TADOC)
    started = time.process_time()
    assert run(["grep", "-c", "a.*b", str(tmp_path / "tree.gomp")]) == 0
    assert time.process_time() - started < 10
    assert sorted(capfdbinary.readouterr().out.splitlines()) == sorted(b"%d:1" % number for number in range(4000))
