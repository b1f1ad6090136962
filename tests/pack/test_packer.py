"""Packing whole trees: extracting gives the same tree, and a failure leaves nothing behind."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from memory_source import FailingSource, MemoryEntry
from tree_helpers import add, list_archive, list_directory, pack

from gompfs._native.codec import Dictionary
from gompfs.archive import Archive
from gompfs.archive.extract import Extractor
from gompfs.codec import Codec, CodecOptions, EncodedBlock
from gompfs.codec.block import Buffer
from gompfs.engine import select_engine
from gompfs.engine.cpu import CpuEngine
from gompfs.errors import PackError, UnreadableFileError
from gompfs.index.image import build_image
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source, pack_archive
from gompfs.pack.new_file import TemporaryIndex
from gompfs.pack.sources import SourceEntry
from gompfs.verify import verify_archive

CAPTURED = {"capture_output": True, "check": False}


def extract(archive: Path, target: Path) -> None:
    with Archive(archive) as opened:
        extractor = Extractor(opened, target)
        extractor.extract([b""])
        assert extractor.num_errors == 0


@pytest.mark.parametrize("block_size", [16 << 10, 64 << 10, 1 << 20])
def test_packing_and_extracting_gives_the_same_tree(shared_odd_tree: Path, tmp_path: Path, block_size: int) -> None:
    target = tmp_path / "odd.gomp"
    report = pack(target, shared_odd_tree, block_size=block_size)
    expected = list_directory(shared_odd_tree)
    assert report.num_entries == len(expected)
    assert report.archive_size == target.stat().st_size
    with Archive(target) as archive:
        assert archive.block_size == block_size
        assert archive.warnings == []
        assert list_archive(archive) == expected
        assert verify_archive(archive).is_sound
    extract(target, tmp_path / "out")
    if os.geteuid() != 0:  # set-user-id and set-group-id bits of files are for root to restore
        for path, seen in expected.items():
            if stat.S_ISREG(seen.mode):
                expected[path] = seen._replace(mode=seen.mode & ~(stat.S_ISUID | stat.S_ISGID))
    assert list_directory(tmp_path / "out") == expected


def test_a_time_that_the_index_cannot_hold(tmp_path: Path) -> None:
    """ext4 stores times up to the year 2446; the index stores nanoseconds in 64 bits, up to 2262."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/late").touch()
    try:
        os.utime(tmp_path / "tree/late", (0, 10_413_792_000))
    except (OSError, OverflowError):
        pytest.skip("this file system has no such times")
    if (tmp_path / "tree/late").stat().st_mtime != 10_413_792_000:
        pytest.skip("this file system has no such times")
    report = pack(tmp_path / "a.gomp", tmp_path / "tree")
    assert report.warnings == ["late: the modification time is out of range; stored the nearest time"]
    with Archive(tmp_path / "a.gomp") as archive:
        assert archive.resolve("late").mtime_ns == (1 << 63) - 1


@pytest.mark.parametrize(
    ("codec", "options"),
    [
        (Codec.GOMPRESSO_TADOC, {}),
        (Codec.GOMPRESSO_BYTE, {}),
        (Codec.GOMPRESSO_BIT, {"level": 1}),
        (Codec.GOMPRESSO_BIT, {"dependency_elimination": True}),
        (Codec.GOMPRESSO_BYTE, {"dependency_elimination": True}),
        (Codec.STORED, {}),
    ],
    ids=["tadoc", "byte", "bit-1", "bit-de", "byte-de", "stored"],
)
def test_codecs(shared_odd_tree: Path, tmp_path: Path, codec: Codec, options: dict[str, object]) -> None:
    target = tmp_path / "odd.gomp"
    pack(target, shared_odd_tree, codec=codec, block_size=32 << 10, **options)
    with Archive(target, verify=True) as archive:
        assert list_archive(archive) == list_directory(shared_odd_tree)
        assert codec in {Codec(value) for segment in archive.segments for value in segment.codecs}


def test_a_tar_of_the_tree_gives_the_same_entries(shared_odd_tree: Path, tmp_path: Path) -> None:
    tar = tmp_path / "odd.tar"
    options = ["--format=posix", "--xattrs", "--xattrs-include=*", "-S", "--sort=name"]
    subprocess.run(["tar", "-C", shared_odd_tree, *options, "-cf", tar, "."], check=True)
    target = tmp_path / "odd.gomp"
    pack(target, tar)
    with Archive(target) as archive:
        seen = list_archive(archive)
    assert {path: item._replace(inode=b"") for path, item in seen.items()} == {
        path: item._replace(inode=b"") for path, item in list_directory(shared_odd_tree).items()
    }


def test_inodes_are_numbered_depth_first_and_links_counted(shared_odd_tree: Path, tmp_path: Path) -> None:
    pack(tmp_path / "odd.gomp", shared_odd_tree)
    with Archive(tmp_path / "odd.gomp") as archive:
        numbers = list(dict.fromkeys(inode.ino for _, inode in archive.walk()))
        assert numbers == list(range(1, len(numbers) + 1))
        for path, inode in archive.walk():
            assert inode.nlink == os.lstat(os.path.join(os.fsencode(shared_odd_tree), path)).st_nlink, path
        num_inodes, size = archive.index.totals()
        assert num_inodes == len(numbers)
        sizes = {i.ino: i.size for _, i in archive.walk() if stat.S_ISREG(i.mode)}
        assert size == sum(sizes.values())


def test_identical_files_are_stored_once(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    small, large = os.urandom(50_000), os.urandom(5 << 20)
    for number in range(4):
        (tree / f"small-{number}").write_bytes(small)
        (tree / f"large-{number}").write_bytes(large)
    (tree / "other").write_bytes(large[:-1] + bytes([large[-1] ^ 1]))
    report = pack(tmp_path / "a.gomp", tree)
    assert report.num_duplicates == 6
    assert len(small) + len(large) < report.stream_size < len(small) + len(large) + (16 << 10)
    with Archive(tmp_path / "a.gomp") as archive:
        extents = {archive.extents(archive.resolve(f"large-{number}").ino)[0] for number in range(4)}
        assert len(extents) == 1
        assert list_archive(archive) == list_directory(tree)


def test_holes_are_not_stored_and_come_back_as_holes(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    with open(tree / "sparse", "wb") as file:
        file.write(b"front")
        file.seek(64 << 20)
        file.write(b"middle" * 1000)
        file.truncate(200 << 20)
    report = pack(tmp_path / "a.gomp", tree)
    assert report.stream_size < 1 << 20
    extract(tmp_path / "a.gomp", tmp_path / "out")
    copy = tmp_path / "out/sparse"
    assert copy.stat().st_size == 200 << 20
    assert copy.stat().st_blocks * 512 < 1 << 20
    with Archive(tmp_path / "a.gomp") as archive:
        ino = archive.resolve("sparse").ino
        assert archive.read(ino, (64 << 20) - 4, 14) == bytes(4) + b"middlemidd"
        assert archive.read(ino, (200 << 20) - 3, 10) == bytes(3)
        assert archive.read(ino, 200 << 20, 10) == b""
        assert archive.read(ino, 300 << 20, 10) == b""


def test_the_same_input_gives_the_same_bytes(shared_odd_tree: Path, tmp_path: Path) -> None:
    for name, jobs in (("one", 1), ("two", 2)):
        with_jobs = PackOptions(Codec.GOMPRESSO_BIT, jobs=jobs)
        sources = [open_source(shared_odd_tree)]
        pack_archive(sources, tmp_path / name, with_jobs, engine=select_engine("cpu", jobs))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_metadata_can_be_set_for_all(shared_odd_tree: Path, tmp_path: Path) -> None:
    pack(tmp_path / "a.gomp", shared_odd_tree, mtime_ns=1_234_567_890, owner=7, group=8)
    with Archive(tmp_path / "a.gomp") as archive:
        assert {(i.mtime_ns, i.uid, i.gid) for _, i in archive.walk()} == {(1_234_567_890, 7, 8)}


def test_several_sources_become_entries_of_the_root(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    (tmp_path / "single").write_text("a file")
    sources = [open_source(tmp_path / name, alone=False) for name in ("one", "two", "single")]
    pack_archive(sources, tmp_path / "a.gomp", PackOptions(Codec.GOMPRESSO_BIT), engine=select_engine("cpu"))
    with Archive(tmp_path / "a.gomp") as archive:
        assert [path for path, _ in archive.walk()] == [
            b"",
            b"one",
            b"one/file",
            b"single",
            b"two",
            b"two/file",
        ]


@pytest.mark.parametrize("content", ["nothing", "an empty directory"])
def test_tiny_sources(tmp_path: Path, content: str) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    sources = [] if content == "nothing" else [open_source(tree)]
    pack_archive(sources, tmp_path / "a.gomp", PackOptions(Codec.GOMPRESSO_BIT), engine=select_engine("cpu"))
    with Archive(tmp_path / "a.gomp") as archive:
        assert [(path, stat.S_ISDIR(inode.mode), inode.nlink) for path, inode in archive.walk()] == [(b"", True, 2)]
        assert archive.num_blocks == 0
        assert verify_archive(archive).num_blocks == 0


def test_an_existing_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    source = tmp_path / "file"
    source.write_text("content")
    target = tmp_path / "a.gomp"
    target.write_text("precious")
    with pytest.raises(PackError, match="force") as caught:
        pack(target, source)
    assert caught.value.path == str(target)
    assert target.read_text() == "precious"
    target.unlink()
    pack(target, tmp_path)
    pack(target, source, force=True)
    with Archive(target) as archive:
        assert archive.read(archive.resolve("file").ino, 0, 100) == b"content"
    assert sorted(os.listdir(tmp_path)) == ["a.gomp", "file"]


def test_an_archive_does_not_contain_itself(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    for _ in range(2):
        pack(tmp_path / "a.gomp", tmp_path, force=True)
        with Archive(tmp_path / "a.gomp") as archive:
            assert [path for path, _ in archive.walk()] == [b"", b"file"]
    add(tmp_path / "a.gomp", tmp_path)
    with Archive(tmp_path / "a.gomp") as archive:
        assert [path for path, _ in archive.walk()] == [b"", b"file"]


def test_mode_of_the_archive_follows_the_umask(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    before = os.umask(0o027)
    try:
        pack(tmp_path / "a.gomp", tmp_path / "file")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.gomp").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (PackError("cannot read", path="somewhere"), PackError),
        (OSError(28, "No space left on device"), PackError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_failure_leaves_everything_as_it_was(
    tmp_path: Path, error: BaseException, expected: type[BaseException]
) -> None:
    target = tmp_path / "a.gomp"
    pack(target)
    precious = target.read_bytes()
    num_threads = threading.active_count()
    with pytest.raises(expected):
        pack_archive(
            [FailingSource(error)], target, PackOptions(Codec.GOMPRESSO_BIT, force=True), engine=select_engine("cpu")
        )
    assert target.read_bytes() == precious
    assert os.listdir(tmp_path) == ["a.gomp"]
    assert threading.active_count() == num_threads


def test_target_in_a_missing_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PackError, match="No such file or directory"):
        pack(tmp_path / "missing/a.gomp", tmp_path / "file")


def test_later_members_of_a_tar_replace_earlier_ones(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:

        def member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, **fields: object) -> None:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, len(content)
            for key, value in fields.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(content))

        member("d", kind=tarfile.DIRTYPE, pax_headers={"SCHILY.xattr.user.old": "1"})
        member("d/f", b"old", pax_headers={"SCHILY.xattr.user.old": "1"})
        member("d/link", kind=tarfile.LNKTYPE, linkname="d/f")
        member("d/f", b"new content")
        member("d", kind=tarfile.DIRTYPE, mode=0o700, pax_headers={"SCHILY.xattr.user.new": "2"})
    (tmp_path / "a.tar").write_bytes(stream.getvalue())
    pack(tmp_path / "a.gomp", tmp_path / "a.tar")
    with Archive(tmp_path / "a.gomp") as archive:
        seen = list_archive(archive)
        assert {path: item.content for path, item in seen.items()} == {
            b"": None,
            b"d": None,
            b"d/f": b"new content",
            b"d/link": b"old",
        }
        assert archive.resolve("d/f").nlink == archive.resolve("d/link").nlink == 1
        assert seen[b"d"].mode == stat.S_IFDIR | 0o700
        assert seen[b"d"].xattrs == ((b"user.new", b"2"),)
        assert seen[b"d/f"].xattrs == ()
        assert seen[b"d/link"].xattrs == ((b"user.old", b"1"),)


class TestUnreadable:
    """--skip-unreadable leaves out files whose content cannot be read, as if they did not exist."""

    class Source(FailingSource):
        """A file that fails after some bytes, another name of it, and a valid file."""

        def __init__(self, size: int, error: type[PackError]) -> None:
            super().__init__(OSError())
            self._size, self._kind = size, error

        def entries(self) -> Iterator[SourceEntry]:
            kind, size = self._kind, self._size

            class Failing(MemoryEntry):
                def read_at(self, file_offset: int, length: int) -> bytes:
                    if file_offset + length > size // 2:
                        raise kind("cannot read: Input/output error", path="d/bad")
                    return super().read_at(file_offset, length)

            content = (b"words that were read " * (size // 20 + 1))[:size]
            yield Failing(b"d/bad", stat.S_IFREG | 0o644, size=size, content=content)
            yield SourceEntry(b"d/bad-too", stat.S_IFREG | 0o644, hard_link_to=b"d/bad")
            yield MemoryEntry(b"d/sound", stat.S_IFREG | 0o644, size=12, content=b"all is sound")

    @pytest.mark.parametrize("size", [1000, 12 << 20])
    def test_a_read_error(self, tmp_path: Path, size: int) -> None:
        target = tmp_path / "a.gomp"
        source = self.Source(size, UnreadableFileError)
        report = pack_archive([source], target, PackOptions(), engine=select_engine("cpu"))
        assert report.warnings == [
            "d/bad: cannot read: Input/output error; left out",
            "d/bad-too: it is another name of a file that cannot be read; left out",
        ]
        with Archive(target) as archive:
            assert set(list_archive(archive)) == {b"", b"d", b"d/sound"}
            assert archive.index.totals()[0] == 3
            assert verify_archive(archive).is_sound
        output = subprocess.run([sys.executable, "-P", "-m", "gompfs", "stats", target, "sort"], **CAPTURED).stdout
        assert output == b"all\t1\nis\t1\nsound\t1\n"

    def test_without_the_option(self, tmp_path: Path) -> None:
        with pytest.raises(PackError, match="Input/output error"):
            pack_archive(
                [self.Source(1000, PackError)], tmp_path / "a.gomp", PackOptions(), engine=select_engine("cpu")
            )
        assert os.listdir(tmp_path) == []

    def test_an_older_file_of_that_name_is_kept(self, tmp_path: Path) -> None:
        (tmp_path / "d").mkdir()
        (tmp_path / "d/bad").write_text("of before")
        target = tmp_path / "a.gomp"
        pack_archive([open_source(tmp_path / "d", alone=False)], target, PackOptions(), engine=select_engine("cpu"))
        source = self.Source(12 << 20, UnreadableFileError)
        add_to_archive(target, [source], PackOptions(), engine=select_engine("cpu"))
        with Archive(target) as archive:
            assert archive.read(archive.resolve("d/bad").ino, 0, 100) == b"of before"
            assert verify_archive(archive).is_sound


def test_a_new_index_is_not_taken_for_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer removed an index file between its creation and its lock: the archive got an empty index."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    create = tempfile.mkstemp
    created: list[str] = []

    def create_and_lose(*args: Any, **options: Any) -> tuple[int, str]:
        descriptor, name = create(*args, **options)
        created.append(name)
        if len(created) == 1:
            os.unlink(name)
        return descriptor, name

    monkeypatch.setattr(tempfile, "mkstemp", create_and_lose)
    with TemporaryIndex() as index:
        columns, ends = index.finish()
    assert ends[-1] == len(columns)
    assert build_image(columns)[:15] == b"SQLite format 3"
    assert len(created) == 2
    assert list(tmp_path.iterdir()) == []


def test_blocks_that_a_device_encoded_wrongly_are_reported(tmp_path: Path) -> None:
    class _WrongDevice(CpuEngine):
        def encode_blocks(
            self, stream: Buffer, block_size: int, options: CodecOptions, dictionary: Dictionary | None = None
        ) -> list[EncodedBlock]:
            self.num_reencoded += 2
            return super().encode_blocks(stream, block_size, options, dictionary)

    (tmp_path / "file").write_bytes(bytes(1000))
    options = PackOptions(Codec.GOMPRESSO_BIT)
    engine = _WrongDevice()
    for target in ("first.gomp", "second.gomp"):
        report = pack_archive([open_source(tmp_path / "file")], tmp_path / target, options, engine=engine)
        assert report.warnings == ["the GPU encoded 2 blocks wrongly; the CPU encoded them again"]
