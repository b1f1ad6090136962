"""Archives whose text is stored as grammars: every engine gives the files as they were, and notices the same damage."""

from __future__ import annotations

import itertools
import random
import shutil
import stat
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from both_decoders import frame
from head_engine import HeadEngine
from oracle.archive import read_archive
from tree_helpers import add, list_archive, list_directory, pack

from gompfs.archive import Archive
from gompfs.codec import BlockStatus, Codec
from gompfs.engine import select_engine
from gompfs.errors import CorruptBlockError
from gompfs.model import WORD_SECTION, Inode

BLOCK_SIZE = 16 << 10
TADOC = {"codec": Codec.GOMPRESSO_TADOC, "block_size": BLOCK_SIZE}
ENGINES = ("cpu", "heads")
WORDS = [b"head", b"of", b"a part", b"word_1", b"\xce\xbb", b"(x, y)", b"don't", b"return"]


def text(size: int, seed: int) -> bytes:
    rng = random.Random(seed)
    lines = [b" ".join(rng.choices(WORDS, k=rng.randint(1, 9))) for _ in range(60)]
    return b"\n".join(rng.choices(lines, k=size // 20))[:size]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("text-parts") / "tree"
    (root / "more").mkdir(parents=True)
    for number in range(60):
        (root / f"more/{number}").write_bytes(text(number * 20, number))
    (root / "long").write_bytes(text(40_000, 1))
    (root / "nul").write_bytes(text(9000, 2) + b"\0" + text(500, 3))
    (root / "binary").write_bytes(b"\0" + text(3000, 4))
    (root / "crlf").write_bytes(text(5000, 5).replace(b"\n", b"\r\n"))
    (root / "latin-1").write_bytes(text(5000, 6).replace(b"part", b"p\xe4rt"))
    (root / "token").write_bytes(b"w" * 21_000 + text(1000, 7))
    (root / "spaces").write_bytes(b" a b ")
    return root


@pytest.fixture(scope="module")
def archive_path(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two segments of several parts."""
    path = tmp_path_factory.mktemp("text-parts") / "a.gomp"
    pack(path, tree, **TADOC, part_size=20_000)
    added = tree.with_name("added")
    added.mkdir()
    for number in range(60):  # contents that the archive does not have yet
        (added / f"added-{number}").write_bytes(text(number * 20, 100 + number))
    add(path, added, **TADOC, part_size=3000)
    return path


def open_archive(path: Path, engine: str) -> Archive:
    """Opens an archive with an engine by its name. `heads` opens the heads of parts itself."""
    return Archive(path, engine=HeadEngine() if engine == "heads" else select_engine(engine), verify=True)


def test_the_archive_has_what_the_tests_are_for(archive_path: Path) -> None:
    with open_archive(archive_path, "cpu") as archive:
        assert [section.kind for section in archive.sections].count(WORD_SECTION) == 2
        first, second = archive.segments
        assert {Codec.GOMPRESSO_BIT, Codec.GOMPRESSO_TADOC} <= set(first.codecs)
        assert Codec.GOMPRESSO_TADOC in second.codecs
        assert len(second.parts) > 5
        assert max(first.parts.sizes) > BLOCK_SIZE


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_read_all_files(engine: str, tree: Path, archive_path: Path) -> None:
    expected = list_directory(tree)
    with open_archive(archive_path, engine) as archive:
        seen = list_archive(archive)
        assert {path: seen[path].content for path in expected} == {
            path: item.content for path, item in expected.items()
        }


class Damaged(NamedTuple):
    """The statuses of all blocks of the stream, and the contents of all files; None for files that cannot be read."""

    statuses: list[BlockStatus]
    files: dict[bytes, bytes | None]


def read_all(path: Path) -> Damaged:
    """Reads everything with all engines and with the slow reader, which must agree."""
    found = []
    for engine in ENGINES:
        with open_archive(path, engine) as archive:
            blocks = archive.stored.decode_stream(range(archive.num_blocks))
            assert not any(any(block.content) for block in blocks if block.status is not BlockStatus.OK)
            files = {name: read_file(archive, inode) for name, inode in archive.walk() if stat.S_ISREG(inode.mode)}
            found.append(Damaged([block.status for block in blocks], files))
    assert found[0] == found[1]
    reading = read_archive(path.read_bytes())
    files = {name: entry.ino for name, entry in reading.paths.items() if stat.S_ISREG(entry.mode)}
    assert {name: reading.content(ino, verify=True) for name, ino in files.items()} == found[0].files
    return found[0]


def read_file(archive: Archive, inode: Inode) -> bytes | None:
    """Reads a file through the cache and past it."""
    out = bytearray(inode.size)
    try:
        content = archive.read(inode.ino, 0, inode.size)
    except CorruptBlockError:
        with pytest.raises(CorruptBlockError):
            archive.decode_into(inode.ino, 0, memoryview(out))
        return None
    archive.decode_into(inode.ino, 0, memoryview(out))
    assert out == content
    return content


Change = Callable[[bytes], bytes]


def flip(block: bytes) -> bytes:
    return block[:-20] + bytes([block[-20] ^ 1]) + block[-19:]


def with_codec(codec: Codec) -> Change:
    return lambda block: frame(codec, block[32:], *struct.unpack_from("<IQ", block, 12))


def with_size(difference: int) -> Change:
    def change(block: bytes) -> bytes:
        size, content_xxh3 = struct.unpack_from("<IQ", block, 12)
        return frame(Codec(block[4]), block[32:], size + difference, content_xxh3)

    return change


def zeros(block: bytes) -> bytes:
    return frame(Codec(block[4]), bytes(len(block) - 32), *struct.unpack_from("<IQ", block, 12))


HEADS: dict[str, tuple[Change, BlockStatus]] = {
    "a flipped bit": (flip, BlockStatus.BAD_CHECKSUM),
    "no head": (with_codec(Codec.GOMPRESSO_BIT), BlockStatus.BAD_HEADER),
    "no block": (lambda head: bytes(len(head)), BlockStatus.BAD_HEADER),
    "a pool of no bytes": (
        lambda head: with_size(-struct.unpack_from("<I", head, 12)[0])(head), BlockStatus.BAD_HEADER,
    ),
    "a larger pool": (with_size(1), BlockStatus.BAD_PAYLOAD),
    "zeros": (zeros, BlockStatus.BAD_PAYLOAD),
}  # fmt: skip


def change_file(path: Path, offset: int, size: int, change: Change) -> None:
    content = bytearray(path.read_bytes())
    changed = change(bytes(content[offset : offset + size]))
    assert len(changed) == size
    content[offset : offset + size] = changed
    path.write_bytes(content)


@pytest.mark.parametrize("name", HEADS)
def test_a_damaged_head(name: str, archive_path: Path, tmp_path: Path) -> None:
    """All blocks of its part are damaged, and no others."""
    change, status = HEADS[name]
    path = Path(shutil.copy(archive_path, tmp_path))
    with open_archive(archive_path, "cpu") as archive:
        segment = archive.segments[1]
        change_file(path, segment.parts.head_offsets[3], segment.parts.head_sizes[3], change)
        starts = list(itertools.accumulate((-(-size // BLOCK_SIZE) for size in segment.parts.sizes), initial=0))
        harmed = range(segment.first_block + starts[3], segment.first_block + starts[4])
    damaged = read_all(path)
    assert [number for number, found in enumerate(damaged.statuses) if found is not BlockStatus.OK] == list(harmed)
    assert {damaged.statuses[number] for number in harmed} == {status}
    assert None in damaged.files.values()


@pytest.mark.parametrize("codec", Codec)
def test_a_block_of_another_codec(codec: Codec, archive_path: Path, tmp_path: Path) -> None:
    """Parts with a head have blocks of gompresso-tadoc only, and other parts have none."""
    with open_archive(archive_path, "cpu") as archive:
        table, codecs = archive.segments[0].blocks, archive.segments[0].codecs
        numbers = [codecs.index(old) for old in (Codec.GOMPRESSO_TADOC, Codec.GOMPRESSO_BIT)]
        ranges = [(table.archive_offsets[number], table.compressed_sizes[number]) for number in numbers]
    for number, (offset, size) in zip(numbers, ranges, strict=True):
        path = Path(shutil.copy(archive_path, tmp_path))
        change_file(path, offset, size, with_codec(codec))
        statuses = read_all(path).statuses
        is_text = number == numbers[0]
        if codec is (Codec.GOMPRESSO_TADOC if is_text else Codec.GOMPRESSO_BIT):
            assert statuses[number] is BlockStatus.OK
        elif is_text or codec >= Codec.GOMPRESSO_TADOC:
            assert statuses[number] is BlockStatus.BAD_HEADER
        else:
            assert statuses[number] is BlockStatus.BAD_PAYLOAD


def test_a_damaged_section_of_words(archive_path: Path, tmp_path: Path) -> None:
    """Parts that have global words are damaged, and no others."""
    path = Path(shutil.copy(archive_path, tmp_path))
    with open_archive(archive_path, "cpu") as archive:
        table = next(section.blocks for section in archive.sections if section.kind == WORD_SECTION)
        change_file(path, table.archive_offsets[0], table.compressed_sizes[0], flip)
    statuses = Counter(read_all(path).statuses)
    assert statuses.keys() == {BlockStatus.OK, BlockStatus.BAD_PAYLOAD}


def test_words_that_share_long_prefixes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of a section may be too many for its compressed blocks. Then its blocks are not compressed."""
    monkeypatch.setattr("gompfs.codec.words._MIN_BYTES", 1000)
    words = b"".join(b"p" * 246 + b"%04x\n" % number for number in range(3000))
    content = words + b"x\n" + words
    path, file = tmp_path / "a.gomp", tmp_path / "file"
    file.write_bytes(content)
    pack(path, file, **{**TADOC, "words": "whitespace", "part_size": len(words), "block_size": 1 << 20})
    for engine in ENGINES:
        with open_archive(path, engine) as archive:
            (section,) = (section for section in archive.sections if section.kind == WORD_SECTION)
            (block,) = section.blocks.archive_offsets
            assert path.read_bytes()[block + 4] == Codec.STORED
            inode = archive.resolve("file")
            assert archive.read(inode.ino, 0, inode.size) == content
