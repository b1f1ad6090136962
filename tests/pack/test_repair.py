"""What `gompfs repair` cuts off, and what it keeps; tests/archive/test_trailers.py has what it writes again."""

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
from gompfs.errors import ArchiveFormatError, PackError
from gompfs.format import SUPERBLOCK_SIZE, LocalFile, Superblock, walk_chain
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
            pack(target, file)
        else:
            add(target, file)
    target.chmod(0o640)
    return target


def ends(archive: Path) -> list[int]:
    """Returns the end offsets of the generations."""
    file = LocalFile.open(archive)
    superblock = Superblock.from_bytes(file.read(SUPERBLOCK_SIZE, 0))
    found = [link.position.end for link in walk_chain(file, superblock, file.size())]
    file.close()
    return found


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
