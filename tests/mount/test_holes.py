"""Holes through a mount: st_blocks and SEEK_DATA/SEEK_HOLE, compared with the packed tree on a local file system."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forged_index import forge_index
from tree_helpers import pack

import gompfs
from gompfs.archive import Archive

KIB, GIB = 1 << 10, 1 << 30
# File name: its size, and the ranges (offset, size) where data is written.
FILES: dict[str, tuple[int, list[tuple[int, int]]]] = {
    "only-a-hole": (10 * GIB, []),
    "begin": (2 * GIB, [(2 * GIB - 100 * KIB, 100 * KIB)]),
    "middle": (300 * KIB + 5, [(0, 64 * KIB), (256 * KIB, 44 * KIB + 5)]),
    "end": (GIB + 1, [(0, 40 * KIB + 77)]),
    "around": (GIB, [(GIB // 2, 1)]),
    "many": (64 * 100 * KIB, [(number * 100 * KIB, 12 * KIB) for number in range(1, 64)]),
    "dense": (100 * KIB + 1, [(0, 100 * KIB + 1)]),
    "empty": (0, []),
    "tiny": (3, [(0, 3)]),
}
Ranges = list[tuple[int, int]]


def seek(descriptor: int, file_offset: int, whence: int) -> int | None:
    """Returns the result of lseek, or None for ENXIO (no data or hole from this offset on)."""
    try:
        return os.lseek(descriptor, file_offset, whence)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return None


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("holes") / "tree"
    (root / "below").mkdir(parents=True)
    for name, (size, ranges) in FILES.items():
        with open(root / name, "wb") as file:
            file.truncate(size)
            for start, count in ranges:
                file.seek(start)
                file.write(os.urandom(count))
    os.link(root / "only-a-hole", root / "below/again")
    with open(root / "only-a-hole", "rb") as file:
        if seek(file.fileno(), 0, os.SEEK_DATA) is not None:
            pytest.skip("this file system knows no holes")
    return root


@pytest.fixture(scope="module")
def archive(tree: Path) -> Path:
    pack(tree.parent / "holes.gomp", tree, block_size=16 << 10)
    return tree.parent / "holes.gomp"


def data_ranges(path: Path) -> Ranges:
    """Returns the ranges (start, end) of a file that hold data according to SEEK_DATA and SEEK_HOLE."""
    ranges: Ranges = []
    with open(path, "rb") as file:
        size, end = os.fstat(file.fileno()).st_size, 0
        while (start := seek(file.fileno(), end, os.SEEK_DATA)) is not None:
            end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            assert start < end <= size
            ranges.append((start, end))
    return ranges


def check_ranges(found: Ranges, name: str, source: Path) -> None:
    """Checks that everything written is data, and that no data is reported where the source has a hole."""
    outside = data_ranges(source)
    for start, count in FILES[name][1]:
        assert any(first <= start and start + count <= end for first, end in found), name
    for start, end in found:
        assert any(first <= start and end <= last for first, last in outside), name


def blocks_of(name: str, source: Path) -> tuple[int, int]:
    """Returns the minimum and maximum number of 512-byte blocks that the file may report."""
    stored = sum(count for _, count in FILES[name][1])
    return -(-stored // 512), -(-sum(end - start for start, end in data_ranges(source)) // 512)


def output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_blocks_count_stored_data_only(mounted: Path, tree: Path) -> None:
    """A listing, stat by name and fstat report the same blocks, and none of them counts holes."""
    listed = dict(line.split() for line in output("find", mounted, "-type", "f", "-printf", "%P %b\n").splitlines())
    for name in FILES:
        least, most = blocks_of(name, tree / name)
        assert least <= int(listed[name]) <= most, name
        with open(mounted / name, "rb") as file:
            assert os.stat(mounted / name).st_blocks == os.fstat(file.fileno()).st_blocks == int(listed[name])
    assert listed["only-a-hole"] == listed["below/again"] == "0"
    assert os.stat(mounted / "only-a-hole").st_size == 10 * GIB


def test_blocks_of_names_that_were_not_listed(mount: Callable[..., Any], archive: Path, tree: Path) -> None:
    mounted = mount(archive)
    for name in FILES:
        least, most = blocks_of(name, tree / name)
        assert least <= os.stat(mounted / name).st_blocks <= most


@pytest.mark.parametrize("option", ["follow", "uid=12", "subdir=below", "stats=visible", "umask=077"])
def test_blocks_in_changed_directories_and_inodes(
    option: str, mount: Callable[..., Any], archive: Path, tree: Path
) -> None:
    """Directories that the mount assembles, and inode numbers that it changes, have the right blocks."""
    mounted = mount(archive, option)
    wanted = ["again"] if option == "subdir=below" else [*FILES, "below/again"]
    listed = dict(line.split() for line in output("find", mounted.path, "-printf", "%P %b\n").splitlines()[1:])
    for name in wanted:
        least, most = blocks_of(name, tree / name) if name in FILES else (0, 0)
        assert least <= int(listed[name]) <= most
        assert os.stat(mounted / name).st_blocks == int(listed[name])
        found = data_ranges(mounted / name)
        check_ranges(found, name if name in FILES else "only-a-hole", tree / (name if name in FILES else "only-a-hole"))


def test_several_archives(archive: Path, tree: Path, tmp_path: Path, gompfs_command) -> None:
    """Checks files of a directory merged from several archives, and of a directory that only one archive has."""
    (tmp_path / "more/below").mkdir(parents=True)
    with open(tmp_path / "more/below/more", "wb") as file:
        file.truncate(3 * GIB)
    pack(tmp_path / "more.gomp", tmp_path / "more")
    place = tmp_path / "place"
    place.mkdir()
    done = gompfs_command("mount", "--union", archive, tmp_path / "more.gomp", place)
    assert (done.returncode, done.stderr) == (0, "")
    try:
        listed = dict(line.split() for line in output("find", place, "-printf", "%P %b\n").splitlines()[1:])
        assert listed["below/again"] == listed["below/more"] == listed["only-a-hole"] == "0"
        for name in FILES:
            least, most = blocks_of(name, tree / name)
            assert least <= int(listed[name]) <= most
            check_ranges(data_ranges(place / name), name, tree / name)
        assert data_ranges(place / "below/more") == []
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_du_counts_no_holes(mounted: Path, tree: Path) -> None:
    """du reported 14 GB for a tree that needs less than 1 MB."""
    stored = sum(count for _, ranges in FILES.values() for _, count in ranges)
    taken = int(output("du", "-s", "--block-size=1", mounted).split()[0])
    assert stored <= taken <= int(output("du", "-s", "--block-size=1", tree).split()[0]) + stored
    apparent = int(output("du", "-s", "--block-size=1", "--apparent-size", mounted).split()[0])
    assert apparent >= 14 * GIB


@pytest.mark.parametrize("name", FILES)
def test_data_ranges_agree_with_the_source(name: str, mounted: Path, tree: Path) -> None:
    check_ranges(data_ranges(mounted / name), name, tree / name)


@pytest.mark.parametrize("name", FILES)
def test_seeks_from_every_offset_agree_with_the_data(name: str, mounted: Path, tree: Path) -> None:
    """Seeks from inside data and holes, at their borders and at the end of the file. Holes read as zeros."""
    size, ranges = FILES[name]
    borders = {0, size, *(start for start, _ in ranges), *(start + count for start, count in ranges)}
    found = data_ranges(mounted / name)
    borders |= {border for each in (*found, *data_ranges(tree / name)) for border in each}
    with open(mounted / name, "rb") as file:
        for place in sorted({max(border + by, 0) for border in borders for by in (-4096, -1, 0, 1)}):
            expected: dict[int, int | None] = {os.SEEK_DATA: None, os.SEEK_HOLE: None}
            if place < size:
                expected[os.SEEK_DATA] = next((max(start, place) for start, end in found if end > place), None)
                expected[os.SEEK_HOLE] = next((end for start, end in found if start <= place < end), place)
            for whence, answer in expected.items():
                assert seek(file.fileno(), place, whence) == answer
            if place < size and expected[os.SEEK_HOLE] == place:
                assert not any(os.pread(file.fileno(), min(100, (expected[os.SEEK_DATA] or size) - place), place))
        assert os.lseek(file.fileno(), 0, os.SEEK_END) == size


@pytest.mark.parametrize("way", ["auto", "always"])
def test_cp_keeps_holes(way: str, mounted: Path, tree: Path, tmp_path: Path) -> None:
    """cp --sparse=auto wrote all zeros of a file, since the mount reported no holes."""
    for name in FILES if way == "auto" else ("begin", "middle", "end", "many"):
        output("cp", f"--sparse={way}", mounted / name, tmp_path / name)
        status, original = os.stat(tmp_path / name), os.stat(tree / name)
        assert (status.st_size, status.st_blocks) == (original.st_size, original.st_blocks)
        for start, count in FILES[name][1]:
            with open(tmp_path / name, "rb") as copy, open(tree / name, "rb") as file:
                assert os.pread(copy.fileno(), count, start) == os.pread(file.fileno(), count, start)


def test_tar_keeps_holes(mounted: Path, tree: Path, tmp_path: Path) -> None:
    output("tar", "-C", mounted, "-cSf", tmp_path / "a.tar", *FILES)
    assert os.path.getsize(tmp_path / "a.tar") < 4 << 20
    with tarfile.open(tmp_path / "a.tar") as tar:
        assert {member.name: member.size for member in tar} == {name: size for name, (size, _) in FILES.items()}
    output("tar", "-C", tmp_path, "-xSf", tmp_path / "a.tar")
    for name in FILES:
        check_ranges(data_ranges(tmp_path / name), name, tree / name)
        assert os.stat(tmp_path / name).st_size == FILES[name][0]


def test_a_mount_is_packed_with_its_holes(mounted: Path, archive: Path, tmp_path: Path) -> None:
    pack(tmp_path / "again.gomp", mounted, block_size=16 << 10)
    with Archive(archive) as first, Archive(tmp_path / "again.gomp") as second:
        for name in FILES:
            one, other = (each.extents(each.resolve(name).ino) for each in (first, second))
            assert [(extent.file_offset, extent.size) for extent in one] == [
                (extent.file_offset, extent.size) for extent in other
            ]


def test_statistics_have_no_holes(mount: Callable[..., Any], archive: Path) -> None:
    """Virtual files are data from the beginning to the end."""
    path = mount(archive) / "stats/info"
    size = os.stat(path).st_size
    with open(path, "rb") as file:
        assert os.lseek(file.fileno(), 1, os.SEEK_DATA) == 1
        assert os.lseek(file.fileno(), 0, os.SEEK_HOLE) == size
        with pytest.raises(OSError, match="No such device"):
            os.lseek(file.fileno(), size, os.SEEK_DATA)


def test_blocks_in_the_python_interface(archive: Path, tree: Path) -> None:
    with gompfs.open(archive) as files:
        for name in FILES:
            least, most = blocks_of(name, tree / name)
            assert least <= files.stat(name).st_blocks <= most


def test_the_stored_size_of_one_file_is_computed_alone(archive: Path, tree: Path) -> None:
    """The stored size of one file is computed alone.

    Computing those of all files took most of a mount's first listing.
    """
    with Archive(archive) as opened:
        for name in FILES:
            inode = opened.resolve(name)
            early = opened.stored_size(inode)
            assert not opened.knows_stored_sizes
            with Archive(archive) as other:
                assert early == other.stored_sizes().of(inode.ino, inode.size)
                assert other.knows_stored_sizes


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE extent SET size = 9223372036854775807",
        "UPDATE extent SET file_offset = 9223372036854775807 - file_offset",
        "UPDATE inode SET size = 9223372036854775807 WHERE mode & 61440 = 32768",
        "INSERT INTO extent SELECT ino, file_offset + 1, 0, 9223372036854775807 FROM extent",
        "DELETE FROM extent",
    ],
)
def test_forged_extent_sizes(statement: str, archive: Path, tmp_path: Path, mount: Callable[..., Any]) -> None:
    """The sum of forged sizes exceeds 64 bits.

    The mount does not crash, and never reports more blocks than the file size needs.
    """
    forged = tmp_path / "forged.gomp"
    forged.write_bytes(archive.read_bytes())
    forge_index(forged, statement)
    mounted = mount(forged)
    listed = output("find", mounted.path, "-type", "f", "-printf", "%s %b\n").splitlines()
    assert len(listed) == len(FILES) + 1
    for line in listed:
        size, blocks = map(int, line.split())
        assert 0 <= blocks <= -(-size // 512)
    for name in FILES:
        with open(mounted / name, "rb") as file:
            for whence in (os.SEEK_DATA, os.SEEK_HOLE):
                with contextlib.suppress(OSError):
                    assert 0 <= os.lseek(file.fileno(), 0, whence) <= os.fstat(file.fileno()).st_size
