"""Damaged archives under a mount: damaged blocks give EIO and one line in the log, everything else stays readable."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.errors import (
    ArchiveFormatError,
    CorruptBlockError,
    EntryIsDirectoryError,
    EntryNotDirectoryError,
    EntryNotFoundError,
    EntryTypeError,
    GompfsError,
    OptionError,
    StatsUnavailableError,
    SymlinkLoopError,
)
from gompfs.mount.fuse.errno_map import errno_of, is_expected
from gompfs.mount.metric_set import samples_of


@pytest.fixture
def damaged(tmp_path: Path) -> tuple[Path, int, int]:
    """An archive, the number of its damaged block, and the offset of that block's content in the file `d/noise`."""
    (tmp_path / "tree/d").mkdir(parents=True)
    (tmp_path / "tree/d/noise").write_bytes(os.urandom(2_000_000))
    (tmp_path / "tree/d/other").write_bytes(os.urandom(100_000))
    pack(tmp_path / "a.gomp", tmp_path / "tree", block_size=16 << 10)
    with Archive(tmp_path / "a.gomp") as archive:
        archive_offset = int(archive.segments[0].blocks.archive_offsets[60])
    with open(tmp_path / "a.gomp", "r+b") as file:
        file.seek(archive_offset + 1000)
        file.write(b"damage")
    return tmp_path / "a.gomp", 60, 60 * (16 << 10)


def read_error(path: Path, start: int, size: int) -> int | None:
    """Returns the errno of a read that bypasses the page cache, or None."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        os.pread(descriptor, size, start)
    except OSError as error:
        return error.errno
    finally:
        os.close(descriptor)
    return None


def test_only_the_damaged_block_is_lost(damaged: tuple[Path, int, int], tmp_path: Path, mount) -> None:
    archive, block, start = damaged
    mounted = mount(archive)
    content = (tmp_path / "tree/d/noise").read_bytes()
    assert (mounted / "d/other").read_bytes() == (tmp_path / "tree/d/other").read_bytes()
    with pytest.raises(OSError, match="Input/output error"):
        (mounted / "d/noise").read_bytes()
    with open(mounted / "d/noise", "rb") as file:
        assert os.pread(file.fileno(), 100_000, 0) == content[:100_000]
        assert os.pread(file.fileno(), 100_000, 1_500_000) == content[1_500_000:1_600_000]
    assert read_error(mounted / "d/noise", start - 4096, 4096) is None
    assert read_error(mounted / "d/noise", start, 4096) == errno.EIO
    assert read_error(mounted / "d/noise", start + (12 << 10), 4096) == errno.EIO
    assert read_error(mounted / "d/noise", start + (16 << 10), 4096) is None
    samples = samples_of((mounted / "stats/metrics.json").read_bytes())
    ((labels, errors),) = samples["gompfs_request_errors_total"]
    assert labels == {"request": "read", "errno": "EIO"}
    assert errors >= 3
    assert samples["gompfs_damaged_blocks"] == [({}, 1)]
    assert mounted.stop() == 0
    lines = set(mounted.log.splitlines())
    expected = f"{archive}: d/noise: block {block}: the compressed bytes do not match their checksum"
    assert lines == {f"gompfs: read: {expected}"}


def test_metrics_of_a_mount_without_damage(damaged: tuple[Path, int, int], mount) -> None:
    """The counter is there from the start, so that an alert can watch it grow. A missing file is no error."""
    mounted = mount(damaged[0])
    assert not (mounted / "d/nowhere").exists()
    text = (mounted / "stats/metrics").read_text()
    assert 'gompfs_request_errors_total{request="read",errno="EIO"} 0\n' in text
    assert "gompfs_damaged_blocks 0\n" in text


def test_a_log_file(damaged: tuple[Path, int, int], tmp_path: Path, mount_type, monkeypatch) -> None:
    """The daemon in the background has only syslog otherwise. A rotated file is made anew."""
    archive, _, _ = damaged
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "mnt"
    command = [sys.executable, "-P", "-m", "gompfs"]
    options = ["-o", "log=mount.log"]
    subprocess.run([*command, "mount", *options, archive, place], check=True)
    try:
        for number in (1, 2):
            with pytest.raises(OSError, match="Input/output error"):
                (place / "d/noise").read_bytes()
            line = (tmp_path / "mount.log").read_text().splitlines()[0]
            assert re.fullmatch(rf"\d{{4}}-.* gompfs\[\d+\]: read: {archive}: d/noise: block 60: .*", line)
            (tmp_path / "mount.log").rename(tmp_path / f"mount.log.{number}")
    finally:
        subprocess.run([*command, "umount", place], check=True)
    bad = subprocess.run([*command, "mount", "-o", "log=no/where", archive, place], capture_output=True, text=True)
    assert bad.returncode == 1
    assert bad.stderr.endswith("no/where: No such file or directory\n")
    assert not os.path.ismount(place)


def test_an_archive_that_shrinks_under_the_mount(damaged: tuple[Path, int, int], mount) -> None:
    archive, _, _ = damaged
    mounted = mount(archive)
    os.truncate(archive, 500_000)
    assert read_error(mounted / "d/noise", 0, 4096) is None
    assert read_error(mounted / "d/noise", 1_000_000 // 4096 * 4096, 4096) == errno.EIO
    assert os.listdir(mounted / "d") == ["noise", "other"]
    assert mounted.stop() == 0


def all_errors(kind: type[GompfsError]) -> list[type[GompfsError]]:
    return [kind, *(below for child in kind.__subclasses__() for below in all_errors(child))]


@pytest.mark.parametrize("kind", all_errors(GompfsError))
def test_every_error_has_an_errno(kind: type[GompfsError]) -> None:
    number = errno_of(kind("something"))
    assert number in errno.errorcode
    assert number != 0
    expected = {EntryNotFoundError: errno.ENOENT, EntryTypeError: errno.EINVAL, OptionError: errno.EINVAL}
    expected |= {EntryIsDirectoryError: errno.EISDIR, EntryNotDirectoryError: errno.ENOTDIR}
    expected |= {SymlinkLoopError: errno.ELOOP, StatsUnavailableError: errno.ENODATA}
    assert number == expected.get(kind, errno.EIO)


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (OSError(errno.EROFS, "read-only"), errno.EROFS),
        (OSError("without a number"), errno.EIO),
        (MemoryError(), errno.ENOMEM),
        (ValueError("unforeseen"), errno.EIO),
        (ArchiveFormatError("damage"), errno.EIO),
        (CorruptBlockError("damage", block=3), errno.EIO),
    ],
)
def test_other_errors(error: BaseException, number: int) -> None:
    assert errno_of(error) == number
    assert is_expected(error) == (number == errno.EROFS)
