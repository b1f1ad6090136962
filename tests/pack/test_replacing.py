"""Replacing an archive by --force: what is refused, and what survives a failure."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from memory_source import FailingSource, MemoryEntry
from tree_helpers import add, list_archive, pack

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.errors import PackError
from gompfs.options import PackOptions
from gompfs.pack import pack_archive
from gompfs.pack.new_file import NewFile
from gompfs.pack.sources import SourceEntry

CAPTURED = {"capture_output": True, "check": False}


class TestReplacing:
    """`pack -f` replaces an archive under the lock that `add` takes, and keeps its mode and owner."""

    @pytest.fixture
    def target(self, tmp_path: Path) -> Path:
        (tmp_path / "old").write_text("old content")
        (tmp_path / "new").write_text("new content")
        pack(tmp_path / "a.gomp", tmp_path / "old")
        return tmp_path / "a.gomp"

    @pytest.mark.parametrize("content", [b"notes", b"SQLite format 3\0", bytes(64)])
    def test_another_file_is_not_replaced(self, tmp_path: Path, target: Path, content: bytes) -> None:
        """Files that are not archives are not replaced, so that swapped arguments destroy nothing."""
        notes = tmp_path / "notes.txt"
        notes.write_bytes(content)
        with pytest.raises(PackError, match="not a gompfs archive") as caught:
            pack(notes, target, force=True)
        assert caught.value.path == str(notes)
        assert notes.read_bytes() == content

    def test_an_empty_file_and_a_damaged_archive_are_replaced(self, tmp_path: Path, target: Path) -> None:
        (tmp_path / "empty").touch()
        pack(tmp_path / "empty", tmp_path / "new", force=True)
        os.truncate(target, 100)
        pack(target, tmp_path / "new", force=True)
        for path in (target, tmp_path / "empty"):
            with Archive(path) as archive:
                assert set(list_archive(archive)) == {b"", b"new"}

    def test_mode_and_owner_are_kept(self, tmp_path: Path, target: Path) -> None:
        target.chmod(0o600)
        if os.geteuid() == 0:
            os.chown(target, 12, 34)
        before = target.stat()
        pack(target, tmp_path / "new", force=True)
        after = target.stat()
        assert after.st_ino != before.st_ino
        assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)

    @pytest.mark.skipif(os.geteuid() != 0, reason="needs another owner")
    @pytest.mark.parametrize(("before", "after"), [(0o640, 0o600), (0o664, 0o644), (0o604, 0o600)])
    def test_a_group_that_cannot_be_kept_loses_its_rights(self, target: Path, before: int, after: int) -> None:
        target.chmod(before)
        os.chown(target, 0, 34)
        with open(target, "rb") as old, tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            folder.chmod(0o777)
            child = os.fork()
            if not child:
                try:
                    os.setresgid(65534, 65534, 65534)
                    os.setresuid(65534, 65534, 65534)
                    with NewFile(folder / "b.gomp") as new:
                        new.take_permissions(old.fileno())
                        new.publish(replace=False)
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            status = (folder / "b.gomp").stat()
        assert (status.st_mode & 0o777, status.st_gid) == (after, 65534)

    def test_an_archive_that_is_being_added_to(self, tmp_path: Path, target: Path) -> None:
        before = target.read_bytes()
        with open(target, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            with pytest.raises(PackError, match="another process"):
                pack(target, tmp_path / "new", force=True)
        assert target.read_bytes() == before

    def test_adding_is_refused_while_replacing(self, tmp_path: Path, target: Path) -> None:
        """Otherwise, what `add` wrote to the old archive would be lost."""

        class Adding(FailingSource):
            def entries(self) -> Iterator[SourceEntry]:
                with pytest.raises(PackError, match="another process"):
                    add(target, tmp_path / "old")
                yield MemoryEntry(b"z", stat.S_IFREG | 0o644, size=1, content=b"z")

        options = PackOptions(Codec.GOMPRESSO_BIT, force=True)
        pack_archive([Adding(OSError())], target, options, engine=select_engine("cpu"))
        add(target, tmp_path / "old")
        with Archive(target) as archive:
            assert set(list_archive(archive)) == {b"", b"old", b"z"}

    def test_a_symbolic_link_is_kept(self, tmp_path: Path, target: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        link = tmp_path / "elsewhere/link.gomp"
        link.symlink_to("../a.gomp")
        with pytest.raises(PackError, match="exists"):
            pack(link, tmp_path / "new")
        pack(link, tmp_path / "new", force=True)
        assert os.readlink(link) == "../a.gomp"
        with Archive(target) as archive:
            assert set(list_archive(archive)) == {b"", b"new"}
        link.unlink()
        link.symlink_to("nowhere")
        for force in (False, True):
            with pytest.raises(PackError):
                pack(link, tmp_path / "new", force=force)
        assert os.listdir(tmp_path / "elsewhere") == ["link.gomp"]

    def test_a_directory_or_a_fifo(self, tmp_path: Path, target: Path) -> None:
        os.mkfifo(tmp_path / "fifo")
        (tmp_path / "folder").mkdir()
        for name in ("fifo", "folder"):
            with pytest.raises(PackError):
                pack(tmp_path / name, target, force=True)

    @pytest.mark.parametrize("kind", ["itself", "symlink", "hard link", "stdin"])
    def test_the_source_is_the_target(
        self, tmp_path: Path, target: Path, kind: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """An empty archive replaced the only copy of the source."""
        before = target.read_bytes()
        source = tmp_path / "source.gomp"
        if kind == "symlink":
            source.symlink_to(target)
        elif kind == "hard link":
            os.link(target, source)
        elif kind == "itself":
            source = target
        for command in (["pack", "-f"], ["add"]):
            arguments = [*command, "-" if kind == "stdin" else str(source), str(target)]
            with open(target, "rb") as file:
                done = subprocess.run([sys.executable, "-P", "-m", "gompfs", *arguments], stdin=file, **CAPTURED)
            assert done.returncode == 2
            assert done.stderr.startswith(f"gompfs: {target}: ARCHIVE is one of the SOURCEs".encode())
            assert target.read_bytes() == before

    def test_an_archive_on_standard_output(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "file").touch()
        for command in ("pack", "add"):
            assert run([command, "file", "-"]) == 2
            assert "cannot be written to standard output" in capfd.readouterr().err
        assert os.listdir(tmp_path) == ["file"]


def test_where_files_without_names_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new archive then has a hidden name. If its process is killed, the next one removes the file."""
    monkeypatch.setattr(NewFile, "_can_link", lambda _self: False)
    (tmp_path / "file").write_text("content")
    stale, foreign = tmp_path / ".a.gomp.0a1b2c3d.tmp", tmp_path / ".a.gomp.notes.tmp"
    for path in (stale, foreign):
        path.write_text("left")
    busy = tmp_path / ".a.gomp.ffffffff.tmp"
    with open(busy, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        pack(tmp_path / "a.gomp", tmp_path / "file")
        assert sorted(os.listdir(tmp_path)) == [".a.gomp.ffffffff.tmp", ".a.gomp.notes.tmp", "a.gomp", "file"]
    pack(tmp_path / "a.gomp", tmp_path / "file", force=True)
    assert sorted(os.listdir(tmp_path)) == [".a.gomp.notes.tmp", "a.gomp", "file"]
    with pytest.raises(PackError, match="exists"):
        pack(tmp_path / "a.gomp", tmp_path / "file")
