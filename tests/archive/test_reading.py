"""Reading entries and bytes from an archive, by one reader and by many."""

from __future__ import annotations

import os
import random
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from head_engine import HeadEngine
from hypothesis import given, settings
from hypothesis import strategies as st
from taken_apart import BytesFile
from tree_helpers import list_archive, list_directory, pack

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.engine.cpu import CpuEngine
from gompfs.errors import CorruptBlockError, EntryNotFoundError, EntryTypeError
from gompfs.verify import verify_archive


def source_files(tree: Path) -> list[tuple[str, bytes]]:
    return [
        (str(path.relative_to(tree)), path.read_bytes())
        for path in sorted(tree.rglob("*"))
        if path.is_file() and not path.is_symlink()
    ]


def test_the_whole_tree(sound_archive: Path, tree: Path) -> None:
    with Archive(sound_archive) as archive:
        assert list_archive(archive) == list_directory(tree)


def test_any_engine_reads_the_same(tree: Path, tmp_path: Path) -> None:
    pack(tmp_path / "a.gomp", tree / "small", codec=Codec.STORED)
    with Archive(tmp_path / "a.gomp", engine=HeadEngine()) as archive:
        assert list_archive(archive) == list_directory(tree / "small")


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_range_of_any_file(sound_archive: Path, tree: Path, data: st.DataObject) -> None:
    with Archive(sound_archive, cache_size=1 << 20) as archive:
        for _ in range(5):
            name = data.draw(st.sampled_from(["big/noise", "big/text", "sparse", "small/11", "big/zeros"]))
            content = (tree / name).read_bytes()
            start = data.draw(st.integers(0, len(content) + 10))
            size = data.draw(st.integers(0, 200_000))
            assert archive.read(archive.resolve(name).ino, start, size) == content[start : start + size]


def test_ranges_around_every_block_limit(sound_archive: Path, tree: Path) -> None:
    with Archive(sound_archive) as archive:
        for name in ("big/noise", "sparse"):
            content = (tree / name).read_bytes()
            ino = archive.resolve(name).ino
            limits = {0, len(content)}
            for extent in archive.extents(ino):
                limits |= {extent.file_offset, extent.file_offset + extent.size}
                limits |= {
                    extent.file_offset + limit - extent.stream_offset
                    for limit in range(0, extent.stream_offset + extent.size, archive.block_size)
                    if limit > extent.stream_offset
                }
            for limit in limits:
                for start in (max(limit - 1, 0), limit, limit + 1):
                    for size in (1, 2, archive.block_size, archive.block_size + 1):
                        assert archive.read(ino, start, size) == content[start : start + size]


@pytest.mark.parametrize("cache_size", [0, 1 << 20, 256 << 20])
def test_many_readers_at_once(sound_archive: Path, tree: Path, cache_size: int) -> None:
    files = source_files(tree)
    with Archive(sound_archive, cache_size=cache_size) as archive:
        start_together = threading.Barrier(8)

        def read(seed: int) -> int:
            rng = random.Random(seed)
            start_together.wait()
            for _ in range(60):
                name, content = rng.choice(files[:3] if rng.random() < 0.5 else files)
                inode = archive.resolve(name)
                start = rng.randrange(len(content) + 1)
                size = rng.choice([10, 5000, 128 << 10])
                assert archive.read(inode.ino, start, size) == content[start : start + size]
            name, content = files[seed % 3]
            ino = archive.resolve(name).ino
            whole = b"".join(archive.read(ino, at, 40_000) for at in range(0, len(content), 40_000))
            assert whole == content
            return seed

        with ThreadPoolExecutor(8) as executor:
            assert sorted(executor.map(read, range(8))) == list(range(8))
        assert archive.blocks.num_cached * archive.block_size <= max(cache_size, 2 * archive.block_size)


def test_a_block_is_decoded_once_for_all_waiting_readers(sound_archive: Path) -> None:
    class SlowEngine:
        name, reason, num_threads = "slow", "a test", 1
        num_decoded = 0
        batch_bytes = 1 << 20

        def __init__(self) -> None:
            self._engine = select_engine("cpu", 1)
            self.allocate = self._engine.allocate

        def decodes_on_cpu(self, num_bytes):
            return True

        def decode_blocks(self, blocks, out, **options):
            self.num_decoded += len(blocks)
            threading.Event().wait(0.05)
            return self._engine.decode_blocks(blocks, out, **options)

    engine, file = SlowEngine(), BytesFile(sound_archive.read_bytes())
    with Archive(sound_archive, file=file, engine=engine) as archive:  # what is not local is decoded by the engine
        inos = (archive.resolve(f"small/{number}").ino for number in range(30, 60))
        ino, (extent,) = next((ino, extents) for ino in inos if len(extents := archive.extents(ino)) == 1)
        with ThreadPoolExecutor(8) as executor:
            contents = set(executor.map(lambda _: archive.read(ino, 0, 5000), range(8)))
        assert len(contents) == 1
        last = (extent.stream_offset + extent.size - 1) // archive.block_size
        assert engine.num_decoded == last - extent.stream_offset // archive.block_size + 1


def test_a_local_archive_is_decoded_without_the_interpreter(
    sound_archive: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C++ threads decode without calling the engine, and their work is counted as the engine's."""
    monkeypatch.setattr(CpuEngine, "decode_blocks", None)
    with Archive(sound_archive) as archive:
        for name, content in source_files(tree):
            assert archive.read(archive.resolve(name).ino, 0, len(content)) == content
        work = archive.engine.decode_work["cpu"]
        assert (work.num_blocks, work.num_bytes) == (
            archive.num_blocks,
            sum(segment.blocks.uncompressed_size for segment in archive.segments),
        )
        assert work.seconds > 0
        assert archive.blocks.num_cached == archive.num_blocks


@settings(max_examples=33, deadline=None)
@given(data=st.data())
def test_ranges_that_are_decoded_to_memory(sound_archive: Path, tree: Path, data: st.DataObject) -> None:
    with Archive(sound_archive, engine=select_engine("cpu")) as archive:
        name = data.draw(st.sampled_from(["big/noise", "big/text", "sparse", "small/11", "big/zeros"]))
        content = (tree / name).read_bytes()
        start = data.draw(st.integers(0, len(content)))
        size = data.draw(st.integers(0, len(content) - start))
        out = bytearray(size)
        archive.decode_into(archive.resolve(name).ino, start, memoryview(out))
        assert out == content[start : start + size]
        assert archive.blocks.num_cached == 0


def test_damaged_ranges_are_not_decoded_to_memory(archive_copy: Path, tree: Path) -> None:
    """The error names the block. Ranges without damage are decoded, also by another engine than `cpu`."""
    content = (tree / "big/noise").read_bytes()
    for engine in (select_engine("cpu"), HeadEngine()):
        with Archive(archive_copy, engine=engine) as archive:
            ino = archive.resolve("big/noise").ino
            block = archive.extents(ino)[0].stream_offset // archive.block_size + 3
            with open(archive_copy, "r+b") as file:
                file.seek(int(archive.segments[0].blocks.archive_offsets[block]) + 100)
                file.write(b"damage")
            out = memoryview(bytearray(100_000))
            for start, size in ((0, 100_000), (3 * archive.block_size, 1)):
                with pytest.raises(CorruptBlockError) as caught:
                    archive.decode_into(ino, start, out[:size])
                assert caught.value.block == block
            for start in (0, 5 * archive.block_size + 1):
                archive.decode_into(ino, start, out[: archive.block_size])
                assert out[: archive.block_size] == content[start : start + archive.block_size]
            assert archive.blocks.num_cached == 0


def test_a_closed_archive_has_no_open_descriptor(sound_archive: Path) -> None:
    """Closing closes all descriptors even if the object is still referenced.

    Otherwise, the space of a deleted archive would not be freed.
    """

    def num_open() -> int:
        links = Path("/proc/self/fd").iterdir()
        return sum(os.path.lexists(link) and os.readlink(link) == str(sound_archive) for link in links)

    archive = Archive(sound_archive)
    ino = archive.resolve("big/noise").ino
    archive.read(ino, 0, 100)
    assert num_open() > 0
    archive.close()
    assert num_open() == 0


def test_an_archive_that_is_cut_off_while_it_is_read(archive_copy: Path) -> None:
    """Bytes that are gone give an error. Bytes still in the file, or decoded before, can be read."""
    with Archive(archive_copy, decode_ahead=0) as archive:
        noise = archive.resolve("big/noise").ino
        first = archive.read(noise, 0, 1)
        block = archive.extents(noise)[0].stream_offset // archive.block_size + 3
        os.truncate(archive_copy, int(archive.segments[0].blocks.archive_offsets[block]) + 100)
        with pytest.raises(CorruptBlockError):
            archive.read(noise, 0, 700_000)
        assert archive.read(noise, 0, 1) == first
        assert len(archive.read(noise, archive.block_size, 100)) == 100


def test_sequential_reading_decodes_ahead_and_nothing_twice(sound_archive: Path, tree: Path) -> None:
    with Archive(sound_archive) as archive:
        ino = archive.resolve("big/text").ino
        content = (tree / "big/text").read_bytes()
        pieces = [archive.read(ino, at, 8192) for at in range(0, len(content), 8192)]
        assert b"".join(pieces) == content
        assert archive.blocks.misses <= archive.num_blocks
        assert archive.blocks.hits > len(pieces) // 2


@pytest.mark.parametrize("step", [8192, -8192])
def test_reading_through_a_file_in_either_direction(sound_archive: Path, tree: Path, step: int) -> None:
    content = (tree / "big/text").read_bytes()
    misses = {}
    for decode_ahead in (0, 1 << 20):
        with Archive(sound_archive, decode_ahead=decode_ahead) as archive:
            ino = archive.resolve("big/text").ino
            for start in range(0, len(content), 8192)[:: step // 8192]:
                assert archive.read(ino, start, 8192) == content[start : start + 8192]
                time.sleep(0.0005)  # simulates a reader that processes the data
            misses[decode_ahead] = archive.blocks.misses
            assert archive.engine.decode_work["cpu"].num_blocks <= archive.num_blocks  # no block is decoded twice
    num_blocks = len(content) // archive.block_size
    assert misses[0] >= num_blocks
    assert misses[1 << 20] < num_blocks / 2


@pytest.mark.parametrize("stride", [3, -3, 4.5])
def test_reading_a_file_in_strides(tree: Path, tmp_path: Path, stride: float) -> None:
    """After three reads, the blocks of the next four are decoded, and none between them.

    Strides are recognised in the stream, so the file must lie in one part.
    """
    content = (tree / "big/text").read_bytes()
    pack(tmp_path / "a.gomp", tree, block_size=16 << 10)
    with Archive(tmp_path / "a.gomp", decode_ahead=1 << 20) as archive:
        ino = archive.resolve("big/text").ino
        (extent,) = archive.extents(ino)
        starts = [round((50 + number * stride) * archive.block_size) for number in range(7)]
        touched = {
            (extent.stream_offset + start + byte) // archive.block_size for start in starts for byte in (0, 2999)
        }

        def read(starts: list[int]) -> None:
            for start in starts:
                assert archive.read(ino, start, 3000) == content[start : start + 3000]

        read(starts[:3])
        misses = archive.blocks.misses
        deadline = time.monotonic() + 60
        while archive.blocks.num_cached < len(touched) and time.monotonic() < deadline:
            threading.Event().wait(0.01)
        assert {number for number in range(archive.num_blocks) if number in archive.blocks.reader} == touched
        read(starts[3:])
        assert archive.blocks.misses == misses


def test_a_program_that_reads_ahead_and_does_not_close(sound_archive: Path) -> None:
    """The thread that reads ahead ended the process with SIGABRT when the interpreter was going away."""
    program = (
        "import sys, gompfs\n"
        "file = gompfs.open(sys.argv[1], engine='cpu').open('big/noise', 'rb')\n"
        "for _ in range(10): file.read(50_000)\n"
    )
    command = [sys.executable, "-P", "-c", program, sound_archive]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_closing_while_reading_ahead(sound_archive: Path) -> None:
    before = set(threading.enumerate())
    for _ in range(20):
        with Archive(sound_archive) as archive:
            ino = archive.resolve("big/noise").ino
            for start in range(0, 200_000, 50_000):
                archive.read(ino, start, 50_000)
    archive.close()
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("gompfs")]


@pytest.fixture
def archive(sound_archive: Path) -> Iterator[Archive]:
    with Archive(sound_archive) as archive:
        yield archive


class TestPaths:
    @pytest.mark.parametrize("path", ["", "/", ".", "//./", b"/", "..", "../..", "small/..", "link/../.."])
    def test_root(self, archive: Archive, path: str | bytes) -> None:
        assert archive.resolve(path).ino == 1

    @pytest.mark.parametrize(
        "path",
        ["small/deep/deeper/leaf", "/link/deeper/leaf", b"absolute/leaf", "link/../deep/./deeper//leaf/"],
    )
    def test_through_links(self, archive: Archive, path: str | bytes) -> None:
        inode = archive.resolve(path)
        assert archive.read(inode.ino, 0, 100) == b"the leaf"

    def test_a_link_at_the_end(self, archive: Archive) -> None:
        assert stat.S_ISLNK(archive.resolve("link").mode)
        assert stat.S_ISDIR(archive.resolve("link", follow=True).mode)
        assert stat.S_ISLNK(archive.resolve("loop").mode)

    @pytest.mark.parametrize("path", ["nothing", "small/nothing", "small/deep/nothing/more", "link/nothing", b"\xff"])
    def test_missing(self, archive: Archive, path: str | bytes) -> None:
        with pytest.raises(EntryNotFoundError) as caught:
            archive.resolve(path)
        assert caught.value.archive == str(archive.path)
        assert caught.value.path

    @pytest.mark.parametrize("path", ["big/text/x", "loop/x", "sparse/.."])
    def test_a_file_is_not_a_directory(self, archive: Archive, path: str) -> None:
        with pytest.raises(EntryTypeError):
            archive.resolve(path)

    def test_following_a_loop(self, archive: Archive) -> None:
        with pytest.raises(EntryTypeError, match="symbolic links"):
            archive.resolve("loop", follow=True)

    def test_missing_inode(self, archive: Archive) -> None:
        for ino in (0, -1, 10**6):
            with pytest.raises(EntryNotFoundError):
                archive.inode(ino)

    def test_listing(self, archive: Archive, tree: Path) -> None:
        names = sorted(os.fsencode(name) for name in os.listdir(tree))
        entries = archive.index.directory(1)
        assert [entry.name for entry in entries] == names
        for entry in entries:
            assert archive.index.child(1, entry.name) == entry.inode == archive.inode(entry.inode.ino)
        assert archive.index.child(1, b"nothing") is None
        assert archive.index.directory(archive.resolve("sparse").ino) == []

    def test_walking(self, archive: Archive, tree: Path) -> None:
        paths = [path for path, _ in archive.walk()]
        assert paths == sorted(list_directory(tree), key=lambda path: path.split(b"/") if path else [])
        assert [path for path, _ in archive.walk("small/deep")] == [
            b"small/deep",
            b"small/deep/deeper",
            b"small/deep/deeper/leaf",
        ]
        assert [path for path, _ in archive.walk(b"/sparse/")] == [b"sparse"]

    def test_paths_of_inodes(self, archive: Archive) -> None:
        paths = archive.paths()
        assert set(paths) == {inode.ino for _, inode in archive.walk()}
        for ino, path in paths.items():
            assert archive.resolve(path).ino == ino


def test_verify_counts_everything(sound_archive: Path) -> None:
    seen: list[int] = []
    with Archive(sound_archive) as archive:
        report = verify_archive(archive, seen.append)
        stored = sum(segment.blocks.uncompressed_size for segment in archive.segments)
        assert (report.num_blocks, report.uncompressed_size) == (archive.num_blocks, stored)
        assert sum(seen) == stored
        assert report.compressed_size < archive.size
        assert report.is_sound


def open_files() -> list[str]:
    """Returns the paths of this process's descriptors; a path ends in "(deleted)" for files without a name."""
    links = [f"/proc/self/fd/{number}" for number in range(256)]
    return [os.readlink(link) for link in links if os.path.lexists(link)]


def test_an_index_that_comes_in_pieces(sound_archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single read returns at most 2 GiB, so the index may come in pieces; here the pieces are smaller."""
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, offset: pread(file, min(size, 4000), offset))
    with Archive(sound_archive) as archive:
        monkeypatch.undo()
        assert verify_archive(archive).is_sound


def test_an_index_that_does_not_fit_into_memory(
    sound_archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gompfs.index.image._MAX_IN_MEMORY", 10)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Archive(sound_archive) as archive:
        assert os.listdir(tmp_path) == []
        assert any(Path(link).is_relative_to(tmp_path) for link in open_files())
        assert verify_archive(archive).is_sound
