"""Random pages of a tree, read by tools/bench through mounts and out of tars."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tool_modules import tool_module

cold_reads = tool_module("bench.cold_reads")
servers = tool_module("bench.servers")
WrongContentError = tool_module("bench.decode").WrongContentError
MEBIBYTE = 1 << 20
SMALL = 200_000


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "-a").mkdir(parents=True)
    (root / "-a/b c").write_bytes(b"word " * (SMALL // 5))
    (root / "empty").touch()
    (root / "large").write_bytes(os.urandom(10 * MEBIBYTE))
    (root / "linked").write_bytes(b"x" * MEBIBYTE)
    (root / "second name").hardlink_to(root / "linked")
    (root / "symbolic").symlink_to("large")
    return root


def tar_of(tree: Path) -> Path:
    archive = tree.parent / "tree.tar"
    subprocess.run(["tar", "-C", tree, "-cf", archive, "."], check=True)
    return archive


def test_pages_are_spread(tree: Path) -> None:
    sampler = cold_reads.PageSampler(tree)
    assert sampler.size == 10 * MEBIBYTE + SMALL
    assert sampler.num_pages == 5
    assert sampler.choose(1) == sampler.choose(1) != sampler.choose(2)
    starts = {"large": 0, "-a/b c": 10 * MEBIBYTE}
    stretch = sampler.size / 5
    seen = set()
    for seed in range(200):
        pages = sampler.choose(seed)
        seen |= {page.path for page in pages}
        for page in pages:
            assert page.offset % cold_reads.PAGE_SIZE == 0
            with (tree / page.path).open("rb") as opened:
                opened.seek(page.offset)
                assert opened.read(cold_reads.PAGE_SIZE) == page.content != b""
        positions = sorted(starts[page.path] + page.offset for page in pages)
        for number, position in enumerate(positions):
            assert number * stretch - cold_reads.PAGE_SIZE < position < (number + 1) * stretch
    assert seen == set(starts)


def test_small_and_large_trees(tree: Path) -> None:
    (tree / "large").unlink()
    assert cold_reads.PageSampler(tree).num_pages == 2
    with (tree / "large").open("wb") as opened:
        opened.truncate(1 << 30)
    assert cold_reads.PageSampler(tree).num_pages == 101


def test_reads_of_a_directory(tree: Path) -> None:
    reader = cold_reads.MountReader(servers.Server("disk"), tree, tree.parent / "mount", cold=False)
    pages = cold_reads.PageSampler(tree).choose(0)
    seconds = reader.read_pages(pages)
    assert len(seconds) == 5
    assert min(seconds) > 0
    assert reader.read_all() > 0
    (tree / pages[3].path).write_bytes(b"other")
    with pytest.raises(WrongContentError, match=f"differs at offset {pages[3].offset}"):
        reader.read_pages(pages[3:])


def test_reads_of_a_tar(tree: Path) -> None:
    archive = tar_of(tree)
    # More input after the end: an extraction must not wait for it.
    reader = cold_reads.TarReader(("sh", "-c", 'cat "$0"; exec cat /dev/zero', archive), cold=False)
    sampler = cold_reads.PageSampler(tree)
    pages = next(pages for pages in map(sampler.choose, range(10_000)) if pages[1].path == "-a/b c")
    seconds = reader.read_pages(pages)
    assert len(seconds) == cold_reads.MAX_EXTRACTIONS
    assert 0 < max(seconds) < 60
    assert cold_reads.TarReader(("cat", archive), cold=False).read_all() > 0
    archive.write_bytes(archive.read_bytes()[:512])
    with pytest.raises(WrongContentError):
        cold_reads.TarReader(("cat", archive), cold=False).read_pages(pages)
    with pytest.raises(subprocess.CalledProcessError):
        cold_reads.TarReader(("cat", tree / "missing"), cold=False).read_all()
