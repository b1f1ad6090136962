"""What the format leaves room for: required features, reserved bytes, and an archive that begins later in its file."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from test_trailers import links_of, names
from tree_helpers import add, list_archive
from xxhash import xxh3_64_intdigest as xxh3

from gompfs.archive import Archive
from gompfs.engine import select_engine
from gompfs.errors import ArchiveFormatError, UnsupportedFormatError
from gompfs.format import Footer, LocalFile
from gompfs.pack.repair import repair_archive
from gompfs.verify import verify_archive


@pytest.mark.parametrize("copies", [(0,), (1,), (0, 1)])
def test_a_feature_that_is_needed(added: Path, copies: tuple[int, ...]) -> None:
    """Nothing shows an earlier generation instead, or takes the footer for damaged."""
    position = links_of(added)[-1].position
    for copy in (0, 1):
        content = bytearray(added.read_bytes())
        at = position.footer_offset(copy)
        if copy in copies:
            content[at : at + 96] = Footer.from_bytes(content[at : at + 96])._replace(features=1 << 7).to_bytes()
        else:
            content[at] ^= 1
        added.write_bytes(content)

    def read() -> None:
        with Archive(added) as archive:
            verify_archive(archive)

    uses = read, lambda: add(added, added.parent / "file-2"), lambda: list(repair_archive(added))
    for use in uses:
        with pytest.raises(UnsupportedFormatError) as caught:
            use()
        needed = "needs feature 7, which this gompfs does not have; a newer gompfs reads it"
        assert str(caught.value) == f"{added}: {needed}"
    assert added.read_bytes() == content


@pytest.mark.parametrize("start", [1, 64, 100_003])
def test_an_archive_that_begins_later_in_its_file(added: Path, start: int) -> None:
    added.write_bytes(bytes(start) + added.read_bytes())
    for engine in ("cpu", "auto"):
        with Archive(added, file=LocalFile.open(added, start), engine=select_engine(engine)) as archive:
            assert archive.warnings == []
            assert verify_archive(archive).is_sound
            assert list_archive(archive)[b"file-3"].content == random.Random(3).randbytes(50_000)
    for other, reason in ((start - 1, "not a gompfs archive"), (1 << 70, f"the file ends before offset {1 << 70}")):
        with pytest.raises(ArchiveFormatError, match=reason):
            Archive(added, file=LocalFile.open(added, other))


def test_reserved_bytes_without_a_feature(added: Path) -> None:
    """A later release may use those of the superblock and of headers, and says so by a feature if readers must know."""
    content = bytearray(added.read_bytes())
    for start, field in ((0, 48), (links_of(added)[-1].start, 12), (links_of(added)[-1].start, 55)):
        content[start + field] ^= 1
        content[start + 56 : start + 64] = xxh3(content[start : start + 56]).to_bytes(8, "little")
    added.write_bytes(content)
    assert names(added) == {b"file-2", b"file-3"}


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
