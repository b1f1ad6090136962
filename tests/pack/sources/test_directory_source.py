"""Directories and single files as sources."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tree_helpers import list_directory, list_source, pack

import gompfs
from gompfs._native.sources import AnnouncedFiles, FileLoader, OpenDirectory
from gompfs.errors import PackError
from gompfs.pack.sources import directory, local_file, open_source


def test_the_odd_tree_is_read_exactly(odd_tree: Path) -> None:
    source = open_source(odd_tree)
    assert list_source(source) == list_directory(odd_tree)
    assert source.warnings == []


def test_order_is_depth_first_by_bytes(odd_tree: Path) -> None:
    source = open_source(odd_tree)
    paths = [entry.path for entry in source.entries()]
    assert source.sorted
    assert paths == sorted(paths, key=lambda path: path.split(b"/") if path else [])


def test_total_size_counts_regular_files(odd_tree: Path) -> None:
    files = [path for path in odd_tree.rglob("*") if path.is_file() and not path.is_symlink()]
    sizes = {path.stat().st_ino: path.stat().st_size for path in files}  # a file with several names counts once
    assert open_source(odd_tree).total_size == sum(sizes.values())


def test_entries_can_be_taken_twice(odd_tree: Path) -> None:
    source = open_source(odd_tree)
    assert list_source(source) == list_source(source)


def test_no_descriptor_stays_open(odd_tree: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    entries = open_source(odd_tree).entries()
    for _ in range(200):
        next(entries)
    assert len(os.listdir("/proc/self/fd")) <= before + 70
    entries.close()  # type: ignore[attr-defined]
    assert len(os.listdir("/proc/self/fd")) == before


def test_path_longer_than_path_max(tmp_path: Path) -> None:
    root = tmp_path / "deep"
    root.mkdir()
    descriptor = os.open(root, os.O_RDONLY)
    for level in range(150):
        name = b"%03d" % level + b"x" * 47
        os.mkdir(name, dir_fd=descriptor)
        below = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    with open(os.open(b"leaf", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor), "wb") as leaf:
        leaf.write(b"down here")
    os.close(descriptor)
    (root / "zzz").write_bytes(b"after the way back")
    seen = list_source(open_source(root))
    subprocess.run(["rm", "-rf", root], check=True)  # shutil and pytest use full paths, which are too long
    assert len(seen) == 153
    assert max(seen, key=len).endswith(b"/leaf")
    assert seen[max(seen, key=len)].content == b"down here"
    assert seen[b"zzz"].content == b"after the way back"


def test_holes_are_not_data(tmp_path: Path) -> None:
    size = 1 << 20
    with open(tmp_path / "sparse", "wb") as file:
        file.seek(size)
        file.write(b"x" * 4096)
        file.truncate(3 * size)
    (tmp_path / "hole").touch()
    os.truncate(tmp_path / "hole", size)
    (tmp_path / "plain").write_bytes(b"y" * 5000)
    found = {}
    for entry in open_source(tmp_path).entries():
        if entry.has_content:
            found[entry.path] = (entry.data_ranges, list(entry.read_pieces(3000)), entry.size)
    if found[b"sparse"][0] is None:
        pytest.skip("the file system under the temporary directory keeps no holes")
    assert found[b"sparse"] == ([(size, 4096)], [(size, b"x" * 3000), (size + 3000, b"x" * 1096)], 3 * size)
    assert found[b"hole"] == ([], [], size)
    assert found[b"plain"] == (None, [(0, b"y" * 3000), (3000, b"y" * 2000)], 5000)


def test_open_reads_seeks_and_repeats(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(range(100)))
    entries = open_source(tmp_path).entries()
    next(entries)
    entry = next(entries)
    assert entry.can_reopen
    with entry.open() as stream:
        assert stream.read(10) == bytes(range(10))
        assert stream.seek(5, os.SEEK_CUR) == 15
        buffer = bytearray(4)
        assert stream.readinto(buffer) == 4  # type: ignore[attr-defined]
        assert buffer == bytes(range(15, 19))
        assert stream.seek(-2, os.SEEK_END) == 98
        assert stream.read() == bytes([98, 99])
        assert stream.read(1) == b""
    with entry.open() as stream:
        assert stream.read() == bytes(range(100))
    assert entry.read_all() == bytes(range(100))


def test_content_can_be_read_until_the_next_entry(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(name)
    _, first, _ = open_source(tmp_path).entries()
    with pytest.raises(PackError, match="before the next entry"):
        first.read_all()


def test_only_regular_files_have_content(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for entry in open_source(tmp_path).entries():
        assert not entry.has_content
        with pytest.raises(PackError, match="no content"):
            entry.open()
        with pytest.raises(PackError, match="no content"):
            entry.read_all()


def test_sockets_are_left_out_with_a_warning(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(tmp_path / "socket"))
        source = open_source(tmp_path)
        assert list(list_source(source)) == [b""]
    assert source.warnings == [f"{tmp_path}/socket: socket ignored"]


class TestChangesWhileReading:
    @pytest.fixture
    def tree(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A tree that is not read ahead, so that a test can change what comes next."""
        monkeypatch.setattr(directory, "_ENTRIES_AHEAD", 0)
        monkeypatch.setattr(directory, "_DIRECTORIES_AHEAD", 0)
        monkeypatch.setattr(directory, "MAX_WHOLE_SIZE", 0)
        for name in "abc":
            (tmp_path / name).write_bytes(name.encode() * 1000)
        return tmp_path

    def test_file_vanishes(self, tree: Path) -> None:
        source = open_source(tree)
        entries = source.entries()
        next(entries)
        (tree / "b").unlink()
        assert [entry.path for entry in entries] == [b"a", b"c"]
        assert source.warnings == [f"{tree}/b: vanished before it was read; left out"]

    def test_directory_vanishes(self, tree: Path) -> None:
        (tree / "b").unlink()
        (tree / "b").mkdir()
        source = open_source(tree)
        entries = source.entries()
        next(entries)
        (tree / "b").rmdir()
        assert [entry.path for entry in entries] == [b"a", b"c"]
        assert source.warnings == [f"{tree}/b: vanished before it was read; left out"]

    @pytest.mark.parametrize("replace", [os.mkfifo, lambda path: os.symlink("c", path), os.mkdir])
    def test_file_changes_its_type(self, tree: Path, replace: object) -> None:
        source = open_source(tree)
        entries = source.entries()
        next(entries)
        (tree / "b").unlink()
        replace(tree / "b")  # type: ignore[operator]
        assert [entry.path for entry in entries] == [b"a", b"c"]
        assert source.warnings == [f"{tree}/b: changed its type before it was read; left out"]

    def test_file_shrinks(self, tree: Path) -> None:
        source = open_source(tree)
        contents = {}
        for entry in source.entries():
            if entry.path == b"b":
                os.truncate(tree / "b", 10)
            if entry.has_content:
                contents[entry.path] = entry.read_all()
        assert contents[b"b"] == b"b" * 10 + bytes(990)
        assert source.warnings == [
            f"{tree}/b: file shrank by 990 bytes; padded with zeros",
            f"{tree}/b: file changed as we read it",
        ]

    def test_file_grows(self, tree: Path) -> None:
        source = open_source(tree)
        contents = {}
        for entry in source.entries():
            if entry.path == b"b":
                with open(tree / "b", "ab") as file:
                    file.write(b"more")
            if entry.has_content:
                with entry.open() as stream:
                    contents[entry.path] = stream.read()
        assert contents[b"b"] == b"b" * 1000
        assert source.warnings == [f"{tree}/b: file changed as we read it"]

    def test_unread_files_may_change(self, tree: Path) -> None:
        source = open_source(tree)
        for entry in source.entries():
            if entry.path == b"b":
                os.truncate(tree / "b", 10)
        assert source.warnings == []


class TestUnreadable:
    @pytest.fixture
    def tree(self) -> Iterator[Path]:
        """A tree outside of pytest's private folder, read as a user who may not read all of it."""
        root = Path(tempfile.mkdtemp(prefix="gompfs-test-"))
        (root / "open").write_text("x")
        (root / "secret").write_text("y")
        (root / "secrets").mkdir()
        (root / "secret").chmod(0)
        (root / "secrets").chmod(0)
        root.chmod(0o755)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        yield root
        if user == 0:
            os.seteuid(0)
        (root / "secrets").chmod(0o700)
        shutil.rmtree(root)

    def test_is_an_error(self, tree: Path) -> None:
        with pytest.raises(PackError, match="secret: cannot read: Permission denied"):
            list(open_source(tree).entries())

    def test_is_a_warning_if_requested(self, tree: Path) -> None:
        source = open_source(tree, skip_unreadable=True)
        assert list(list_source(source)) == [b"", b"open"]
        assert source.warnings == [
            f"{tree}/secret: cannot read: Permission denied; left out",
            f"{tree}/secrets: cannot read: Permission denied; left out",
        ]


def test_exclusions_prune_directories(tmp_path: Path) -> None:
    for path in ("src/a.c", "src/a.o", "build/x.c", "keep.o", "src/build/y"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    patterns = tmp_path / "patterns"
    patterns.write_text("# objects\n*.o\n!keep.o\n\n/build/\npatterns\n")
    source = open_source(tmp_path, exclude=["/src/build"], exclude_from=[patterns])
    assert [entry.path for entry in source.entries()] == [b"", b"keep.o", b"src", b"src/a.c"]
    assert source.total_size == len("keep.o") + len("src/a.c")


def test_the_next_files_are_read_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All files that are packed, and no others, are read ahead before they are taken; not all of them at once."""
    (tmp_path / "directory").mkdir()
    files = [tmp_path / folder / f"{number:03}" for folder in ("", "directory") for number in range(200)]
    for path in (*files, tmp_path / "left-out", tmp_path / "directory" / "left-out"):
        path.write_bytes(b"content")
    announced: list[str] = []

    class NotedLoader(FileLoader):
        def load(
            self, directory: OpenDirectory, names: list[bytes], archived: dict[bytes, tuple[int, int, int]]
        ) -> AnnouncedFiles:
            folder = os.readlink(f"/proc/self/fd/{directory.descriptor}")
            announced.extend(os.path.join(folder, os.fsdecode(name)) for name in names)
            return super().load(directory, names, archived)

    monkeypatch.setattr(directory, "FileLoader", NotedLoader)
    taken = 0
    for entry in open_source(tmp_path, exclude=[b"left-out"]).entries():
        if entry.has_content:
            assert str(tmp_path / os.fsdecode(entry.path)) in announced
            taken += 1
            assert len(announced) <= taken + 256
    assert sorted(announced) == sorted(map(str, files))


def test_content_ahead_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that together are larger than what is read ahead come all, with their content and its hash."""
    monkeypatch.setattr(directory, "_BYTES_AHEAD", 10_000)
    for number in range(100):
        (tmp_path / f"{number:02}").write_bytes(bytes([number]) * (number * 250))
    for entry in open_source(tmp_path).entries():
        if entry.has_content:
            expected = (tmp_path / os.fsdecode(entry.path)).read_bytes()
            assert bytes(entry.read_all()) == expected
            assert entry.sha256 == hashlib.sha256(expected).digest()


def test_a_walk_that_is_given_up_closes_its_files(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "file").write_bytes(b"content")
        os.link(tmp_path / str(number) / "file", tmp_path / str(number) / "link")
    before = len(os.listdir("/proc/self/fd"))
    entries = open_source(tmp_path).entries()
    for _ in range(20):
        next(entries)
    entries.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_archive_itself_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "archive.gomp").write_text("growing")
    source = open_source(tmp_path)
    status = (tmp_path / "archive.gomp").stat()
    source.skip_inodes.add((status.st_dev, status.st_ino))
    assert list(list_source(source)) == [b""]
    assert source.warnings == [f"{tmp_path}/archive.gomp: is the archive; left out"]


def test_one_file_system_stops_at_mount_points() -> None:
    paths = [entry.path for entry in open_source("/", one_file_system=True, exclude=["/*", "!/proc"]).entries()]
    assert paths == [b"", b"proc"]


def test_one_of_several_directories_keeps_its_name(tmp_path: Path) -> None:
    root = tmp_path / "name"
    root.mkdir()
    (root / "a").write_text("1")
    os.link(root / "a", root / "b")
    entries = list(open_source(root, alone=False).entries())
    assert [(entry.path, entry.hard_link_to) for entry in entries] == [
        (b"name", None),
        (b"name/a", None),
        (b"name/b", b"name/a"),
    ]


def test_single_file(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"content")
    (tmp_path / "link").symlink_to("target")
    for name in ("target", "link"):
        source = open_source(tmp_path / name)
        (entry,) = list_source(source).items()
        assert entry[0] == name.encode()
        assert stat.S_ISREG(entry[1].mode)
        assert entry[1].content == b"content"
        assert source.total_size == 7


def test_a_missing_source(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("missing", "dangling"):
        with pytest.raises(PackError, match=f"{name}: cannot read: No such file"):
            open_source(tmp_path / name)
    with pytest.raises(PackError, match="neither a file nor a directory"):
        open_source("/dev/null")


def test_files_whose_size_is_not_known(tmp_path: Path) -> None:
    """Files of /proc say that they are empty. They are read to their end, as cat does; tar stores nothing."""
    for top, names in (("/proc/sys/user", os.listdir("/proc/sys/user")), ("/proc/version", ["version"])):
        pack(tmp_path / "a.gomp", top, force=True)
        with gompfs.open(tmp_path / "a.gomp") as files:
            for name in names:
                path = top if name == "version" else f"{top}/{name}"
                expected = subprocess.run(["cat", path], capture_output=True, check=True).stdout
                assert os.stat(path).st_size == 0
                assert files.read(name) == expected != b""
            assert sorted(files.listdir()) == sorted(names)


def test_a_file_whose_size_is_not_known_may_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_file, "_MAX_UNKNOWN_SIZE", 3)
    with pytest.raises(PackError, match="version: cannot read: its size is given as 0"):
        list_source(open_source(Path("/proc/version")))
    source = open_source(Path("/proc/version"), skip_unreadable=True)
    assert list_source(source) == {}
    assert "left out" in source.warnings[0]
