"""Adding to an archive: what is added and replaced, and what is left after a crash in the middle."""

from __future__ import annotations

import fcntl
import io
import os
import random
import shutil
import stat
import tarfile
from pathlib import Path

import pytest
from test_packer import FailingSource, MemoryEntry, extract
from tree_helpers import add, files_of_block, list_archive, list_directory, pack

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.errors import ArchiveFormatError, CorruptIndexError, PackError
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive
from gompfs.pack.repair import repair_archive
from gompfs.verify import verify_archive

STORED = Codec.STORED


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "docs/deep").mkdir(parents=True)
    (root / "docs/a").write_bytes(b"the first of all files\n" * 5000)
    (root / "docs/b").write_bytes(os.urandom(100_000))
    (root / "docs/deep/c").write_text("deep down")
    os.link(root / "docs/a", root / "linked")
    os.symlink("docs/a", root / "symlink")
    os.setxattr(root / "docs", "user.kept", b"no")
    return root


@pytest.fixture
def archive(tree: Path, tmp_path: Path) -> Path:
    target = tmp_path / "a.gomp"
    pack(target, tree, block_size=16 << 10)
    return target


def change(tree: Path, number: int) -> None:
    """Replaces, adds and links something in every directory."""
    (tree / "docs/a").unlink()
    (tree / "docs/a").write_bytes(b"replaced %d\n" % number * 3000)
    (tree / f"docs/new-{number}").write_bytes(random.Random(number).randbytes(70_000))
    os.link(tree / f"docs/new-{number}", tree / f"docs/deep/hard-{number}")
    os.symlink("nowhere", tree / f"docs/deep/soft-{number}")
    (tree / f"directory-{number}").mkdir()
    os.setxattr(tree / "docs", f"user.of-{number}", b"%d" % number)
    os.removexattr(tree / "docs", "user.kept" if number == 0 else f"user.of-{number - 1}")


def test_adding_twice_shows_the_tree_as_it_is_now(tree: Path, archive: Path, tmp_path: Path) -> None:
    for number in range(2):
        change(tree, number)
        size_before = archive.stat().st_size
        report = add(archive, tree)
        assert report.archive_size == archive.stat().st_size
        assert report.added_size == report.archive_size - size_before
        expected = list_directory(tree)
        with Archive(archive, verify=True) as opened:
            assert opened.warnings == []
            assert opened.footer.generation == number + 2
            assert [segment.number for segment in opened.segments] == list(range(number + 2))
            assert list_archive(opened) == expected
            for path, inode in opened.walk():
                assert inode.nlink == os.lstat(os.path.join(os.fsencode(tree), path)).st_nlink, path
            assert opened.index.totals()[0] == len({inode.ino for _, inode in opened.walk()})
            assert verify_archive(opened).is_sound
    extract(archive, tmp_path / "out")
    assert list_directory(tmp_path / "out") == expected


def test_only_given_entries_are_replaced(tree: Path, archive: Path, tmp_path: Path) -> None:
    before = list_directory(tree)
    other = tmp_path / "other"
    (other / "docs").mkdir(parents=True)
    (other / "docs/b").write_text("another b")
    (other / "zoo").write_text("last")
    add(archive, other)
    with Archive(archive) as opened:
        after = list_archive(opened)
        assert set(after) == set(before) | {b"zoo"}
        assert after[b"docs/b"].content == b"another b"
        assert {path for path in before if after[path] != before[path]} == {b"", b"docs", b"docs/b"}
        assert [entry.name for entry in opened.index.directory(opened.resolve("docs").ino)] == [
            b"a",
            b"b",
            b"deep",
        ]
        # The inode of the old b and its extents are gone; its bytes stay in the archive.
        assert files_of_block(opened, opened.segments[0].first_block + 1) == [opened.resolve("docs/a").ino]


def test_a_name_of_a_hard_link_is_replaced(tree: Path, archive: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").write_text("on its own")
    add(archive, tmp_path / "linked")
    with Archive(archive) as opened:
        assert opened.read(opened.resolve("linked").ino, 0, 100) == b"on its own"
        inode = opened.resolve("docs/a")
        assert inode.nlink == 1
        assert opened.read(inode.ino, 0, inode.size) == (tree / "docs/a").read_bytes()


def test_types_that_change(archive: Path, tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, kind, link in (
            ("docs/b", tarfile.DIRTYPE, ""),
            ("docs/b/inside", tarfile.REGTYPE, ""),
            ("linked", tarfile.SYMTYPE, "docs"),
            ("symlink", tarfile.FIFOTYPE, ""),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, link
            tar.addfile(info)
    (tmp_path / "b.tar").write_bytes(stream.getvalue())
    add(archive, tmp_path / "b.tar")
    with Archive(archive) as opened:
        assert stat.S_ISDIR(opened.resolve("docs/b").mode)
        assert opened.resolve("docs/b/inside").size == 0
        assert opened.resolve("linked").symlink_target == b"docs"
        assert stat.S_ISFIFO(opened.resolve("symlink").mode)


def test_a_file_does_not_replace_a_directory(archive: Path, tmp_path: Path) -> None:
    before = archive.read_bytes()
    (tmp_path / "docs").write_text("a file")
    with pytest.raises(PackError, match="directory") as caught:
        add(archive, tmp_path / "docs")
    assert (caught.value.archive, caught.value.path) == (str(archive), "docs")
    assert archive.read_bytes() == before


def test_adding_nothing(archive: Path, tree: Path) -> None:
    add_to_archive(archive, [], PackOptions(Codec.GOMPRESSO_BIT), engine=select_engine("cpu"))
    with Archive(archive) as opened:
        assert opened.footer.generation == 2
        assert list_archive(opened) == list_directory(tree)
        assert len(opened.segments) == 2
    change(tree, 0)
    add(archive, tree)
    with Archive(archive) as opened:
        assert list_archive(opened) == list_directory(tree)


def test_inode_numbers_of_replaced_files_are_not_reused(archive: Path, tmp_path: Path) -> None:
    """Also if the highest inode number is dropped because its name becomes a link to another inode."""
    with Archive(archive) as opened:
        used = {inode.ino for _, inode in opened.walk()}
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, kind in (("x", tarfile.REGTYPE), ("y", tarfile.REGTYPE), ("y", tarfile.LNKTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "x"
            tar.addfile(info)
    (tmp_path / "b.tar").write_bytes(stream.getvalue())
    add(archive, tmp_path / "b.tar")
    (tmp_path / "z").touch()
    add(archive, tmp_path / "z")
    with Archive(archive) as opened:
        assert opened.resolve("x").ino == opened.resolve("y").ino == max(used) + 1
        assert opened.resolve("z").ino == max(used) + 3


@pytest.mark.parametrize("error", [PackError("cannot read", path="somewhere"), OSError(28, "No space left")])
def test_a_failed_add_leaves_the_archive_as_it_was(archive: Path, error: BaseException) -> None:
    before = archive.read_bytes()
    with pytest.raises(PackError):
        add_to_archive(archive, [FailingSource(error)], PackOptions(Codec.GOMPRESSO_BIT), engine=select_engine("cpu"))
    assert archive.read_bytes() == before


def test_two_adds_at_a_time_are_refused(archive: Path, tree: Path) -> None:
    with open(archive, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(PackError, match="another process"):
            add(archive, tree)
    add(archive, tree)


def test_files_that_cannot_be_added_to(archive: Path, tree: Path, tmp_path: Path) -> None:
    with pytest.raises(PackError, match="No such file"):
        add(tmp_path / "missing.gomp", tree)
    (tmp_path / "other").write_bytes(os.urandom(5000))
    with pytest.raises(ArchiveFormatError) as caught:
        add(tmp_path / "other", tree)
    assert caught.value.archive == str(tmp_path / "other")
    with Archive(archive) as opened:
        last_copy, size = opened.footer.index_offset, opened.size
    damaged = bytearray(archive.read_bytes())
    for place in (last_copy + 50, 2 * last_copy - size + 50):
        damaged[place] ^= 1
    archive.write_bytes(damaged)
    with pytest.raises(CorruptIndexError, match="damaged"):
        add(archive, tree)
    assert archive.read_bytes() == damaged


def test_open_readers_keep_their_generation(archive: Path, tree: Path) -> None:
    before = list_directory(tree)
    with Archive(archive) as opened:
        change(tree, 0)
        add(archive, tree)
        assert list_archive(opened) == before
    with Archive(archive) as opened:
        assert list_archive(opened) == list_directory(tree)


class TestTornTail:
    """After an add that was cut off anywhere, readers show the generation before it, and warn."""

    @pytest.fixture
    def generations(self, archive: Path, tree: Path) -> tuple[Path, int, dict, dict]:
        old_size, old = archive.stat().st_size, list_directory(tree)
        change(tree, 0)
        # The added file is an archive itself: its footer must not be mistaken for that of the archive.
        shutil.copy(archive, tree / "zz.gomp")
        add(archive, tree, codec=STORED)
        return archive, old_size, old, list_directory(tree)

    def test_zeros_and_noise_after_a_generation(self, generations: tuple[Path, int, dict, dict]) -> None:
        """File systems may leave zeros where bytes were not written before a crash."""
        archive, old_size, old, _ = generations
        content = archive.read_bytes()
        for tail in (
            bytes(len(content) - old_size),
            os.urandom(3_000_000),
            bytes(128) + content[old_size + 128 :],
        ):
            archive.write_bytes(content[:old_size] + tail)
            with Archive(archive) as opened:
                assert list_archive(opened) == old
                assert opened.warnings

    def test_adding_is_refused_before_repair(self, generations: tuple[Path, int, dict, dict], tree: Path) -> None:
        """`add` never removes bytes that it cannot read. After `repair`, the same add gives the same archive."""
        archive, old_size, old, new = generations
        whole = archive.read_bytes()
        for size in (old_size + 1, old_size + 70_000, len(whole) - 4096):
            archive.write_bytes(whole[:size])
            with pytest.raises(PackError, match="gompfs repair") as caught:
                add(archive, tree, codec=STORED)
            assert caught.value.archive == str(archive)
            assert archive.read_bytes() == whole[:size]
            (step,) = repair_archive(archive)
            assert f"{size - old_size} bytes after generation 1" in step
            assert archive.with_name("a.gomp.cut").read_bytes() == whole[old_size:size]
            archive.with_name("a.gomp.cut").unlink()
            with Archive(archive) as opened:
                assert (list_archive(opened), opened.warnings) == (old, [])
            add(archive, tree, codec=STORED)
            with Archive(archive) as opened:
                assert opened.warnings == []
                assert opened.footer.generation == 2
                assert list_archive(opened) == new
        assert archive.read_bytes() == whole


def test_blocks_of_segments_do_not_mix(archive: Path, tmp_path: Path) -> None:
    """The last block of a segment is short; the next one begins at a multiple of the block size."""
    for number in range(3):
        (tmp_path / f"part-{number}").write_bytes(random.Random(number).randbytes(20_000 + number))
        add(archive, tmp_path / f"part-{number}")
    with Archive(archive) as opened:
        next_block = 0
        for segment in opened.segments:
            assert segment.first_block == next_block
            next_block += len(segment.blocks)
        assert opened.num_blocks == next_block
        for number in range(3):
            (extent,) = opened.extents(opened.resolve(f"part-{number}").ino)
            assert extent.stream_offset == opened.segments[number + 1].first_block * opened.block_size
            content = (tmp_path / f"part-{number}").read_bytes()
            assert opened.read(opened.resolve(f"part-{number}").ino, 0, 1 << 20) == content


def test_memory_entries_of_any_source(archive: Path) -> None:
    """A source need not be sorted, nor list the parent directories of its entries."""

    class Unsorted(FailingSource):
        def entries(self):
            yield MemoryEntry(b"q/r/s", stat.S_IFREG | 0o644, size=3, content=b"qrs")
            yield MemoryEntry(b"b", stat.S_IFREG | 0o644, size=1, content=b"b")

    sources = [Unsorted(OSError())]
    add_to_archive(archive, sources, PackOptions(Codec.GOMPRESSO_BIT, mtime_ns=5), engine=select_engine("cpu"))
    with Archive(archive) as opened:
        assert opened.read(opened.resolve("q/r/s").ino, 0, 9) == b"qrs"
        made = opened.resolve("q")
        assert (made.mode, made.nlink, made.mtime_ns) == (stat.S_IFDIR | 0o755, 3, 5)
