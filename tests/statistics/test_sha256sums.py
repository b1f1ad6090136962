"""`sha256sums`: the SHA-256 of all files, compared with the program sha256sum."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from coreutils_oracle import add, pack, run_gompfs

import gompfs
from gompfs.archive import Archive
from gompfs.errors import CorruptBlockError, StatsUnavailableError
from gompfs.model import ROOT_INO
from gompfs.statistics import sha256sums
from gompfs.statistics.tasks import compute

NAMES = [
    b"plain",
    b"back\\slash",
    b"new\nline",
    b"carriage\rreturn",
    b"end\r",
    b" blank ",
    b"tab\t",
    b"\xff",
    b"\\r\\n",
]
each_kind = pytest.mark.parametrize("kind", ["parts", "blocks"])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Files of all kinds: odd names, links, holes, equal contents, binary, large and empty ones."""
    root = tmp_path / "tree"
    (root / "dir").mkdir(parents=True)
    for number, name in enumerate(NAMES):
        with open(os.fsencode(root) + b"/dir/" + name, "wb") as file:
            file.write(b"text of the file %d\n" % number * number * 100)
    (root / "dir.txt").write_bytes(b"sorted before what is in dir\n")
    (root / "noise").write_bytes(random.Random(1).randbytes(5 << 20))
    shutil.copy(root / "noise", root / "same")
    os.link(root / "noise", root / "dir/linked")
    (root / "symlink").symlink_to("noise")
    with open(root / "sparse", "wb") as file:
        file.write(b"begin")
        file.seek(9 << 20)
        file.write(b"end")
        file.truncate(10 << 20)
    return root


def of_coreutils(root: Path) -> bytes:
    """Returns the lines of sha256sum, sorted by path."""
    paths = sorted(
        os.path.relpath(os.path.join(place, name), os.fsencode(root))
        for place, _, names in os.walk(os.fsencode(root))
        for name in names
        if not os.path.islink(os.path.join(place, name))
    )
    return subprocess.run([b"sha256sum", *paths], cwd=root, check=True, capture_output=True).stdout


@each_kind
def test_lines_are_those_of_sha256sum(tmp_path: Path, tree: Path, kind: str) -> None:
    archive = pack(tmp_path / "a.gomp", tree, kind=kind)
    assert run_gompfs("stats", archive, "sha256sums") == of_coreutils(tree)
    (tree / "dir.txt").write_bytes(b"another generation")
    (tree / "late").write_bytes((tree / "noise").read_bytes())
    add(archive, tree, kind=kind)
    with Archive(archive) as opened:
        report = compute(b"sha256sums", opened)
        assert report.read() == of_coreutils(tree)
        assert report.size == len(of_coreutils(tree))
    lines = of_coreutils(tree).splitlines(keepends=True)
    assert run_gompfs("stats", archive, "sha256sums", "--top", "3") == b"".join(lines[:3])
    assert (
        run_gompfs("stats", archive, "sha256sums", "--file", "symlink").split()[0]
        == run_gompfs("stats", archive, "sha256sums", "--file", "dir/linked").split()[0]
    )


def test_json_and_python_have_plain_names(tmp_path: Path, tree: Path) -> None:
    archive = pack(tmp_path / "a.gomp", tree)
    expected = {
        os.fsdecode(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in tree.rglob("*")
        if path.is_file() and not path.is_symlink()
    }
    with gompfs.open(archive) as files:
        assert {row["file"]: row["sha256"] for row in files.stats("sha256sums")} == expected
    rows = json.loads(run_gompfs("stats", "--json", archive, "sha256sums"))
    assert {row["file"]: row["sha256"] for row in rows} == expected


def test_sha256sum_checks_a_mount(mounted_stats: Callable[[Path], Path], tmp_path: Path, tree: Path) -> None:
    root = mounted_stats(pack(tmp_path / "a.gomp", tree)).parent
    done = subprocess.run(["sha256sum", "-c", "stats/sha256sums"], cwd=root, check=True, capture_output=True)
    assert done.stderr == b""
    assert done.stdout.count(b": OK\n") == len(of_coreutils(tree).splitlines())
    assert run_gompfs("stats", root, "sha256sums") == of_coreutils(tree)
    assert run_gompfs("stats", root / "sparse", "sha256sums") == run_gompfs(
        "stats", tmp_path / "a.gomp", "sha256sums", "--file", "sparse"
    )


def test_a_damaged_file_is_an_error_with_its_name(tmp_path: Path, tree: Path) -> None:
    archive = pack(tmp_path / "a.gomp", tree, kind="blocks")
    with Archive(archive) as opened:
        ino = opened.resolve("noise").ino
        number = opened.extents(ino)[0].stream_offset // opened.block_size + 70  # after the first 4 MiB
        offset = opened.segments[0].blocks.archive_offsets[number]
    content = bytearray(archive.read_bytes())
    content[offset + 100] ^= 1
    archive.write_bytes(content)
    with Archive(archive) as opened, pytest.raises(CorruptBlockError) as raised:
        compute(b"sha256sums", opened).read()
    assert raised.value.block == number
    assert raised.value.path in ("noise", "same", "dir/linked")


def test_files_of_tebibytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tree").mkdir()
    with open(tmp_path / "tree/hole", "wb") as file:
        file.truncate(1 << 20)
    archive = pack(tmp_path / "a.gomp", tmp_path / "tree")
    limit = 1 << 20
    monkeypatch.setattr(sha256sums, "_MOST_OF_BYTE", 0)
    for most, is_refused in ((limit - 1, True), (limit, False), (limit + 1, False)):
        monkeypatch.setattr(sha256sums, "_MOST_BYTES", most)
        with Archive(archive) as opened:
            assert opened.inode(ROOT_INO)
            report = compute(b"sha256sums", opened)
            if is_refused:
                with pytest.raises(StatsUnavailableError, match="too large to hash"):
                    report.read()
            else:
                assert report.read().startswith(hashlib.sha256(bytes(1 << 20)).hexdigest().encode())
