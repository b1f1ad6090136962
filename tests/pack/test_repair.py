"""What `gompfs repair` repairs in archives of format version 1, and what it keeps; test_trailers.py has version 2."""

from __future__ import annotations

import fcntl
import os
import random
import subprocess
from pathlib import Path

import pytest
from tree_helpers import add, list_archive, pack

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.errors import ArchiveFormatError, CorruptIndexError, PackError
from gompfs.pack.repair import repair_archive
from gompfs.verify import verify_archive


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive of three generations, each with a file of its own."""
    target = tmp_path / "a.gomp"
    for number in range(3):
        file = tmp_path / f"file-{number}"
        file.write_bytes(random.Random(number).randbytes(50_000))
        if number == 0:
            pack(target, file, version=1)
        else:
            add(target, file)
    target.chmod(0o640)
    return target


def ends(archive: Path) -> list[int]:
    """Returns the end offsets of the generations."""
    found = []
    with Archive(archive) as opened:
        footer, end = opened.footer, opened.size
    content = archive.read_bytes()
    while True:
        found.append(end)
        if not footer.previous_footer:
            return found[::-1]
        end = footer.previous_footer + 64
        footer = type(footer).from_bytes(content[end - 64 : end])


def flip(archive: Path, archive_offset: int) -> None:
    with open(archive, "r+b") as file:
        file.seek(archive_offset)
        byte = file.read(1)[0]
        file.seek(archive_offset)
        file.write(bytes([byte ^ 16]))


def names(archive: Path) -> set[bytes]:
    with Archive(archive) as opened:
        assert opened.warnings == []
        assert verify_archive(opened).is_sound
        return set(list_archive(opened)) - {b""}


def test_a_sound_archive_is_not_changed(archive: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    before, status = archive.read_bytes(), archive.stat()
    assert run(["repair", str(archive)]) == 0
    assert b"nothing to repair" in capfdbinary.readouterr().out
    assert archive.read_bytes() == before
    assert archive.stat().st_mtime_ns == status.st_mtime_ns
    assert run(["repair", "-q", str(archive)]) == 0
    assert capfdbinary.readouterr() == (b"", b"")


def test_a_torn_tail_is_kept_and_cut(archive: Path) -> None:
    whole = archive.read_bytes()
    end = ends(archive)[1]
    os.truncate(archive, end + 30_000)
    (step,) = repair_archive(archive)
    assert step == (
        "30000 bytes after generation 2 are not a complete generation (an add was interrupted, or they are damaged): "
        "they were moved to a.gomp.cut"
    )
    assert archive.read_bytes() == whole[:end]
    kept = archive.with_name("a.gomp.cut")
    assert kept.read_bytes() == whole[end : end + 30_000]
    assert kept.stat().st_mode == archive.stat().st_mode
    assert archive.stat().st_mode & 0o777 == 0o640
    assert names(archive) == {b"file-0", b"file-1"}
    subprocess.run(f"cat {kept} >> {archive}", shell=True, check=True)
    assert archive.read_bytes() == whole[: end + 30_000]


def test_an_existing_copy_is_not_overwritten(archive: Path) -> None:
    end = ends(archive)[1]
    os.truncate(archive, end + 30_000)
    kept = archive.with_name("a.gomp.cut")
    kept.write_text("of an earlier repair")
    with pytest.raises(PackError, match="exists") as caught:
        list(repair_archive(archive))
    assert caught.value.path == str(kept)
    assert archive.stat().st_size == end + 30_000
    (step,) = repair_archive(archive, discard=True)
    assert step.endswith("were dropped")
    assert archive.stat().st_size == end
    assert kept.read_text() == "of an earlier repair"


def test_a_repair_interrupted_after_the_copy_can_be_continued(archive: Path) -> None:
    end = ends(archive)[1]
    os.truncate(archive, end + 30_000)
    archive.with_name("a.gomp.cut").write_bytes(archive.read_bytes()[end:])
    assert len(list(repair_archive(archive))) == 1
    assert archive.stat().st_size == end


@pytest.mark.parametrize("cut", [0, 1, 63, 64, 100])
def test_a_lost_footer_is_rewritten(archive: Path, cut: int) -> None:
    """The index contains its own size, so that a footer that was cut off or damaged can be computed again."""
    whole = archive.read_bytes()
    if cut:
        os.truncate(archive, len(whole) - cut)
    else:
        flip(archive, len(whole) - 40)
    with Archive(archive) as opened:
        assert opened.footer.generation == 2
        assert "generation 2" in opened.warnings[0]
    if cut == 100:  # part of the index is lost too
        (step,) = repair_archive(archive)
        assert "after generation 2" in step
        assert names(archive) == {b"file-0", b"file-1"}
    else:
        (step,) = repair_archive(archive)
        reason = "its index is intact, but its footer is damaged or missing"
        assert step == f"generation 3: {reason}: a new footer was written"
        assert archive.read_bytes() == whole


@pytest.mark.parametrize("place", ["footer", "end of the footer"])
def test_the_only_footer_is_rewritten(tmp_path: Path, archive: Path, place: str) -> None:
    pack(archive, tmp_path / "file-0", force=True, version=1)
    whole = archive.read_bytes()
    if place == "footer":
        flip(archive, len(whole) - 64)
    else:
        os.truncate(archive, len(whole) - 3)
    with pytest.raises(ArchiveFormatError, match="gompfs repair can write the footer"):
        Archive(archive)
    assert len(list(repair_archive(archive))) == 1
    assert archive.read_bytes() == whole


def test_a_footer_before_a_torn_tail(archive: Path) -> None:
    """Repair takes two steps: the footer of generation 2 is damaged, and generation 3 is cut off."""
    whole = archive.read_bytes()
    end = ends(archive)[1]
    os.truncate(archive, end + 20_000)
    flip(archive, end - 30)
    steps = list(repair_archive(archive))
    assert len(steps) == 2
    assert archive.read_bytes() == whole[:end]


@pytest.mark.parametrize("place", [0, 20, 30, 5000])
def test_a_damaged_newest_index(archive: Path, place: int, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Reading commands refuse the archive and suggest `repair`, which goes back to the generation before."""
    whole = archive.read_bytes()
    with Archive(archive) as opened:
        index_offset = opened.footer.index_offset
    flip(archive, index_offset + place)
    with pytest.raises(CorruptIndexError, match="gompfs repair goes back to generation 2"):
        Archive(archive)
    damaged = archive.read_bytes()
    with pytest.raises(CorruptIndexError):
        add(archive, archive.with_name("file-0"))
    assert archive.read_bytes() == damaged
    assert run(["repair", "--dry-run", str(archive)]) == 0
    assert b"would be moved to a.gomp.cut" in capfdbinary.readouterr().out
    assert archive.read_bytes() == damaged
    assert run(["repair", str(archive)]) == 0
    assert b"a later generation, but the index is damaged" in capfdbinary.readouterr().out
    assert archive.read_bytes() == whole[: ends(archive)[-1]]
    assert names(archive) == {b"file-0", b"file-1"}


def test_a_damaged_index_of_a_single_generation(archive: Path, tmp_path: Path) -> None:
    pack(archive, tmp_path / "file-0", force=True, version=1)
    with Archive(archive) as opened:
        index_offset = opened.footer.index_offset
    flip(archive, index_offset + 5000)
    before = archive.read_bytes()
    with pytest.raises(CorruptIndexError) as caught:
        Archive(archive)
    assert "repair" not in str(caught.value)
    with pytest.raises(ArchiveFormatError, match="no generation can be repaired"):
        list(repair_archive(archive))
    assert archive.read_bytes() == before


def test_a_damaged_index_before_a_whole_one(archive: Path) -> None:
    """The newest generation is valid, even if the walk meets a damaged index before it."""
    with Archive(archive) as opened:
        footer = type(opened.footer).from_bytes(
            archive.read_bytes()[opened.footer.previous_footer : opened.footer.previous_footer + 64]
        )
    flip(archive, footer.index_offset + 5000)
    assert list(repair_archive(archive)) == []
    with open(archive, "ab") as file:
        file.write(b"torn")
    with Archive(archive) as opened:
        assert opened.footer.generation == 3
    assert len(list(repair_archive(archive))) == 1


def test_an_add_that_wrote_all_but_its_footer(archive: Path) -> None:
    """The add is completed if its blocks are valid, and cut off if not: they may not have reached the disk."""
    whole = archive.read_bytes()
    archive.write_bytes(whole[:-64] + bytes(64))
    assert "a new footer was written" in next(repair_archive(archive))
    archive.write_bytes(whole[:-64] + bytes(64))
    end = ends_of(whole)[1]
    with open(archive, "r+b") as file:
        file.seek(end + 8192)
        file.write(bytes(4096))
    (step,) = repair_archive(archive)
    assert "after generation 2" in step
    assert archive.stat().st_size == end


def ends_of(whole: bytes) -> list[int]:
    found, place = [], whole.find(b"GOMPEND\n")
    while place >= 0:
        found.append(place + 64)
        place = whole.find(b"GOMPEND\n", place + 64)
    return found


def test_an_archive_that_is_being_added_to(archive: Path) -> None:
    os.truncate(archive, archive.stat().st_size - 5)
    with open(archive, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(PackError, match="another process"):
            list(repair_archive(archive))


def test_files_that_are_not_archives(tmp_path: Path, archive: Path) -> None:
    for name in ("file-0", "missing"):
        with pytest.raises((ArchiveFormatError, PackError)) as caught:
            list(repair_archive(tmp_path / name))
        assert name in str(caught.value)
    assert not list(tmp_path.glob("*.cut"))
