"""The choice of the dictionary of a new archive: its size, and the samples that it is chosen from."""

from __future__ import annotations

import io
import itertools
import os
import random
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from dictionary_trees import BLOCK_SIZE, similar_text, write_tree
from tree_helpers import list_archive, list_directory, list_source, pack, without_inodes

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import Codec
from gompfs.errors import OptionError, PackError, UnreadableFileError
from gompfs.options import PackOptions
from gompfs.pack.sources import FileContent, SourceEntry, open_source, samples

MIB = 1 << 20


def dictionary_size(archive: Path) -> int:
    """Returns the size of the dictionary of an archive, or 0 if it has none."""
    with Archive(archive) as opened:
        return sum(each.blocks.uncompressed_size for each in opened.sections if each.kind == "dictionary")


def is_about(size: int, asked: int) -> bool:
    """Returns whether a dictionary has the size that was asked for: it consists of whole segments."""
    return 0.7 * asked <= size <= asked


@pytest.mark.parametrize(
    ("size", "expected"), [(4 * MIB - 1, 0), (4 * MIB, 256 << 10), (16 * MIB - 1, 256 << 10), (16 * MIB, MIB)]
)
@pytest.mark.parametrize("kind", ["file", "tar"])
def test_default_size(size: int, expected: int, kind: str, tmp_path: Path) -> None:
    source = tmp_path / "text"
    source.write_bytes(lines_of_many_phrases(size))
    if kind == "tar":
        with tarfile.open(tmp_path / "text.tar", "w") as tar:
            tar.add(source, "text")
        source = tmp_path / "text.tar"
    target = tmp_path / "a.gomp"
    pack(target, source, level=1)
    assert is_about(dictionary_size(target), expected)
    with Archive(target) as archive:
        assert archive.read(archive.resolve("text").ino, 0, size) == (tmp_path / "text").read_bytes()


def lines_of_many_phrases(size: int) -> bytes:
    """Returns text of more phrases than a block holds, so that blocks have few in common with their beginning."""
    rng = random.Random("phrases")
    phrases = [rng.randbytes(30).hex().encode() for _ in range(20_000)]
    text = b" ".join(rng.choices(phrases, k=size // 60 + 1))
    return text[:size]


def test_no_dictionary_where_it_saves_nothing(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(random.Random(1).randbytes(5 * MIB))
    pack(tmp_path / "a.gomp", tmp_path / "noise", level=1)
    assert dictionary_size(tmp_path / "a.gomp") == 0
    pack(tmp_path / "b.gomp", tmp_path / "noise", level=1, dictionary_size=1000)
    assert is_about(dictionary_size(tmp_path / "b.gomp"), 1000)


@pytest.mark.parametrize(
    "options",
    [
        {"codec": Codec.GOMPRESSO_TADOC},
        {"codec": Codec.GOMPRESSO_BYTE},
        {"codec": Codec.STORED},
        {},
    ],
)
def test_options_that_allow_no_dictionary(options: dict) -> None:
    PackOptions(**options, dictionary_size=0)
    with pytest.raises(OptionError, match="--codec gompresso-bit"):
        PackOptions(**options, dictionary_size=1)


def test_sizes() -> None:
    for size in (1, MIB):
        PackOptions(Codec.GOMPRESSO_BIT, dictionary_size=size)
    for size in (-1, MIB + 1):
        with pytest.raises(OptionError):
            PackOptions(Codec.GOMPRESSO_BIT, dictionary_size=size)


def test_the_option(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_tree(tmp_path / "tree")
    target = tmp_path / "a.gomp"
    command = ["pack", "-qf", "--codec", "gompresso-bit"]
    for value, size in (("8K", 8 << 10), ("none", 0), ("5000", 5000)):
        command = [
            "pack",
            "-qf",
            "--codec",
            "gompresso-bit",
            "--dictionary",
            value,
            str(tmp_path / "tree"),
            str(target),
        ]
        assert run(command) == 0
        assert is_about(dictionary_size(target), size)
    messages = {"2M": "larger than 1048576 bytes", "many": "must be a number", "-1": "must not be negative"}
    for value, message in messages.items():
        assert (
            run(["pack", "-qf", "--codec", "gompresso-bit", "--dictionary", value, str(tmp_path / "tree"), str(target)])
            == 2
        )
        assert message in capfd.readouterr().err
    assert run(["pack", "-qf", "--dictionary", "8K", str(tmp_path / "tree"), str(target)]) == 2
    assert "use --codec gompresso-bit" in capfd.readouterr().err


def test_the_same_tree_gives_the_same_archive(tmp_path: Path) -> None:
    write_tree(tmp_path / "tree")
    for name, jobs in (("a", 1), ("b", 4)):
        pack(tmp_path / f"{name}.gomp", tmp_path / "tree", dictionary_size=8 << 10, jobs=jobs, block_size=BLOCK_SIZE)
    assert (tmp_path / "a.gomp").read_bytes() == (tmp_path / "b.gomp").read_bytes()


# Samples


def test_a_sample_of_little_is_everything() -> None:
    pieces = [b"first", b"", b"second"]
    files = [FileContent(len(piece), lambda at, size, piece=piece: piece[at : at + size]) for piece in pieces]
    assert b"".join(samples.sample_files(files, 11)) == b"firstsecond"


@pytest.mark.parametrize("total", [17 * MIB, 64 * MIB + 5, 2000 * MIB, 9000 * MIB])
@pytest.mark.parametrize("file_size", [MIB // 3, 100 * MIB])
def test_a_sample_of_much_consists_of_windows(total: int, file_size: int) -> None:
    """They have equal distances, whatever the files are."""
    seen: list[tuple[int, int]] = []

    def files() -> Iterator[FileContent]:
        for start in range(0, total, file_size):

            def read_at(at: int, size: int, start: int = start) -> bytes:
                if seen and sum(seen[-1]) == start + at:
                    seen[-1] = seen[-1][0], seen[-1][1] + size
                else:
                    seen.append((start + at, size))
                return b""

            yield FileContent(min(file_size, total - start), read_at)

    samples.sample_files(files(), total)
    num_bytes = sum(size for _, size in seen)
    assert 15 * MIB <= num_bytes <= 64 * MIB
    assert num_bytes >= min(total // 64, 63 * MIB) - MIB
    starts = [start for start, _ in seen]
    assert len({later - earlier for earlier, later in itertools.pairwise(starts)}) == 1
    assert {size for _, size in seen[:-1]} == {MIB}


def test_files_that_cannot_be_read_are_left_out_of_a_sample(tmp_path: Path) -> None:
    (tmp_path / "tree/sub").mkdir(parents=True)
    for name in ("a", "gone", "sub/b", "excluded"):
        (tmp_path / "tree" / name).write_bytes(name.encode())
    source = open_source(tmp_path / "tree", exclude=["excluded"])
    files = list(source.files())
    assert [file.size for file in files] == [10]
    assert source.total_size == 10
    (tmp_path / "tree/gone").unlink()
    assert samples.sample_files(files, 10) == [b"asub/b"]


# Reading ahead


@pytest.fixture
def odd_tar(shared_odd_tree: Path, tmp_path: Path) -> Path:
    """A tar of the odd tree, with sparse members."""
    path = tmp_path / "odd.tar"
    assert os.system(f"tar -C {shared_odd_tree} --sparse --xattrs --format=pax -cf {path} .") == 0
    return path


@pytest.mark.parametrize("limit", [1, 1000, 1 << 20, 1 << 30])
@pytest.mark.parametrize("max_entries", [3, 1 << 16])
def test_entries_that_were_read_ahead_are_the_same(
    limit: int, max_entries: int, odd_tar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "_MAX_AHEAD", limit)
    monkeypatch.setattr(samples, "_MAX_ENTRIES_AHEAD", max_entries)

    class Ahead:
        def entries(self) -> Iterator[SourceEntry]:
            return samples.ReadAhead(open_source(odd_tar).entries()).entries()

    assert list_source(Ahead()) == list_source(open_source(odd_tar))  # type: ignore[arg-type]


def test_pack_of_a_tar_with_a_dictionary(shared_odd_tree: Path, odd_tar: Path, tmp_path: Path) -> None:
    """Holes, links and attributes are as without a dictionary."""
    expected = without_inodes(list_directory(shared_odd_tree))
    for size in (0, 3000):
        target = tmp_path / f"{size}.gomp"
        pack(target, odd_tar, dictionary_size=size)
        with Archive(target) as archive:
            assert without_inodes(list_archive(archive)) == expected
            extents = [archive.extents(inode.ino) for _, inode in archive.walk()]
        assert is_about(dictionary_size(target), size)
        if size == 0:
            first = extents
    assert [[extent.size for extent in each] for each in extents] == [
        [extent.size for extent in each] for each in first
    ]


def test_reads_of_a_sparse_entry(tmp_path: Path) -> None:
    """Any range of an entry that was read ahead, in holes and data."""
    content = bytearray(50_000)
    for start in (0, 10_000, 30_000):
        content[start : start + 3000] = similar_text(str(start), 3000)

    class Sparse(SourceEntry):
        def read_at(self, file_offset: int, size: int) -> bytes:
            return bytes(content[file_offset : file_offset + size])

    ranges = [(0, 3000), (10_000, 3000), (30_000, 3000)]
    ahead = samples.ReadAhead(iter([Sparse(b"file", 0o100644, size=50_000, data_ranges=ranges)]))
    assert ahead.size == 9000
    assert b"".join(ahead.sample()) == b"".join(content[start : start + size] for start, size in ranges)
    (entry,) = ahead.entries()
    assert entry.data_ranges == ranges


def test_a_file_that_cannot_be_read_is_left_out_later(tmp_path: Path) -> None:
    class Unreadable(SourceEntry):
        def read_at(self, file_offset: int, size: int) -> bytes:
            raise UnreadableFileError("cannot read", path=b"file")

    entries = iter([Unreadable(b"file", 0o100644, size=9), SourceEntry(b"folder", 0o040755)])
    for number, entry in enumerate(samples.ReadAhead(entries).entries()):
        if number == 0:
            with pytest.raises(UnreadableFileError):
                entry.read_all()
        else:
            assert entry.path == b"folder"


def test_a_tar_that_ends_inside_a_file(tmp_path: Path) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        member = tarfile.TarInfo("text")
        member.size = 100_000
        tar.addfile(member, io.BytesIO(similar_text("cut", 100_000)))
    (tmp_path / "cut.tar").write_bytes(file.getvalue()[:50_000])
    with pytest.raises(PackError, match="ends inside"):
        pack(tmp_path / "a.gomp", tmp_path / "cut.tar", dictionary_size=1000)
    assert not (tmp_path / "a.gomp").exists()
