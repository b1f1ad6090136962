"""Adding files that the archive has: their contents are not stored again, and unchanged files are not read."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dictionary_trees import similar_text
from forged_index import forge_index
from tree_helpers import add, list_archive, list_directory, pack, write_files

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.model import PartKind
from gompfs.options import PackOptions
from gompfs.pack import PackReport, add_to_archive, open_source
from gompfs.pack.archived_files import ArchivedFiles
from gompfs.pack.sources import local_file
from gompfs.verify import verify_archive

MIB = 1 << 20
CODECS = [Codec.GOMPRESSO_TADOC, Codec.GOMPRESSO_BIT, Codec.STORED]
NUM_FILES = 10  # regular files of a tree, hard links counted once


@pytest.fixture(scope="module")
def made_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text and binary files, small, large, empty, sparse and equal ones, links and extended attributes."""
    root = tmp_path_factory.mktemp("made") / "tree"
    rng = random.Random(7)
    contents = {f"texts/{number}": similar_text(f"text {number}", 20_000 + number) for number in range(3)}
    contents |= {"texts/copy": contents["texts/1"], "deep/er/abc": b"abc", "empty": b""}
    contents |= {"noise/small": b"\0" + rng.randbytes(90_000), "noise/large": rng.randbytes(5 * MIB + 1)}
    contents |= {"texts/large": similar_text("large", 300_000) * 15}
    write_files(root, contents)
    with open(root / "sparse", "wb") as file:
        for place in (200_000, 6 * MIB):
            file.seek(place)
            file.write(rng.randbytes(70_000))
        file.truncate(9 * MIB)
    os.link(root / "noise/small", root / "linked")
    os.symlink("texts/1", root / "symlink")
    os.setxattr(root / "texts/0", "user.kind", b"text")
    for codec in CODECS:
        pack(root.with_name(f"{codec.label}.gomp"), root, codec=codec)
    return root


@pytest.fixture
def tree(made_tree: Path, tmp_path: Path) -> Path:
    subprocess.run(["cp", "-a", made_tree, tmp_path / "tree"], check=True)
    return tmp_path / "tree"


@pytest.fixture(params=CODECS, ids=lambda codec: codec.label)
def codec(request: pytest.FixtureRequest) -> Codec:
    return request.param


@pytest.fixture
def archive(made_tree: Path, tree: Path, tmp_path: Path, codec: Codec) -> Path:
    """An archive of the tree."""
    shutil.copy(made_tree.with_name(f"{codec.label}.gomp"), tmp_path / "a.gomp")
    return tmp_path / "a.gomp"


def touch(root: Path, nanoseconds: int = 5) -> None:
    """Gives all files other modification times."""
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            status = path.stat()
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + nanoseconds))


def num_blocks(archive: Path) -> int:
    with Archive(archive) as opened:
        return opened.num_blocks


def check(archive: Path, tree: Path) -> None:
    """The archive has exactly what is in the tree, and is sound."""
    with Archive(archive, verify=True) as opened:
        assert list_archive(opened) == list_directory(tree)
        assert verify_archive(opened).is_sound
        for path, inode in opened.walk():
            assert opened.stored_size(inode) == inode.size or path == b"sparse"


def counts(report: PackReport) -> tuple[int, int, int]:
    return report.num_unchanged, report.num_archived, report.stream_size


def test_an_unchanged_tree_is_not_read(tree: Path, archive: Path, codec: Codec) -> None:
    blocks = num_blocks(archive)
    for _ in range(2):
        with no_reads():
            report = add(archive, tree, codec=codec)
        assert counts(report) == (NUM_FILES, 0, 0)
        assert report.size > 18 * MIB
        assert num_blocks(archive) == blocks
        assert report.added_size < 60_000
        check(archive, tree)


@contextmanager
def no_reads() -> Iterator[None]:
    """Has reads of contents of local files fail, but those of runs, which C++ reads."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("read_at", "read_all", "open"):
            patch.setattr(local_file.LocalFileEntry, name, None)
        yield


def test_files_with_other_times(tree: Path, archive: Path, codec: Codec) -> None:
    blocks = num_blocks(archive)
    touch(tree)
    report = add(archive, tree, codec=codec)
    assert counts(report) == (0, NUM_FILES - 1, 0)  # an empty file has no content
    assert (num_blocks(archive), report.num_duplicates) == (blocks, 0)
    check(archive, tree)


@pytest.mark.parametrize(
    ("codec", "codec_of_add"), [*zip(CODECS, CODECS[1:] + CODECS[:1], strict=True)], indirect=["codec"]
)
def test_files_with_other_paths(tree: Path, archive: Path, codec_of_add: Codec, tmp_path: Path) -> None:
    """Also if new contents would be stored in another codec."""
    blocks = num_blocks(archive)
    (tmp_path / "both").mkdir()
    shutil.copytree(tree, tmp_path / "both/moved", symlinks=True)
    os.rename(tree / "sparse", tmp_path / "both/moved/sparse")  # in the place of a copy, which has no holes
    os.remove(tmp_path / "both/moved/linked")  # which is a copy, not a link
    report = add(archive, tmp_path / "both", codec=codec_of_add)
    assert counts(report) == (0, NUM_FILES - 1, 0)
    assert num_blocks(archive) == blocks
    with Archive(archive, verify=True) as opened:
        archived, expected = list_archive(opened), list_directory(tmp_path / "both")
        assert {path for path in expected if archived[path].content != expected[path].content} == set()
        assert verify_archive(opened).is_sound


@pytest.mark.parametrize(
    ("codec", "name"),
    [
        *((CODECS[0], name) for name in ("texts/1", "noise/small", "noise/large", "texts/large", "sparse")),
        (CODECS[1], "texts/large"),
        (CODECS[2], "deep/er/abc"),
    ],
    indirect=["codec"],
)
def test_a_change_that_keeps_size_and_time(tree: Path, archive: Path, codec: Codec, name: str) -> None:
    """Only --checksum finds it."""
    before, status = list_directory(tree), (tree / name).stat()
    with open(tree / name, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\1")
    os.utime(tree / name, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert counts(add(archive, tree, codec=codec)) == (NUM_FILES, 0, 0)
    with Archive(archive) as opened:
        assert list_archive(opened) == before
    report = add(archive, tree, codec=codec, checksum=True)
    assert report.num_unchanged == 0
    assert report.num_archived == NUM_FILES - 2
    with Archive(archive, verify=True) as opened:
        assert list_archive(opened) == list_directory(tree)
        assert verify_archive(opened).is_sound


def test_metadata_of_unchanged_files(tree: Path, archive: Path, codec: Codec) -> None:
    os.chmod(tree / "texts/1", 0o640)
    os.chmod(tree / "noise/large", 0o400)
    os.setxattr(tree / "texts/0", "user.kind", b"prose")
    os.setxattr(tree / "linked", "user.new", b"")
    report = add(archive, tree, codec=codec)
    assert counts(report) == (NUM_FILES, 0, 0)
    check(archive, tree)
    os.removexattr(tree / "texts/0", "user.kind")
    assert counts(add(archive, tree, codec=codec)) == (NUM_FILES, 0, 0)
    check(archive, tree)


def test_names_and_types_that_change(tree: Path, archive: Path, codec: Codec) -> None:
    """Hard links that come and go; a symlink that becomes a file of its size and time, and the other way round."""
    status = os.lstat(tree / "symlink")
    (tree / "symlink").unlink()
    (tree / "symlink").write_bytes(b"x" * status.st_size)
    os.utime(tree / "symlink", ns=(status.st_atime_ns, status.st_mtime_ns))
    (tree / "linked").unlink()
    os.link(tree / "texts/0", tree / "linked")
    (tree / "deep/er/abc").unlink()
    os.symlink("abc", tree / "deep/er/abc")
    report = add(archive, tree, codec=codec)
    # The file that was linked is the first of its names, and has the content of another file there.
    assert counts(report) == (NUM_FILES - 2, 1, status.st_size)
    check(archive, tree)
    (tree / "linked").unlink()
    shutil.copy2(tree / "texts/0", tree / "linked")
    report = add(archive, tree, codec=codec)
    assert counts(report) == (NUM_FILES + 1, 0, 0)
    check(archive, tree)


def test_a_directory_in_the_place_of_a_file(tree: Path, archive: Path, codec: Codec) -> None:
    content = (tree / "texts/1").read_bytes()
    (tree / "texts/1").unlink()
    write_files(tree, {"texts/1/inside": content})
    report = add(archive, tree, codec=codec)
    assert counts(report) == (NUM_FILES - 1, 1, 0)
    check(archive, tree)


def test_equal_files_below_a_prefix_and_alone(tree: Path, archive: Path, codec: Codec, tmp_path: Path) -> None:
    options, engine = PackOptions(codec), select_engine("cpu")
    moved = [open_source(tree, prefix="a/b")]
    assert add_to_archive(archive, moved, options, engine=engine).num_archived == NUM_FILES - 1
    again = [open_source(tree, prefix="a/b")]
    assert counts(add_to_archive(archive, again, options, engine=engine)) == (NUM_FILES, 0, 0)
    alone = [open_source(tree / "texts/1", prefix="a/b/texts")]
    assert counts(add_to_archive(archive, alone, options, engine=engine)) == (1, 0, 0)
    several = [open_source(tree / "texts", alone=False), open_source(tree / "empty", alone=False)]
    assert counts(add_to_archive(archive, several, options, engine=engine)) == (6, 0, 0)
    with Archive(archive) as opened:
        assert verify_archive(opened).is_sound
        assert opened.read(opened.resolve("a/b/texts/1").ino, 0, MIB) == (tree / "texts/1").read_bytes()


def test_times_that_are_stored_are_not_those_of_the_files(tree: Path, tmp_path: Path) -> None:
    """With --mtime, no file counts as unchanged, but no content is stored again."""
    archive = tmp_path / "a.gomp"
    pack(archive, tree, mtime_ns=77)
    for _ in range(2):
        assert counts(add(archive, tree, mtime_ns=77)) == (0, NUM_FILES - 1, 0)


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "zip"])
def test_members_are_always_read(tmp_path: Path, suffix: str, codec: Codec) -> None:
    """Their times are coarse. What the archive has is not stored again, in whatever order members come."""
    contents = {f"{number}": similar_text(f"member {number}", 3000) for number in range(30)}
    contents["noise"] = b"\0" + random.Random(1).randbytes(100_000)
    write_files(tmp_path / "in", contents)
    archive = tmp_path / "a.gomp"
    pack(archive, tmp_path / "in", codec=codec)
    names = list(contents)
    random.Random(2).shuffle(names)
    packed = tmp_path / f"members.{suffix}"
    changed = b"changed" + contents["7"][7:]
    if suffix == "zip":
        with zipfile.ZipFile(packed, "w") as file:
            for name in names:
                file.writestr(zipfile.ZipInfo(name), changed if name == "7" else contents[name])
    else:
        (tmp_path / "in/7").write_bytes(changed)
        with tarfile.open(packed, f"w:{'gz' if suffix == 'tar.gz' else ''}") as file:
            for name in names:
                file.add(tmp_path / "in" / name, name)
    report = add(archive, packed, codec=codec)
    assert counts(report) == (0, 30, len(b"changed"))
    with Archive(archive, verify=True) as opened:
        assert verify_archive(opened).is_sound
        for name, content in (contents | {"7": changed}).items():
            assert opened.read(opened.resolve(name).ino, 0, MIB) == content


def test_the_same_bytes_with_any_number_of_threads(tree: Path, archive: Path, codec: Codec) -> None:
    touch(tree)
    (tree / "texts/new").write_bytes(similar_text("new", 50_000))
    results = []
    for jobs in (1, 4):
        copy = archive.with_name(f"{jobs}.gomp")
        shutil.copy(archive, copy)
        options = PackOptions(codec, jobs=jobs)
        add_to_archive(copy, [open_source(tree)], options, engine=select_engine("cpu", jobs))
        results.append(copy.read_bytes())
    assert results[0] == results[1]


# Damage


def flip(archive: Path, block: int) -> None:
    """Changes a byte of a block of the stream."""
    with Archive(archive) as opened:
        for segment in opened.segments:
            if segment.first_block <= block < segment.first_block + len(segment.blocks):
                table, number = segment.blocks, block - segment.first_block
                offset = table.archive_offsets[number] + table.compressed_sizes[number] - 1
    with open(archive, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def test_damaged_contents_are_stored_anew(tree: Path, archive: Path, codec: Codec) -> None:
    with Archive(archive) as opened:
        names = ("texts/1", "noise/small", "noise/large", "texts/large", "sparse")
        last = [opened.extents(opened.resolve(name).ino)[-1] for name in names]
        damaged = {(extent.stream_offset + extent.size - 1) // opened.block_size for extent in last}
    for block in damaged:
        flip(archive, block)
    report = add(archive, tree, codec=codec, checksum=True)
    assert report.num_unchanged == 0
    assert report.stream_size >= sum((tree / name).stat().st_size for name in names if name.startswith("noise"))
    with Archive(archive, verify=True) as opened:
        assert list_archive(opened) == list_directory(tree)


@pytest.mark.parametrize(
    ("codec", "forged"),
    [
        (CODECS[0], "stream_offset = stream_offset + 1000000000"),
        (CODECS[1], "stream_offset = 9223372036854775807"),
        (CODECS[0], "file_offset = file_offset + 1"),
        (CODECS[2], "file_offset = 9223372036854775807 - file_offset"),
        (CODECS[0], "size = size + 1"),
        (CODECS[1], "size = 9223372036854775807"),
        (CODECS[2], "size = 0"),
    ],
    indirect=["codec"],
)
def test_impossible_extents_are_not_taken_over(tree: Path, archive: Path, codec: Codec, forged: str) -> None:
    """Such files are read and stored, so that the newest generation is sound."""
    with Archive(archive) as opened:
        sparse = opened.resolve("sparse").ino  # whose extents may lie anywhere in it
    forge_index(archive, f"UPDATE extent SET {forged} WHERE ino != {sparse}")
    report = add(archive, tree, codec=codec)
    assert report.num_unchanged == 2  # that one, and the empty one
    check(archive, tree)


def test_impossible_files_are_not_taken_over(tree: Path, archive: Path, codec: Codec) -> None:
    with Archive(archive) as opened:
        ino = opened.resolve("texts/0").ino
        other = opened.resolve("texts/large").ino
    forge_index(
        archive,
        f"DELETE FROM extent WHERE ino = {other}",  # a hole as large as the file
        f"INSERT INTO extent VALUES ({ino}, 7, 0, 5)",  # overlaps the other
    )
    report = add(archive, tree, codec=codec)
    assert report.num_unchanged == NUM_FILES - 1  # what the index says of the hole is possible
    with Archive(archive) as opened:
        assert opened.read(opened.resolve("texts/0").ino, 0, MIB) == (tree / "texts/0").read_bytes()
    report = add(archive, tree, codec=codec, checksum=True)
    assert 0 < report.stream_size <= (tree / "texts/large").stat().st_size
    check(archive, tree)


# Which files can be taken


def test_files_of_an_archive(tree: Path, archive: Path, codec: Codec) -> None:
    with Archive(archive) as opened:
        files = ArchivedFiles(opened)
        assert set(files.directories) == {b"", b"texts", b"noise", b"deep", b"deep/er"}
        assert files.find(b"nowhere") == {}
        assert set(files.find(b"noise")) == {b"small", b"large"}
        assert set(files.find(b"")) == {b"empty", b"linked", b"sparse"}
        assert files.find(b"")[b"linked"].ino == files.find(b"noise")[b"small"].ino
        columns = files.columns
        for path, inode in opened.walk():
            index = columns.index_of(inode.ino)
            assert (index is not None) == (path in list_directory(tree) and (inode.mode >> 12) == 0o10)
            if index is not None:
                assert columns.extents(index) == opened.extents(inode.ino)
                assert columns.sizes[index] == inode.size
                assert columns.stored_sizes[index] == opened.stored_size(inode)
                assert files.is_binary(inode.ino) == (inode.ino in opened.index.binary_files())
        assert columns.index_of(0) is None
        assert columns.index_of(1 << 60) is None
        kinds = {PartKind(kind) for kind in columns.part_table[1:, 3].tolist()}
        assert (PartKind.DATA in kinds) or codec is not Codec.STORED
