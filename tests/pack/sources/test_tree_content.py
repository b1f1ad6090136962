"""The content of a tree as one file, compared with a walk by os.scandir."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gompfs._native.sources import TreeContent

Excludes = Callable[[bytes, bool], bool]


def content_of(root: Path, excludes: Excludes | None = None, **options: object) -> TreeContent:
    values = {"one_file_system": False, "skipped": [], "max_threads": 8} | options
    return TreeContent(os.fsencode(root), excludes=excludes, **values)  # type: ignore[arg-type]


def regular_files(folder: Path, seen: set[tuple[int, int]]) -> Iterator[bytes]:
    """Yields the contents of all regular files, depth first, each once."""
    for item in sorted(os.scandir(os.fsencode(folder)), key=lambda item: item.name):
        if item.is_dir(follow_symlinks=False):
            yield from regular_files(Path(os.fsdecode(item.path)), seen)
        elif item.is_file(follow_symlinks=False):
            status = item.stat(follow_symlinks=False)
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                yield Path(os.fsdecode(item.path)).read_bytes()


def write(root: Path, *paths: str) -> None:
    """Writes files that contain their paths."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path + " ")


def test_any_range_of_an_odd_tree(shared_odd_tree: Path) -> None:
    expected = b"".join(regular_files(shared_odd_tree, set()))
    content = content_of(shared_odd_tree)
    assert content.size == len(expected)
    assert content.read(0, content.size) == expected
    choices = random.Random(1)
    for _ in range(200):
        begin, end = sorted(choices.choices(range(len(expected) + 1), k=2))
        assert content.read(begin, end - begin) == expected[begin:end]


def test_many_directories(tmp_path: Path) -> None:
    paths = [f"{number % 50:02}/{number % 7}/{number:04}" for number in range(2000)]
    write(tmp_path, *paths)
    expected = "".join(path + " " for path in sorted(paths)).encode()
    for max_threads in (1, 64):
        content = content_of(tmp_path, max_threads=max_threads)
        assert content.read(0, content.size) == expected


def test_what_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, "a", "b/c", "b/d", "e/f", "g")
    os.link(tmp_path / "a", tmp_path / "b/a-again")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "link-to-directory").symlink_to("b")
    os.mkfifo(tmp_path / "fifo")
    status = (tmp_path / "g").stat()
    asked: list[tuple[bytes, bool]] = []

    def excludes(path: bytes, is_directory: bool) -> bool:
        asked.append((path, is_directory))
        return path in (b"b/d", b"e")

    content = content_of(tmp_path, excludes, skipped=[(status.st_dev, status.st_ino)])
    assert content.read(0, content.size) == b"a b/c "
    entries = [(b"a", False), (b"b", True), (b"e", True), (b"g", False)]
    assert asked == [*entries, (b"b/a-again", False), (b"b/c", False), (b"b/d", False)]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path, "a", "b/c", "d", "e")
    content = content_of(tmp_path)
    assert content.size == len("a b/c d e ")
    (tmp_path / "b/c").unlink()
    (tmp_path / "d").unlink()
    os.mkfifo(tmp_path / "d")
    os.truncate(tmp_path / "e", 1)
    assert content.read(0, content.size) == b"a e"
    assert content_of(tmp_path / "missing").size == 0
    assert content_of(tmp_path / "a").size == 0


def test_a_link_to_the_root_is_followed(tmp_path: Path) -> None:
    write(tmp_path, "tree/a")
    (tmp_path / "link").symlink_to("tree")
    assert content_of(tmp_path / "link").read(0, 7) == b"tree/a "


def test_one_file_system_stops_at_mount_points() -> None:
    def is_not_proc(path: bytes, is_directory: bool) -> bool:
        return path.split(b"/")[0] != b"proc" or path.count(b"/") > 1

    assert content_of(Path("/"), is_not_proc, one_file_system=True).size == 0


def test_an_error_of_excludes_is_raised(tmp_path: Path) -> None:
    write(tmp_path, "a/b")

    def fail(path: bytes, is_directory: bool) -> bool:
        raise ZeroDivisionError(path)

    with pytest.raises(ZeroDivisionError, match="a"):
        content_of(tmp_path, fail)


def test_a_range_outside_of_the_content(tmp_path: Path) -> None:
    write(tmp_path, "a")
    content = content_of(tmp_path)
    for offset, size in ((0, 3), (3, 0), (2, 1), (1, (1 << 64) - 1)):
        with pytest.raises(IndexError):
            content.read(offset, size)
