"""--prefix: the entries of SOURCEs below a directory of the archive, and what becomes of SOURCEs without it."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tree_helpers import write_files

from gompfs.archive import Archive
from gompfs.errors import OptionError
from gompfs.pack.sources.factory import clean_prefix, open_source

DAY = 1_700_000_000


def gompfs(directory: Path, *arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-P", "-m", "gompfs", *arguments]
    return subprocess.run(command, cwd=directory, input=stdin, capture_output=True, check=False)


def listed(archive: Path) -> list[str]:
    done = gompfs(archive.parent, "ls", "-R", archive)
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.decode().splitlines())


@pytest.fixture
def days(tmp_path: Path) -> Path:
    """A directory with two days of logs."""
    for day in ("day1", "day2"):
        write_files(tmp_path / day, {"access.log": b"GET /\n" * 99, "sub/error.log": b"no\n"})
        os.link(tmp_path / day / "access.log", tmp_path / day / "sub" / "other-name")
        (tmp_path / day / "link").symlink_to("sub/error.log")
        os.utime(tmp_path / day, (DAY, DAY))
        (tmp_path / day).chmod(0o750)
    return tmp_path


NAMES = ["access.log", "link", "sub/", "sub/error.log", "sub/other-name"]


@pytest.mark.parametrize("prefix", ["logs", "logs/2023", "./logs//2023/", "é/\udcff"])
def test_one_directory(days: Path, prefix: str) -> None:
    """What would be the root becomes the directory, with the content that the tree has."""
    assert gompfs(days, "pack", "-q", "--prefix", prefix, "day1", "a.gomp").returncode == 0
    assert gompfs(days, "extract", "a.gomp", "-C", "out").returncode == 0
    subprocess.run(["diff", "-r", "--no-dereference", days / "day1", days / "out" / prefix], check=True)
    assert os.path.samefile(days / "out" / prefix / "access.log", days / "out" / prefix / "sub" / "other-name")
    made = os.stat(days / "out" / prefix)
    assert (stat.S_IMODE(made.st_mode), made.st_mtime) == (0o750, DAY)
    assert gompfs(days, "verify", "-q", "a.gomp").returncode == 0


def test_directories_that_are_made(days: Path) -> None:
    """They have the owner and the time of what they are made for: they were of root and of 1970."""
    assert gompfs(days, "pack", "-q", "--prefix", "a/b", "day1", "a.gomp").returncode == 0
    assert gompfs(days, "pack", "-q", "day1", "day2", "b.gomp").returncode == 0
    for archive, path in (("a.gomp", b""), ("a.gomp", b"a"), ("b.gomp", b"")):
        with Archive(days / archive) as opened:
            inode = opened.resolve(path)
            status = os.stat(days / "day1")
            assert stat.S_IMODE(inode.mode) == 0o755
            assert (inode.uid, inode.gid, inode.mtime_ns) == (status.st_uid, status.st_gid, status.st_mtime_ns)


def test_days_are_added_one_by_one(days: Path) -> None:
    """As a daily job does. The directory that is there already keeps its attributes."""
    assert gompfs(days, "pack", "-q", "--prefix", "logs/day1", "day1", "a.gomp").returncode == 0
    with Archive(days / "a.gomp") as before:
        logs = before.resolve(b"logs")
    os.utime(days / "day2", (1, 1))
    assert gompfs(days, "add", "-q", "--prefix", "logs/day2", "day2", "a.gomp").returncode == 0
    assert gompfs(days, "add", "-q", "--prefix", "logs", "day1/access.log", "day2", "a.gomp").returncode == 0
    entries = [f"logs/{day}/{name}" for day in ("day1", "day2") for name in ("", *NAMES)]
    assert listed(days / "a.gomp") == sorted(["logs/", "logs/access.log", *entries])
    with Archive(days / "a.gomp") as after:
        assert after.resolve(b"logs")._replace(nlink=logs.nlink) == logs
    assert gompfs(days, "verify", "-q", "a.gomp").returncode == 0


def test_archives_below_a_prefix(days: Path) -> None:
    """The members of a tar and of a zip, with links, and without entries for their directories."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, target in (("x/file", None), ("x/hard", "x/file")):
            member = tarfile.TarInfo(name)
            member.mtime, member.uid = DAY, 7
            if target is not None:
                member.type, member.linkname = tarfile.LNKTYPE, target
                tar.addfile(member)
            else:
                member.size = 4
                tar.addfile(member, io.BytesIO(b"text"))
    with zipfile.ZipFile(days / "z.zip", "w") as archive:
        archive.writestr("y/file", b"zip")
    assert gompfs(days, "pack", "-q", "--prefix", "p", "-", "z.zip", "a.gomp", stdin=buffer.getvalue()).returncode == 0
    assert listed(days / "a.gomp") == ["p/", "p/x/", "p/x/file", "p/x/hard", "p/y/", "p/y/file"]
    with Archive(days / "a.gomp") as opened:
        assert opened.resolve(b"p/x/file").ino == opened.resolve(b"p/x/hard").ino
        assert (opened.resolve(b"p/x").mtime_ns, opened.resolve(b"p/x").uid) == (DAY * 10**9, 7)
    assert gompfs(days, "cat", "a.gomp", "p/x/hard", "p/y/file").stdout == b"textzip"


@pytest.mark.parametrize("prefix", ["", ".", "/", "/abs", "..", "a/../b", "x" * 256, "a/" + "x" * 256])
def test_prefixes_that_are_no_relative_path(days: Path, prefix: str) -> None:
    done = gompfs(days, "pack", "-q", "--prefix", prefix, "day1", "a.gomp")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"the prefix " in done.stderr
    assert not (days / "a.gomp").exists()
    with pytest.raises(OptionError, match="prefix"):
        open_source(days / "day1", prefix=prefix)


def test_a_prefix_with_a_nul() -> None:
    with pytest.raises(OptionError, match="NUL"):
        clean_prefix("a\0b")


def test_exclude_does_not_see_the_prefix(days: Path) -> None:
    done = gompfs(days, "pack", "-q", "--prefix", "logs", "--exclude", "logs", "--exclude", "/sub", "day1", "a.gomp")
    assert done.returncode == 0
    assert listed(days / "a.gomp") == ["logs/", "logs/access.log", "logs/link"]


def test_a_prefix_that_is_a_file_of_the_archive(days: Path) -> None:
    """An entry replaces one with the same path, as always."""
    assert gompfs(days, "pack", "-q", "day1", "a.gomp").returncode == 0
    assert gompfs(days, "add", "-q", "--prefix", "access.log", "day2/sub", "a.gomp").returncode == 0
    assert "access.log/error.log" in listed(days / "a.gomp")
    assert gompfs(days, "verify", "-q", "a.gomp").returncode == 0


def test_add_says_that_a_directory_went_into_the_root(days: Path) -> None:
    assert gompfs(days, "pack", "-q", "day1", "a.gomp").returncode == 0
    note = b"  what is in day2 is now in the root of the archive; --prefix day2 makes a directory"
    assert note in gompfs(days, "add", "day2", "a.gomp").stdout.splitlines()
    for arguments in (["day1", "day2"], ["--prefix", "x", "day2"], ["day2/access.log"]):
        assert b"root" not in gompfs(days, "add", *arguments, "a.gomp").stdout


@pytest.mark.parametrize("command", ["add", "pack"])
@pytest.mark.parametrize("source", ["day2", "day2/access.log"])
def test_the_archive_comes_last(days: Path, command: str, source: str) -> None:
    """It said that the file is not a gompfs archive, or that it exists."""
    assert gompfs(days, "pack", "-q", "day1", "a.gomp").returncode == 0
    what = "is a directory" if source == "day2" else "is not an archive"
    done = gompfs(days, command, "a.gomp", source)
    message = f"gompfs: {source}: {what}; ARCHIVE is the last argument, after the SOURCEs\n"
    assert (done.returncode, done.stderr.decode()) == (2, message)
