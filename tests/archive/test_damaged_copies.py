"""Both copies of an index are damaged, but not in the same bytes: repair puts the index together."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_trailers import links_of
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.errors import ArchiveFormatError, CorruptIndexError
from gompfs.pack.repair import repair_archive


@pytest.fixture(scope="module")
def many_names(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An archive of 3,000 empty files, whose index has several kilobytes."""
    folder = tmp_path_factory.mktemp("many")
    (folder / "tree").mkdir()
    for number in range(3000):
        (folder / "tree" / f"{number * 7919 % 3001:x}").touch()
    pack(folder / "many.gomp", folder / "tree")
    return (folder / "many.gomp").read_bytes()


def damage(content: bytes, *ranges: tuple[int, int]) -> bytes:
    """Returns the content with all bits of the ranges flipped."""
    damaged = bytearray(content)
    for begin, end in ranges:
        damaged[begin:end] = bytes(byte ^ 0xFF for byte in content[begin:end])
    return bytes(damaged)


def test_repair_of_a_damaged_range_in_both_copies(many_names: bytes, tmp_path: Path) -> None:
    """A range shorter than the index, wherever it lies in the trailers, leaves each byte of the index in one copy."""
    path = tmp_path / "many.gomp"
    path.write_bytes(many_names)
    (link,) = links_of(path)
    first, end, size = link.position.index_offset, link.position.end, link.position.index_size
    length = size - 1024
    assert length > 4096
    for begin in range(first, end, length // 7):
        path.write_bytes(damage(many_names, (begin, min(begin + length, end))))
        assert len(list(repair_archive(path))) in (1, 2)
        assert path.read_bytes() == many_names


def test_repair_of_two_damaged_ranges(many_names: bytes, tmp_path: Path) -> None:
    """A range of each copy, in either order. If they share a byte of the index, repair changes nothing."""
    path = tmp_path / "many.gomp"
    path.write_bytes(many_names)
    (link,) = links_of(path)
    copies = [link.position.copy_offset(copy) for copy in (0, 1)]
    for low, high in (copies, reversed(copies)):
        damaged = damage(many_names, (low + 600, low + 1600), (high + 2600, high + 3600))
        path.write_bytes(damaged)
        with pytest.raises(CorruptIndexError, match=r"gompfs repair may mend it$"):
            Archive(path)
        assert len(list(repair_archive(path, dry_run=True))) == 2
        assert path.read_bytes() == damaged
        assert len(list(repair_archive(path))) == 2
        assert path.read_bytes() == many_names
        path.write_bytes(damaged := damage(many_names, (low + 600, low + 1600), (high + 1599, high + 2600)))
        with pytest.raises(ArchiveFormatError, match="no generation can be repaired: both copies"):
            list(repair_archive(path))
        assert path.read_bytes() == damaged


def test_many_damaged_ranges(many_names: bytes, tmp_path: Path) -> None:
    """Of those in turn in one copy and in the other, no two pieces make the index. It is tried a few times only."""
    path = tmp_path / "many.gomp"
    path.write_bytes(many_names)
    (link,) = links_of(path)
    copies = [link.position.copy_offset(copy) for copy in (0, 1)]
    begins = range(600, link.position.index_size - 600, 1200)
    assert len(begins) > 4
    ranges = [(copies[number % 2] + begin, copies[number % 2] + begin + 50) for number, begin in enumerate(begins)]
    path.write_bytes(damaged := damage(many_names, *ranges))
    with pytest.raises(ArchiveFormatError, match="no generation can be repaired: both copies"):
        list(repair_archive(path))
    assert path.read_bytes() == damaged
