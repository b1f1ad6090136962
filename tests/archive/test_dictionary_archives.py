"""Archives with a dictionary: reading, adding, repacking, and what damage of the dictionary does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest
from dictionary_trees import BLOCK_SIZE, OPTIONS, similar_text, write_tree
from forged_index import forge_index
from tree_helpers import add, list_archive, list_directory, pack

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import BlockStatus, Codec
from gompfs.engine import select_engine
from gompfs.errors import CorruptBlockError, CorruptIndexError
from gompfs.model import PartKind
from gompfs.repack import repack_archive
from gompfs.verify import verify_archive

KEPT = b"what an add without the dictionary wrote\n"
Break = Callable[[Path], object]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("dictionary") / "tree"
    write_tree(root)
    return root


@pytest.fixture(scope="module")
def packed(tree: Path) -> Path:
    target = tree.with_name("packed.gomp")
    pack(target, tree, **OPTIONS)
    return target


@pytest.fixture
def grown(packed: Path, tmp_path: Path) -> Path:
    """The archive, and a generation of another codec, which does not need the dictionary."""
    target = tmp_path / "grown.gomp"
    target.write_bytes(packed.read_bytes())
    (tmp_path / "kept").write_bytes(KEPT)
    add(target, tmp_path / "kept", codec=Codec.GOMPRESSO_BYTE)
    return target


def dictionary_block(archive: Path) -> tuple[int, int]:
    """Returns archive_offset and compressed_size of the first block of the dictionary."""
    with Archive(archive) as opened:
        (section,) = (each for each in opened.sections if each.kind == "dictionary")
        return section.blocks.archive_offsets[0], section.blocks.compressed_sizes[0]


@pytest.mark.parametrize("engine", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("verify", [False, True])
def test_everything_is_the_same(engine: str, verify: bool, tree: Path, packed: Path) -> None:
    with Archive(packed, engine=select_engine(engine), verify=verify) as archive:
        assert list_archive(archive) == list_directory(tree)
        (segment,) = archive.segments
        assert bytes(segment.parts.kinds) == bytes([PartKind.DICTIONARY])
        assert set(segment.codecs) == {Codec.GOMPRESSO_BIT_DICTIONARY}
        assert [section.kind for section in archive.sections] == ["dictionary"]


def test_it_is_smaller_than_without(tree: Path, packed: Path, tmp_path: Path) -> None:
    pack(tmp_path / "without.gomp", tree, block_size=BLOCK_SIZE)
    assert packed.stat().st_size < 0.9 * (tmp_path / "without.gomp").stat().st_size


def test_verify(packed: Path, grown: Path) -> None:
    for path in (packed, grown):
        with Archive(path) as archive:
            assert verify_archive(archive).is_sound


def test_a_file_on_a_server(packed: Path, tree: Path) -> None:
    """An archive that is not a local file reads its dictionary through the file object."""

    store = fsspec.filesystem("memory")
    store.pipe("/dictionary.gomp", packed.read_bytes())
    with Archive("memory://dictionary.gomp") as archive:
        assert list_archive(archive) == list_directory(tree)


def test_an_add_uses_the_dictionary(grown: Path, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more/new").write_bytes(similar_text("new", 60_000))
    (tmp_path / "more/noise").write_bytes(os.urandom(2 * BLOCK_SIZE))
    before = grown.stat().st_size
    add(grown, tmp_path / "more")
    added = grown.stat().st_size - before
    pack(tmp_path / "alone.gomp", tmp_path / "more", block_size=BLOCK_SIZE)
    assert added < (tmp_path / "alone.gomp").stat().st_size
    with Archive(grown) as archive:
        kinds = [bytes(segment.parts.kinds) for segment in archive.segments]
        assert kinds == [bytes([PartKind.DICTIONARY]), bytes([PartKind.DATA]), bytes([PartKind.DICTIONARY])]
        assert set(archive.segments[2].codecs) == {Codec.STORED, Codec.GOMPRESSO_BIT_DICTIONARY}
        for name in ("new", "noise"):
            content = (tmp_path / "more" / name).read_bytes()
            assert archive.read(archive.resolve(name).ino, 0, 60_000) == content
        assert verify_archive(archive).is_sound


def test_an_add_of_text_as_grammars(grown: Path, tmp_path: Path) -> None:
    """Data beside parts of text uses the dictionary; text does not."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more/text").write_bytes(similar_text("text", 60_000))
    (tmp_path / "more/data").write_bytes(b"\0" + similar_text("data", 60_000))
    add(grown, tmp_path / "more", codec=Codec.GOMPRESSO_TADOC)
    with Archive(grown) as archive:
        kinds = archive.segments[-1].parts.kinds
        assert kinds[0] == PartKind.DICTIONARY
        assert set(kinds[1:]) == {PartKind.GRAMMAR}
        for name in ("text", "data"):
            content = (tmp_path / "more" / name).read_bytes()
            assert archive.read(archive.resolve(name).ino, 0, 1 << 20) == content
        assert verify_archive(archive).is_sound


def test_repack_makes_another_dictionary(grown: Path, tree: Path, tmp_path: Path) -> None:
    target = tmp_path / "again.gomp"
    with Archive(grown) as archive:
        repack_archive(archive, target, codec=Codec.GOMPRESSO_BIT, dictionary_size=4096)
        seen = list_archive(archive)
    with Archive(target) as archive:
        assert list_archive(archive) == seen
        (section,) = archive.sections
        assert section.kind == "dictionary"
        assert 3000 < section.blocks.uncompressed_size <= 4096
        assert verify_archive(archive).is_sound
    with Archive(grown) as archive:
        repack_archive(archive, target, codec=Codec.GOMPRESSO_BIT, dictionary_size=0, force=True)
    with Archive(target) as archive:
        assert archive.sections == []
        assert list_archive(archive) == seen


def test_repair_keeps_the_dictionary(packed: Path, tree: Path, tmp_path: Path) -> None:
    target = tmp_path / "damaged.gomp"
    content = bytearray(packed.read_bytes())
    content[-200] ^= 1
    target.write_bytes(content + b"half an add")
    assert run(["repair", str(target)]) == 0
    assert target.read_bytes() == packed.read_bytes()


def test_commands(packed: Path, tree: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Commands that read files, search them, and count words without a grammar."""
    text = (tree / "texts/0").read_text()
    line = text.splitlines()[5]
    assert run(["cat", str(packed), "texts/0"]) == 0
    assert capfd.readouterr().out == text
    assert run(["grep", "-F", line, str(packed), "texts"]) == 0
    assert line in capfd.readouterr().out
    assert run(["info", str(packed)]) == 0
    printed = capfd.readouterr().out
    assert "section dictionary, segment 0" in printed
    assert "codec gompresso-bit-dictionary" in printed
    assert run(["ls", "-l", str(packed)]) == 0
    assert run(["extract", str(packed), "-C", str(tmp_path)]) == 0
    assert list_directory(tmp_path / "texts") == list_directory(tree / "texts")
    capfd.readouterr()
    assert run(["stats", str(packed), "wordcount"]) == 0
    words = subprocess.run(
        ["sh", "-c", r"cat texts/* | LC_ALL=C tr -cs '[:alnum:]_\200-\377' '\n' | grep -c ."],
        cwd=tree, capture_output=True, text=True, check=True,
    )  # fmt: skip
    counts = [int(row.rsplit("\t", 1)[1]) for row in capfd.readouterr().out.splitlines()]
    assert sum(counts) >= int(words.stdout) - 2  # words that a file ends in go on in the next one in `cat`


def flip_block(path: Path) -> None:
    offset, size = dictionary_block(path)
    with open(path, "r+b") as file:
        file.seek(offset + size - 1)
        last = file.read(1)
        file.seek(offset + size - 1)
        file.write(bytes([last[0] ^ 1]))


BREAKS: dict[str, tuple[Break, BlockStatus]] = {
    "damaged": (flip_block, BlockStatus.BAD_CHECKSUM),
    "missing": (lambda path: forge_index(path, "DELETE FROM section"), BlockStatus.BAD_HEADER),
    "of another segment": (lambda path: forge_index(path, "UPDATE section SET segment = 1"), BlockStatus.BAD_HEADER),
    "empty": (
        lambda path: forge_index(path, "UPDATE section SET uncompressed_size = 0, compressed_sizes = x''"),
        BlockStatus.BAD_HEADER,
    ),
    "beginning inside a block": (
        lambda path: forge_index(path, "UPDATE section SET archive_offset = archive_offset + 16"),
        BlockStatus.BAD_HEADER,
    ),
}


@pytest.mark.parametrize("engine", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", BREAKS)
def test_a_damaged_dictionary_damages_what_uses_it(name: str, engine: str, grown: Path) -> None:
    """Other files, names and metadata can be read."""
    change, status = BREAKS[name]
    change(grown)
    with Archive(grown, engine=select_engine(engine)) as archive:
        kept = archive.resolve("kept")
        for path in ("texts/0", "noise"):
            with pytest.raises(CorruptBlockError) as caught:
                archive.read(archive.resolve(path).ino, 0, 10)
            assert status.reason in caught.value.message
        assert archive.read(kept.ino, 0, 100) == KEPT
        report = verify_archive(archive)
        assert {damage.status for damage in report.damages if damage.section is None} == {status}
        assert len(report.damages) >= len(archive.segments[0].blocks)
        assert bool(report.problems) == (name != "damaged")


@pytest.mark.parametrize("name", BREAKS)
def test_an_add_to_a_damaged_dictionary(name: str, grown: Path, tree: Path, tmp_path: Path) -> None:
    """It is refused, or does without a dictionary if there is none. The archive stays as it was, or is sound after."""
    BREAKS[name][0](grown)
    before = grown.read_bytes()
    (tmp_path / "more").write_bytes(similar_text("more", 1000))
    if name in ("missing", "of another segment"):
        add(grown, tmp_path / "more")
        with Archive(grown) as archive:
            assert archive.segments[-1].parts.kinds[0] == PartKind.DATA
            assert archive.read(archive.resolve("more").ino, 0, 1000) == similar_text("more", 1000)
        return
    with pytest.raises((CorruptBlockError, CorruptIndexError), match="dictionary"):
        add(grown, tmp_path / "more")
    assert grown.read_bytes() == before


def test_a_dictionary_that_is_too_large(packed: Path, tmp_path: Path) -> None:
    """No more than 1 MiB is decoded: all files are damaged. The blocks lie one after another, as those of the file."""
    target = tmp_path / "a.gomp"
    pack(target, packed.with_name("tree"), block_size=1 << 20, dictionary_size=8 << 10)
    (tmp_path / "large").write_bytes(os.urandom(100) + bytes(2 << 20))
    add(target, tmp_path / "large", codec=Codec.GOMPRESSO_BYTE)
    forge_index(
        target,
        "UPDATE section SET (uncompressed_size, archive_offset, compressed_sizes) ="
        " (SELECT 2097252, archive_offset, compressed_sizes FROM segment WHERE number = 1)",
    )
    with Archive(target) as archive:
        assert archive.read(archive.resolve("large").ino, 0, 200)[100:] == bytes(100)
        with pytest.raises(CorruptBlockError):
            archive.read(archive.resolve("texts/0").ino, 0, 10)
        assert any("the dictionary has 2097252 bytes" in problem.reason for problem in archive.problems())


def test_a_child_of_a_fork(packed: Path, tree: Path) -> None:
    """The child reads the dictionary again."""
    expected = (tree / "texts/0").read_bytes()
    with Archive(packed) as archive:
        ino = archive.resolve("texts/0").ino
        assert archive.read(ino, 0, 1000) == expected[:1000]
        child = os.fork()
        if child == 0:
            os._exit(archive.read(ino, 50_000, 20_000) != expected[50_000:70_000])
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert archive.read(ino, 80_000, 20_000) == expected[80_000:]
