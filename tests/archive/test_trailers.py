"""Damage to the frame of an archive: superblock, generation headers, both copies of an index."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from uuid import UUID

import pytest
from forged_index import index_columns, replace_stored_index
from oracle.block import build_block
from test_index_bombs import run_in_bounds
from tree_helpers import add, list_archive, list_directory
from xxhash import xxh3_64_intdigest as xxh3

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.errors import ArchiveFormatError, CorruptIndexError, PackError
from gompfs.format import (
    GENERATION_HEADER_SIZE,
    SUPERBLOCK_SIZE,
    Footer,
    GenerationHeader,
    Link,
    LocalFile,
    Superblock,
    TrailerPosition,
    align,
    decode_columns,
    encode_columns,
    walk_chain,
)
from gompfs.pack.repair import repair_archive
from gompfs.verify import verify_archive


def flip(path: Path, archive_offset: int) -> None:
    with open(path, "r+b") as file:
        byte = os.pread(file.fileno(), 1, archive_offset)[0]
        os.pwrite(file.fileno(), bytes([byte ^ 4]), archive_offset)


def links_of(path: Path) -> list[Link]:
    file = LocalFile.open(path)
    superblock = Superblock.from_bytes(file.read(SUPERBLOCK_SIZE, 0))
    links = list(walk_chain(file, superblock, file.size()))
    file.close()
    return links


def names(path: Path) -> set[bytes]:
    with Archive(path) as archive:
        assert archive.warnings == []
        assert verify_archive(archive).is_sound
        return {name for name in list_archive(archive) if name.startswith(b"file")}


def parts_of_trailer(position: TrailerPosition, copy: int) -> list[int]:
    """Returns offsets in a copy of an index: header, payload and last byte of its blocks, and fields of its footer."""
    begin, footer = position.copy_offset(copy), position.footer_offset(copy)
    return [begin, begin + 40, begin + position.index_size - 1, *range(footer, footer + 96, 13), footer + 95]


@pytest.mark.parametrize("copy", [0, 1])
def test_one_damaged_copy(added: Path, copy: int, tree: Path) -> None:
    """The other copy is used, verify reports the damage, and repair writes the copy again."""
    whole = added.read_bytes()
    position = links_of(added)[-1].position
    for offset in parts_of_trailer(position, copy):
        flip(added, offset)
        with Archive(added) as archive:
            assert archive.footer.copy == 1 - copy
            assert len(archive.warnings) == copy, "copy 1 is read first"
            assert all("copy 1 of the index" in warning for warning in archive.warnings)
            seen = list_archive(archive)
            assert {path: seen[path].content for path in list_directory(tree)} == {
                path: item.content for path, item in list_directory(tree).items()
            }
            (problem,) = verify_archive(archive).problems
            assert problem.reason.startswith(f"generation 3: copy {copy} of the index: ")
        if copy == 1:
            with pytest.raises(PackError, match="nothing can be added before gompfs repair"):
                add(added, tree / "small")
        (step,) = repair_archive(added, dry_run=True)
        assert step == f"generation 3: copy {copy} of its index is damaged: it would be written again"
        (step,) = repair_archive(added)
        assert step.endswith("it was written again")
        assert added.read_bytes() == whole
    assert names(added) == {b"file-2", b"file-3"}


def test_both_copies_damaged(added: Path) -> None:
    """The archive is refused, and repair goes back to the generation before."""
    whole = added.read_bytes()
    links = links_of(added)
    for copy in (0, 1):
        flip(added, links[-1].position.copy_offset(copy) + 100)
    damaged = added.read_bytes()
    with pytest.raises(CorruptIndexError, match="gompfs repair may mend it, or goes back to generation 2"):
        Archive(added)
    with pytest.raises(CorruptIndexError):
        add(added, added.parent / "file-2")
    assert added.read_bytes() == damaged
    (step,) = repair_archive(added)
    assert "they have a later generation, but both copies of its index are damaged" in step
    assert added.read_bytes() == whole[: links[-2].position.end]
    assert added.with_name("copy.gomp.cut").read_bytes() == damaged[links[-2].position.end :]
    assert names(added) == {b"file-2"}


def test_both_copies_of_the_only_generation_damaged(archive_copy: Path) -> None:
    (link,) = links_of(archive_copy)
    for copy in (0, 1):
        flip(archive_copy, link.position.footer_offset(copy) + 20)
    with pytest.raises(CorruptIndexError, match="both copies of the index are damaged") as caught:
        Archive(archive_copy)
    assert str(caught.value).endswith("; gompfs repair may mend it")
    with pytest.raises(ArchiveFormatError, match="no generation can be repaired: both copies"):
        list(repair_archive(archive_copy))


def test_damage_of_an_earlier_index(added: Path) -> None:
    """The newest index has changes of it. verify reports it, and repair writes a copy if the other is intact."""
    whole = added.read_bytes()
    position = links_of(added)[1].position
    flip(added, position.copy_offset(0) + 50)
    with Archive(added) as archive:
        assert not archive.warnings
        (problem,) = verify_archive(archive).problems
        assert problem.reason.startswith("generation 2: copy 0 of the index: ")
    assert len(list(repair_archive(added))) == 1
    assert added.read_bytes() == whole
    flip(added, position.copy_offset(1) + 50)
    with Archive(added) as archive:
        (warning,) = archive.warnings
        assert "copy 1 of the index of generation 2: " in warning
        assert archive.footer.generation == 3
    flip(added, position.copy_offset(0) + 50)
    with pytest.raises(CorruptIndexError, match="both copies of the index of generation 2, which is needed, are dam"):
        Archive(added)
    (step,) = repair_archive(added, discard=True)
    assert "they have a later generation, but an index that it needs is damaged" in step
    with Archive(added) as archive:
        assert archive.footer.generation == 1


@pytest.mark.parametrize("field", range(0, GENERATION_HEADER_SIZE, 9))
def test_a_damaged_generation_header(added: Path, field: int) -> None:
    """The generation before is shown, and repair writes the header again, as the footers tell what it must be."""
    whole = added.read_bytes()
    links = links_of(added)
    for damaged in ([1], [2], [1, 2]):
        for number in damaged:
            flip(added, links[number].start + field)
        with Archive(added) as archive:
            assert archive.footer.generation == damaged[0]
            assert archive.num_ignored_bytes == len(whole) - links[damaged[0] - 1].position.end
        before = added.read_bytes()
        (step,) = repair_archive(added, dry_run=True)
        assert step == f"generation {damaged[0] + 1}: its header is damaged: it would be written again"
        assert added.read_bytes() == before
        assert len(list(repair_archive(added))) == len(damaged)
        assert added.read_bytes() == whole
    assert names(added) == {b"file-2", b"file-3"}


def test_a_generation_header_with_much_damage(added: Path) -> None:
    """Two bytes are written again. With three, or a zeroed sector, the header may be that of an interrupted add."""
    whole = added.read_bytes()
    link = links_of(added)[2]
    for field in (0, 17, 36, 61):
        flip(added, link.start + field)
        flip(added, link.start + field + 1)
        (step,) = repair_archive(added)
        assert step == "generation 3: its header is damaged: it was written again"
        assert added.read_bytes() == whole
    header = whole[link.start : link.start + GENERATION_HEADER_SIZE]
    inverted = bytes(byte ^ 255 for byte in header)
    for other in (bytes(len(header)), inverted, header[:30] + inverted[30:33] + header[33:]):
        damaged = whole[: link.start] + other + whole[link.start + len(other) :]
        added.write_bytes(damaged)
        (step,) = repair_archive(added)
        assert "bytes after generation 2 are not a complete generation" in step
        assert names(added) == {b"file-2"}
        kept = added.with_name(added.name + ".cut")
        assert added.read_bytes() + kept.read_bytes() == damaged
        kept.unlink()


def test_a_damaged_header_of_a_generation_that_is_not_whole(added: Path) -> None:
    """Without intact footers up to the end of the file, nothing is written again."""
    whole = added.read_bytes()
    links = links_of(added)
    ends = links[0].position.end
    flip(added, links[1].start + 3)
    damaged = added.read_bytes()
    for size in (
        len(whole) - 1,
        len(whole) - 96,
        links[2].position.copy_end(0),
        links[1].position.copy_end(0),
        ends + 100,
    ):
        added.write_bytes(damaged[:size])
        (step,) = repair_archive(added, discard=True)
        assert f"{size - ends} bytes after generation 1 are not a complete generation" in step
        assert added.read_bytes() == whole[:ends]
    added.write_bytes(damaged)
    for copy in (0, 1):
        flip(added, links[1].position.copy_offset(copy) + 40)  # its index is lost, which generation 3 needs
    assert len(list(repair_archive(added))) == 2
    with Archive(added) as archive:
        assert (archive.footer.generation, archive.warnings) == (1, [])


def test_a_header_of_another_generation_or_archive(added: Path) -> None:
    content = bytearray(added.read_bytes())
    start = links_of(added)[-1].start
    header = GenerationHeader.from_bytes(content[start : start + GENERATION_HEADER_SIZE])
    for forged in (header._replace(generation=4), header._replace(uuid=UUID(int=7).bytes)):
        content[start : start + GENERATION_HEADER_SIZE] = forged.to_bytes()
        added.write_bytes(content)
        with Archive(added) as archive:
            assert archive.footer.generation == 2


def test_cut_at_any_size(added: Path) -> None:
    """The last generation with a complete copy of its index is shown; before the first one, there is an error."""
    whole = added.read_bytes()
    links = links_of(added)
    readable = [(link.position.copy_end(0), link.generation) for link in links]
    edges = [edge + near for edge, _ in readable for near in (-1, 0, 1)]
    edges += [link.position.end + near for link in links for near in (-1, 0, 1)]
    edges += [link.start + near for link in links for near in (0, 1, 63, 64)]
    edges.remove(len(whole) + 1)
    for size in sorted({*edges, *random.Random(1).sample(range(len(whole)), 60)}):
        added.write_bytes(whole[:size])
        expected = max((number for end, number in readable if end <= size), default=0)
        if not expected:
            with pytest.raises(ArchiveFormatError):
                Archive(added)
            continue
        with Archive(added) as archive:
            assert archive.footer.generation == expected
            is_whole = size == links[expected - 1].position.end
            assert bool(archive.warnings) is not is_whole
        if size % 7 == 0 and not is_whole:
            steps = list(repair_archive(added, discard=True))
            assert steps
            assert added.read_bytes() == whole[: links[expected - 1].position.end]


def test_an_add_that_wrote_all_but_its_header(added: Path) -> None:
    """The header is written last, so the generation does not count; repair moves it away."""
    content = bytearray(added.read_bytes())
    link = links_of(added)[-1]
    uuid = Superblock.from_bytes(content[:SUPERBLOCK_SIZE]).uuid
    content[link.start : link.start + GENERATION_HEADER_SIZE] = GenerationHeader(3, uuid).to_bytes()
    added.write_bytes(content)
    with Archive(added) as archive:
        assert archive.footer.generation == 2
        assert "an add is running or was interrupted" in archive.warnings[0]
    with pytest.raises(PackError, match="nothing can be added"):
        add(added, added.parent / "file-2")
    assert len(list(repair_archive(added))) == 1
    assert names(added) == {b"file-2"}


IMPOSSIBLE = {
    "no index": {"index_offset": 0, "index_size": 0},
    "an index of no bytes": {"index_size": 0},
    "an index in the superblock": {"index_offset": 48},
    "an odd offset": {"index_offset": 4097},
    "an index after the file": {"index_offset": 1 << 40},
    "the largest offset": {"index_offset": (1 << 64) - 16},
    "the largest size": {"index_size": (1 << 64) - 1},
    "another size": {"index_size": 100},
}


@pytest.mark.parametrize("fields", [pytest.param(value, id=key) for key, value in IMPOSSIBLE.items()])
def test_a_superblock_with_impossible_fields(archive_copy: Path, fields: dict[str, int]) -> None:
    content = bytearray(archive_copy.read_bytes())
    superblock = Superblock.from_bytes(content[:SUPERBLOCK_SIZE])
    content[:SUPERBLOCK_SIZE] = superblock._replace(**fields).to_bytes()
    archive_copy.write_bytes(content)
    with pytest.raises(ArchiveFormatError) as caught:
        Archive(archive_copy)
    assert caught.value.archive == str(archive_copy)


@pytest.mark.parametrize(
    "field", ["generation", "start", "index_size", "columns_size", "columns_xxh3", "previous_footer"]
)
def test_footers_that_belong_to_another_index(archive_copy: Path, field: str) -> None:
    columns = index_columns(archive_copy)
    replace_stored_index(archive_copy, encode_columns(columns, []), columns, **{field: 99})
    with pytest.raises(CorruptIndexError, match="both copies"):
        Archive(archive_copy)


def test_copies_that_differ(archive_copy: Path) -> None:
    """A reader sees one of them; verify notices."""
    columns = bytearray(index_columns(archive_copy))
    (link,) = links_of(archive_copy)
    content = bytearray(archive_copy.read_bytes())
    position = columns.find(b"small")
    columns[position : position + 5] = b"small"[::-1]
    for copy, own in enumerate((bytes(columns), index_columns(archive_copy))):
        stored = build_block(Codec.STORED, own, own).data
        padded = stored.ljust(align(len(stored), 16), b"\0")
        offset = link.position.index_offset + copy * (len(padded) + 96)
        footer = Footer(
            1, copy, Superblock.from_bytes(content[:64]).uuid, 0, offset, len(stored), len(own), xxh3(own), 0
        )
        content[offset:] = padded + footer.to_bytes()
    superblock = Superblock.from_bytes(content[:64])
    content[:64] = superblock._replace(index_size=len(stored)).to_bytes()
    archive_copy.write_bytes(content)
    with Archive(archive_copy) as archive:
        assert next(archive.problems()).reason == "generation 1: the copies of its index differ"


class TestIndexBlocks:
    """Blocks of an index with right checksums and impossible content."""

    def test_every_size(self) -> None:
        for size in (1, 15, 65536, 100_000, 1 << 20, (1 << 20) + 1, 3_000_000):
            columns = random.Random(size).randbytes(size // 2).ljust(size, b"x")
            for ends in ([], [size // 2, size], [1, 70_000, 80_000, 2_000_000]):
                ends = [end for end in ends if end <= size]
                assert decode_columns(encode_columns(columns, ends), size, xxh3(columns)) == columns

    def test_columns_of_many_bytes_have_blocks_of_their_own(self) -> None:
        columns = bytes(100_000) + bytes(10) + bytes(20)
        sizes = [len(encode_columns(columns[:end], [])) for end in (100_000, len(columns))]
        assert len(encode_columns(columns, [100_000, 100_010])) > sizes[1] >= sizes[0]

    def test_other_sizes_than_the_blocks_have(self) -> None:
        columns = b"index" * 10_000
        stored = encode_columns(columns, [])
        for size in (1, 16384, len(columns) - 1, len(columns) + 1, 65536, 1 << 62, (1 << 64) - 1):
            with pytest.raises(CorruptIndexError):
                decode_columns(stored, size, xxh3(columns))
        for wrong in (stored[:-1], stored + bytes(16), stored[16:], b"", stored[:40]):
            with pytest.raises(CorruptIndexError):
                decode_columns(wrong, len(columns), xxh3(columns))
        with pytest.raises(CorruptIndexError, match="checksum"):
            decode_columns(stored, len(columns), 1)

    def test_random_damage(self) -> None:
        columns = b"".join(b"row %d of the index\n" % number for number in range(5000))
        stored = encode_columns(columns, [20_000, 66_000])
        rng = random.Random(4)
        for _ in range(500):
            damaged = bytearray(stored)
            for _ in range(rng.randrange(1, 5)):
                damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
            if bytes(damaged) != stored:
                try:
                    assert decode_columns(bytes(damaged), len(columns), xxh3(columns)) == columns  # padding
                except CorruptIndexError:
                    pass

    def test_a_bomb(self, archive_copy: Path, tmp_path: Path) -> None:
        """Blocks of 33 bytes claim 16 KiB each: 20 MB would become 10 GB."""
        block = build_block(Codec.GOMPRESSO_BIT, b"x", bytes(16384)).data.ljust(48, b"\0")
        stored = (block * 200_000)[:-15]
        size = 200_000 * 16384

        replace_stored_index(archive_copy, stored, b"x", columns_size=size)
        for command in (["ls"], ["info"], ["verify"], ["cat", "small/00"]):
            answer = run_in_bounds([command[0], str(archive_copy), *command[1:]], tmp_path)
            assert answer.returncode == 1
            assert "the index is damaged" in answer.stderr
            assert answer.stderr.count("\n") == 1


def test_a_chain_of_many_generations(tmp_path: Path) -> None:
    """50,000 headers are followed in little time, and all footers are missing."""
    uuid = UUID(int=5).bytes
    position = TrailerPosition(64, 16)
    content = bytearray(Superblock(16384, uuid, *position).to_bytes())
    for number in range(2, 50_000):
        start = align(position.end, GENERATION_HEADER_SIZE)
        position = TrailerPosition(start + GENERATION_HEADER_SIZE, 16)
        content += bytes(start - len(content))
        content += GenerationHeader(number, uuid, position.index_offset, position.index_size).to_bytes()
    content += bytes(position.end - len(content))
    (tmp_path / "a.gomp").write_bytes(content)
    started = time.monotonic()
    with pytest.raises(CorruptIndexError, match="both copies"):
        Archive(tmp_path / "a.gomp")
    assert time.monotonic() - started < 60
