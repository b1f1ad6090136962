"""The size of a tree, compared with a walk by os.scandir."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gompfs._native.sources import size_of_tree

Excludes = Callable[[bytes, bool], bool]


def size_of(root: Path, excludes: Excludes | None = None, **options: object) -> int:
    values = {"one_file_system": False, "skipped": [], "max_threads": 8} | options
    return size_of_tree(os.fsencode(root), excludes=excludes, **values)  # type: ignore[arg-type]


def sizes_of_files(folder: Path, seen: set[tuple[int, int]]) -> Iterator[int]:
    """Yields the sizes of all regular files, each once."""
    for item in os.scandir(os.fsencode(folder)):
        if item.is_dir(follow_symlinks=False):
            yield from sizes_of_files(Path(os.fsdecode(item.path)), seen)
        elif item.is_file(follow_symlinks=False):
            status = item.stat(follow_symlinks=False)
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                yield status.st_size


def write(root: Path, *paths: str) -> None:
    """Writes files that contain their paths."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)


def test_an_odd_tree(shared_odd_tree: Path) -> None:
    assert size_of(shared_odd_tree) == sum(sizes_of_files(shared_odd_tree, set())) > 0


def test_many_directories(tmp_path: Path) -> None:
    paths = [f"{number % 50:02}/{number % 7}/{number:04}" for number in range(2000)]
    write(tmp_path, *paths)
    for max_threads in (1, 64):
        assert size_of(tmp_path, max_threads=max_threads) == sum(map(len, paths))


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

    assert size_of(tmp_path, excludes, skipped=[(status.st_dev, status.st_ino)]) == len("a" + "b/c")
    entries = [(b"a", False), (b"b", True), (b"e", True), (b"g", False)]
    assert asked == [*entries, (b"b/a-again", False), (b"b/c", False), (b"b/d", False)]


def test_what_is_no_directory(tmp_path: Path) -> None:
    write(tmp_path, "a")
    assert size_of(tmp_path / "missing") == 0
    assert size_of(tmp_path / "a") == 0


def test_a_link_to_the_root_is_followed(tmp_path: Path) -> None:
    write(tmp_path, "tree/a")
    (tmp_path / "link").symlink_to("tree")
    assert size_of(tmp_path / "link") == len("tree/a")


def test_one_file_system_stops_at_mount_points() -> None:
    def is_not_proc(path: bytes, is_directory: bool) -> bool:
        return path.split(b"/")[0] != b"proc" or path.count(b"/") > 1

    assert size_of(Path("/"), is_not_proc, one_file_system=True) == 0


def test_an_error_of_excludes_is_raised(tmp_path: Path) -> None:
    write(tmp_path, "a/b")

    def fail(path: bytes, is_directory: bool) -> bool:
        raise ZeroDivisionError(path)

    with pytest.raises(ZeroDivisionError, match="a"):
        size_of(tmp_path, fail)
