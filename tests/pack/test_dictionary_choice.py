"""The choice of the dictionary of a new archive: its size, and what it is chosen from."""

from __future__ import annotations

import io
import os
import random
import tarfile
from pathlib import Path

import pytest
from dictionary_trees import BLOCK_SIZE, similar_text, write_tree
from tree_helpers import list_archive, list_directory, pack, without_inodes

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.errors import OptionError, PackError
from gompfs.model import PartKind
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, dictionary, open_source, stream

MIB = 1 << 20


def dictionary_size(archive: Path) -> int:
    """Returns the size of the dictionary of an archive, or 0 if it has none."""
    with Archive(archive) as opened:
        return sum(each.blocks.uncompressed_size for each in opened.sections if each.kind == "dictionary")


def is_about(size: int, asked: int) -> bool:
    """Returns whether a dictionary has the size that was asked for: it consists of whole segments."""
    return 0.7 * asked <= size <= asked


@pytest.mark.parametrize(
    ("size", "expected", "kind"),
    [
        (4 * MIB - 1, 0, "file"),
        (4 * MIB, 256 << 10, "file"),
        (4 * MIB, 256 << 10, "tar"),
        (16 * MIB - 1, 256 << 10, "file"),
        (16 * MIB, MIB, "file"),
    ],
)
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
        {"codec": Codec.GOMPRESSO_BYTE},
        {"codec": Codec.STORED},
    ],
)
def test_options_that_allow_no_dictionary(options: dict) -> None:
    PackOptions(**options, dictionary_size=0)
    with pytest.raises(OptionError, match="or gompresso-bit"):
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
    assert run(["pack", "-qf", "--codec", "stored", "--dictionary", "8K", str(tmp_path / "tree"), str(target)]) == 2
    assert "use --codec gompresso-tadoc or gompresso-bit" in capfd.readouterr().err


def test_the_same_tree_gives_the_same_archive(tmp_path: Path) -> None:
    write_tree(tmp_path / "tree")
    for name, jobs in (("a", 1), ("b", 4)):
        pack(tmp_path / f"{name}.gomp", tmp_path / "tree", dictionary_size=8 << 10, jobs=jobs, block_size=BLOCK_SIZE)
    assert (tmp_path / "a.gomp").read_bytes() == (tmp_path / "b.gomp").read_bytes()


@pytest.fixture
def odd_tar(shared_odd_tree: Path, tmp_path: Path) -> Path:
    """A tar of the odd tree, with sparse members."""
    path = tmp_path / "odd.tar"
    assert os.system(f"tar -C {shared_odd_tree} --sparse --xattrs --format=pax -cf {path} .") == 0
    return path


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


def binary_lines(seed: str, size: int) -> bytes:
    """Returns content that is not text, of phrases that all such contents have."""
    rng = random.Random(seed)
    phrases = [random.Random(number).randbytes(24) for number in range(20_000)]
    return b"\0" + b"".join(phrase + rng.randbytes(3) for phrase in rng.choices(phrases, k=size // 27))


def test_files_beside_text_have_a_dictionary(tmp_path: Path) -> None:
    """It is chosen from them alone. An `add` uses it."""
    tree = tmp_path / "tree"
    (tree / "new").mkdir(parents=True)
    (tree / "text").write_bytes(b"one two three\n" * 500_000)
    for number in range(10):
        (tree / f"binary-{number}").write_bytes(binary_lines(str(number), 500_000))
    report = pack(tmp_path / "a.gomp", tree, codec=Codec.GOMPRESSO_TADOC)
    smaller = pack(tmp_path / "none.gomp", tree, codec=Codec.GOMPRESSO_TADOC, dictionary_size=0)
    assert report.archive_size < smaller.archive_size * 0.95
    assert is_about(dictionary_size(tmp_path / "a.gomp"), 256 << 10)
    (tree / "new/binary").write_bytes(binary_lines("new", 200_000))
    engine = select_engine("cpu")
    add_to_archive(tmp_path / "a.gomp", [open_source(tree)], PackOptions(), engine=engine)
    with Archive(tmp_path / "a.gomp", verify=True) as archive:
        assert list_archive(archive) == list_directory(tree)
        kinds = [set(segment.parts.kinds) for segment in archive.segments]
    assert kinds == [{PartKind.GRAMMAR, PartKind.DICTIONARY}, {PartKind.DICTIONARY}]


def test_the_beginning_of_the_stream_is_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after it has no influence on the dictionary, nor has the number of threads or the size of parts."""
    monkeypatch.setattr(stream, "SAMPLE_SIZE", 8 * MIB)
    monkeypatch.setattr(dictionary, "SAMPLE_SIZE", 8 * MIB)
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "1").write_bytes(lines_of_many_phrases(9 * MIB))
    (tmp_path / "b/2").write_bytes(random.Random(2).randbytes(9 * MIB))
    sections = []
    for name, jobs in (("a", 1), ("b", 2)):
        pack(tmp_path / f"{name}.gomp", tmp_path / name, jobs=jobs, part_size=100_000, level=1)
        with Archive(tmp_path / f"{name}.gomp") as archive:
            assert list_archive(archive) == list_directory(tmp_path / name)
            (section,) = (each for each in archive.sections if each.kind == "dictionary")
            table = section.blocks
            content = (tmp_path / f"{name}.gomp").read_bytes()
            places = zip(table.archive_offsets, table.compressed_sizes, strict=True)
            sections.append([content[offset : offset + size] for offset, size in places])
    assert sections[0] == sections[1]
