"""`gompfs repack`: the same tree in a new archive."""

from __future__ import annotations

import json
import os
import random
import stat
import tracemalloc
from pathlib import Path

import pytest
from forged_index import forge_index
from manifests import GOLDEN, GOLDEN_ARCHIVES
from oracle.block import build_block
from tree_helpers import Seen, add, list_archive, list_directory, pack

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import BLOCK_HEADER_SIZE, Codec, parse_block_header
from gompfs.engine import select_engine
from gompfs.model import MAX_TIME_NS
from gompfs.options import PackOptions
from gompfs.pack import open_source, pack_archive
from gompfs.repack import ArchiveSource
from gompfs.verify import verify_archive

Output = pytest.CaptureFixture[bytes]


def contents(path: Path) -> dict[bytes, Seen]:
    with Archive(path, engine=select_engine("cpu")) as archive:
        assert verify_archive(archive).is_sound
        return list_archive(archive)


def facts(path: Path, capture: Output) -> dict[str, object]:
    capture.readouterr()
    assert run(["info", "--json", str(path)]) == 0
    found: dict[str, object] = json.loads(capture.readouterr().out)
    return found


def test_a_difficult_tree(shared_odd_tree: Path, tmp_path: Path) -> None:
    """All metadata, links and holes are kept, also those of an archive of two generations."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more/file").write_text("more")
    os.link(tmp_path / "more/file", tmp_path / "more/link")
    pack(tmp_path / "old.gomp", shared_odd_tree, part_size=30_000, block_size=16384)
    add(tmp_path / "old.gomp", tmp_path / "more")
    before = (tmp_path / "old.gomp").read_bytes()
    assert run(["repack", "-q", str(tmp_path / "old.gomp"), str(tmp_path / "new.gomp")]) == 0
    assert contents(tmp_path / "new.gomp") == contents(tmp_path / "old.gomp")
    assert set(list_directory(shared_odd_tree)) < set(contents(tmp_path / "new.gomp"))
    assert (tmp_path / "old.gomp").read_bytes() == before
    with Archive(tmp_path / "new.gomp") as archive:
        assert (archive.footer.generation, archive.block_size) == (1, 16384)
        assert archive.sections == []


@pytest.mark.parametrize("name", GOLDEN_ARCHIVES)
def test_golden_archives(name: str, tmp_path: Path, capfdbinary: Output) -> None:
    """Repacked archives have the same content and word counts."""
    old, new = GOLDEN / f"{name}.gomp", tmp_path / "new.gomp"
    assert run(["repack", "-q", str(old), str(new)]) == 0
    with Archive(old) as before, Archive(new) as after:
        assert list_archive(after) == list_archive(before)
        assert after.meta["words"] == before.meta["words"]
        assert verify_archive(after).is_sound
    answers = []
    for archive in (old, new):
        capfdbinary.readouterr()
        assert run(["stats", str(archive), "wordcount"]) == 0
        answers.append(capfdbinary.readouterr().out)
    # The archive `foreign` lists a text file as binary, which the packer does not do.
    assert (answers[0] == answers[1]) is (name != "foreign")


@pytest.mark.parametrize(
    "options",
    [
        PackOptions(),
        PackOptions(Codec.GOMPRESSO_BIT, dictionary_size=65536),
        PackOptions(Codec.GOMPRESSO_BIT, part_size=50_000),
    ],
    ids=["default", "dictionary", "parts"],
)
def test_the_same_bytes_as_pack(options: PackOptions, tmp_path: Path) -> None:
    """Repacking with the same options gives the same archive, although contents and metadata come from the old one."""
    engine = select_engine("cpu")
    for folder in range(3):
        (tmp_path / f"tree/{folder}").mkdir(parents=True)
        for number in range(300):
            (tmp_path / f"tree/{folder}/{number}").write_bytes(b"%d of %d\n" % (number, folder) * (number % 70))
        (tmp_path / f"tree/{folder}/150-link").symlink_to("150")
        os.link(tmp_path / f"tree/{folder}/200", tmp_path / f"tree/{folder}/200-link")
    (tmp_path / "tree/large").write_bytes(b"a line of a large file\n" * 100_000)
    # Files that are read in pieces; once is enough, since they take most of the time.
    for name in ("larger", "larger-again") if options == PackOptions() else ():
        (tmp_path / f"tree/{name}").write_bytes(random.Random(1).randbytes(9_000_001))
    pack_archive([open_source(tmp_path / "tree")], tmp_path / "old.gomp", options, engine=engine)
    with Archive(tmp_path / "old.gomp", engine=engine) as archive:
        pack_archive([ArchiveSource(archive)], tmp_path / "new.gomp", options, engine=engine)
    assert (tmp_path / "new.gomp").read_bytes() == (tmp_path / "old.gomp").read_bytes()


def test_times_at_the_limits(tmp_path: Path) -> None:
    """All times that the index can store are kept, also before 1970 and where the second before could not be stored."""
    times = [MAX_TIME_NS, MAX_TIME_NS - 10**9, 1_234_567_890_123_456_789, 1, 0, -1, -(10**9), 1 - 10**9, -MAX_TIME_NS]
    (tmp_path / "tree").mkdir()
    for number in range(len(times)):
        (tmp_path / f"tree/{number}").write_text("text")
    pack(tmp_path / "old.gomp", tmp_path / "tree")
    changes = [f"UPDATE inode SET mtime_ns = {time} WHERE ino = {ino}" for ino, time in enumerate(times, 2)]
    forge_index(tmp_path / "old.gomp", *changes)
    assert run(["repack", "-q", str(tmp_path / "old.gomp"), str(tmp_path / "new.gomp")]) == 0
    for path in (tmp_path / "old.gomp", tmp_path / "new.gomp"):
        with Archive(path) as archive:
            assert [archive.resolve(str(number)).mtime_ns for number in range(len(times))] == times


def test_the_first_of_many_damaged_files(tmp_path: Path, capfdbinary: Output) -> None:
    """Files come many at a time, and the first that needs a damaged block is named."""
    (tmp_path / "tree").mkdir()
    names = [f"{number:03}" for number in range(100)]
    for name in names:
        (tmp_path / "tree" / name).write_bytes(os.urandom(5000))
    archive, block = tmp_path / "old.gomp", 15
    pack(archive, tmp_path / "tree", block_size=16384)
    with Archive(archive) as opened:
        (first, *_) = (
            name
            for name in names
            for extent in opened.extents(opened.resolve(name).ino)
            if extent.stream_offset + extent.size > block * 16384
        )
        place = list(opened.index.segments()[0].blocks.archive_offsets)[block]
    content = bytearray(archive.read_bytes())
    content[place + 100] ^= 1
    archive.write_bytes(content)
    assert run(["repack", "-q", str(archive), str(tmp_path / "new.gomp")]) == 1
    reason = f"{first}: block {block}: the compressed bytes do not match their checksum"
    assert capfdbinary.readouterr().err.decode() == f"gompfs: {archive}: {reason}\n"


def test_a_damaged_block_of_a_large_file(tmp_path: Path, capfdbinary: Output) -> None:
    """Ranges of it are decoded ahead; the first damaged block is named."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/large").write_bytes(os.urandom(9_000_000))
    archive, block = tmp_path / "old.gomp", 70
    pack(archive, tmp_path / "tree")
    with Archive(archive) as opened:
        places = list(opened.index.segments()[0].blocks.archive_offsets)
    content = bytearray(archive.read_bytes())
    for place in (places[block], places[block + 40]):
        content[place + 100] ^= 1
    archive.write_bytes(content)
    assert run(["repack", "-q", "--dictionary", "none", str(archive), str(tmp_path / "new.gomp")]) == 1
    reason = f"large: block {block}: the compressed bytes do not match their checksum"
    assert capfdbinary.readouterr().err.decode() == f"gompfs: {archive}: {reason}\n"


def test_holes_take_no_space(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    with open(tmp_path / "tree/sparse", "wb") as file:
        for place in (5 << 20, 50 << 20):
            file.seek(place)
            file.write(b"data" * 1000)
        file.truncate(100 << 20)
    with open(tmp_path / "tree/all-hole", "wb") as file:
        file.truncate(1 << 30)
    pack(tmp_path / "old.gomp", tmp_path / "tree")
    assert run(["repack", "-q", str(tmp_path / "old.gomp"), str(tmp_path / "new.gomp")]) == 0
    with Archive(tmp_path / "new.gomp") as archive, Archive(tmp_path / "old.gomp") as old:
        for name in ("sparse", "all-hole"):
            expected, found = (opened.extents(opened.resolve(name).ino) for opened in (old, archive))
            assert [(e.file_offset, e.size) for e in found] == [(e.file_offset, e.size) for e in expected]
            assert archive.resolve(name).size == old.resolve(name).size


def test_options(shared_odd_tree: Path, tmp_path: Path, capfdbinary: Output) -> None:
    """Text is stored in parts, or as an option says."""
    old, new = tmp_path / "old.gomp", tmp_path / "new.gomp"
    options = PackOptions(block_size=32768, words="letters")
    pack_archive([open_source(shared_odd_tree)], old, options, engine=select_engine("cpu"))
    bit = ["--codec", "gompresso-bit", "--dictionary", "none", "--level", "1"]
    for arguments, words, block_size, codec in (
        ([], "letters", 32768, "gompresso-tadoc"),
        (["--words", "whitespace"], "whitespace", 32768, "gompresso-tadoc"),
        (["--codec", "gompresso-byte"], "letters", 32768, "gompresso-byte"),
        (["-b", "128K", *bit], "letters", 131072, "gompresso-bit"),
    ):
        assert run(["repack", "-fq", *arguments, str(old), str(new)]) == 0
        found = facts(new, capfdbinary)
        assert found["block_size"] == block_size
        assert codec in found["codecs"]
        assert found["meta"]["words"] == words


def test_an_archive_may_replace_itself(shared_odd_tree: Path, tmp_path: Path, capfdbinary: Output) -> None:
    archive = tmp_path / "a.gomp"
    pack(archive, shared_odd_tree)
    before = contents(archive)
    assert run(["repack", str(archive), str(archive)]) == 1
    assert b"the file exists; use --force" in capfdbinary.readouterr().err
    assert run(["repack", "-f", str(archive), str(archive)]) == 0
    assert b" entries, " in capfdbinary.readouterr().out
    assert contents(archive) == before


def test_a_damaged_archive(tmp_path: Path, capfdbinary: Output) -> None:
    """One line names the file, and nothing is written."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/noise").write_bytes(os.urandom(200_000))
    archive = tmp_path / "a.gomp"
    pack(archive, tmp_path / "tree")
    content = bytearray(archive.read_bytes())
    content[100_000] ^= 1
    archive.write_bytes(content)
    assert run(["repack", str(archive), str(tmp_path / "new.gomp")]) == 1
    error = capfdbinary.readouterr().err.decode()
    assert error == (f"gompfs: {archive}: noise: block 1: the compressed bytes do not match their checksum\n")
    assert not (tmp_path / "new.gomp").exists()


def test_targets_that_are_refused(shared_odd_tree: Path, tmp_path: Path, capfdbinary: Output) -> None:
    archive, other = tmp_path / "a.gomp", tmp_path / "text"
    pack(archive, shared_odd_tree)
    other.write_text("not an archive")
    for target, status, reason in (
        (str(other), 1, "the file exists"),
        ("-", 2, "cannot be written to standard output"),
        (str(tmp_path / "missing/new.gomp"), 1, "No such file or directory"),
    ):
        capfdbinary.readouterr()
        assert run(["repack", str(archive), target]) == status
        assert reason in capfdbinary.readouterr().err.decode()
    assert run(["repack", "-f", str(archive), str(other)]) == 1
    assert "not a gompfs archive" in capfdbinary.readouterr().err.decode()
    assert stat.S_ISREG(other.stat().st_mode)
    assert other.read_text() == "not an archive"
    assert run(["repack", str(tmp_path / "none"), str(tmp_path / "new.gomp")]) == 1


def test_content_of_a_wrong_checksum(tmp_path: Path, capfdbinary: Output) -> None:
    """The new archive would have right checksums for content that `verify` finds damaged in the old one."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/noise").write_bytes(os.urandom(30_000))
    archive = tmp_path / "a.gomp"
    pack(archive, tmp_path / "tree")
    with Archive(archive) as opened:
        blocks = opened.segments[0].blocks
        begin, size = int(blocks.archive_offsets[0]), int(blocks.compressed_sizes[0])
    content = bytearray(archive.read_bytes())
    header = parse_block_header(content[begin : begin + size])
    payload = bytes(content[begin + BLOCK_HEADER_SIZE : begin + size])
    content[begin : begin + size] = build_block(header.codec, payload, bytes(30_000)).data
    archive.write_bytes(content)
    assert run(["repack", str(archive), str(tmp_path / "new.gomp")]) == 1
    assert b"noise: block 0: the decompressed bytes do not match their checksum" in capfdbinary.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["a.gomp", "tree"]


def test_memory_of_deep_directories(tmp_path: Path) -> None:
    """The walk does not keep the paths of all directories that it is in."""
    depth = 800
    (tmp_path / "tree").mkdir()
    pack(tmp_path / "a.gomp", tmp_path / "tree")
    numbers = f"WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {depth})"
    forge_index(
        tmp_path / "a.gomp",
        f"INSERT INTO inode {numbers} SELECT n + 1, {0o40755}, 0, 0, 0, 0, 3, 0, NULL FROM number",
        f"INSERT INTO dirent {numbers} SELECT n, CAST('{'d' * 255}' AS BLOB), n + 1 FROM number",
        f"UPDATE meta SET value = '{depth + 2}' WHERE key = 'next_ino'",
    )
    with Archive(tmp_path / "a.gomp") as archive:
        tracemalloc.start()
        try:
            assert sum(1 for _ in ArchiveSource(archive).entries()) == depth + 1
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 20 << 20  # all paths together have 82 MB
