"""`gompfs stats` on a mount, and on a file in one: the daemon computes, with the output of the archive."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from asked_daemon import output_as_nobody
from tree_helpers import pack, write_files

import gompfs.cli.suggestions  # noqa: F401  imported when an error is printed, by a user who may not read it
from gompfs.cli.application import run
from gompfs.codec import Codec

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from conftest import MountArchive

Capture = pytest.CaptureFixture[bytes]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("stats")
    text = b"to be or not to be, that is the question\n"
    contents = {"dir/one": text * 9, "dir/sub/two": b"to be or not\n" * 3, "three": b"a rose is a rose\n", "bin": b"\0"}
    write_files(root / "tree", contents)
    (root / "tree/link").symlink_to("dir/one")
    pack(root / "tree.gomp", root / "tree", codec=Codec.GOMPRESSO_TADOC)
    return root / "tree.gomp"


@pytest.fixture
def no_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command does not open archives, so only the daemon can compute."""

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("the archive was opened")

    monkeypatch.setattr("gompfs.cli.stats.opened", opened)


def asked(capture: Capture, *arguments: str | Path) -> tuple[int, bytes, bytes]:
    """The exit status of `gompfs stats`, its output, and its errors."""
    status = run(["stats", *map(str, arguments)])
    captured = capture.readouterr()
    return status, captured.out, captured.err


QUESTIONS = [
    ("wordcount",),
    ("wordcount", "--top", "3"),
    ("sort", "--json"),
    ("inverted_index", "--top", "2", "--format", "jsonl"),
    ("term_vector",),
    ("sequence_count", "--top", "2"),
    ("sequence_count", "--n", "3"),
    ("ranked_inverted_index",),
    ("tfidf",),
    ("tfidf", "--format", "parquet"),
    ("binary-files",),
    ("word/rose",),
    ("word/rose", "--json"),
    ("phrase/to be", "--top", "1"),
    ("files/dir/one/sequence_count",),
    ("term_vector", "--file", "dir/one"),
    ("wordcount", "--file", "link"),
    ("tfidf", "--file", "dir/sub/two"),
    ("list",),
]
FOR_THE_ARCHIVE = [
    ("sequence_count", "--n", "2"),
    ("tfidf", "--top", "1"),
    ("term_vector", "--top", "1"),
    ("inverted_index", "--file", "dir/one"),
    ("word/be", "--file", "dir/one"),
    ("wordcount", "--engine", "cpu"),
    ("overlap", __file__),
    ("files/../three/sort",),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_the_daemon_computes(
    mounted: Path, archive: Path, capfdbinary: Capture, monkeypatch: pytest.MonkeyPatch, question: tuple[str, ...]
) -> None:
    expected = asked(capfdbinary, archive, *question)
    assert expected[0] == 0
    assert expected[1]
    with monkeypatch.context() as context:
        context.setattr("gompfs.cli.stats.opened", None)  # an attempt to open the archive is a TypeError
        assert asked(capfdbinary, mounted, *question) == expected


@pytest.mark.parametrize("question", FOR_THE_ARCHIVE, ids=" ".join)
def test_what_only_the_archive_has(
    mounted: Path, archive: Path, capfdbinary: Capture, question: tuple[str, ...]
) -> None:
    expected = asked(capfdbinary, archive, *question)
    assert expected[0] == 0
    assert expected[1]
    assert asked(capfdbinary, mounted, *question) == expected


@pytest.mark.parametrize(
    "question",
    [
        ("word/nowhere",),
        ("word/a/b",),
        ("phrase/",),
        ("nonsense",),
        ("wordcount", "--file", "bin"),
        ("sort", "--n", "2"),
        ("files/bin/sort",),
        ("files/nowhere/sort",),
    ],
    ids=" ".join,
)
def test_errors_are_those_of_the_archive(
    mounted: Path, archive: Path, capfdbinary: Capture, question: tuple[str, ...]
) -> None:
    expected = asked(capfdbinary, archive, *question)
    assert expected[0] in (1, 2)
    assert asked(capfdbinary, mounted, *question) == expected


@pytest.mark.usefixtures("no_archive")
def test_one_file(mounted: Path, archive: Path, capfdbinary: Capture) -> None:
    for name in ("wordcount", "sort", "term_vector", "sequence_count", "tfidf"):
        status, text, _ = asked(capfdbinary, mounted / "dir/one", name)
        assert status == 0
        assert text == (mounted / "stats/files/dir/one" / name).read_bytes()
        assert asked(capfdbinary, mounted / "link", name)[1] == text
    assert asked(capfdbinary, mounted / "dir/one")[1].split() == sorted(
        [b"wordcount", b"sort", b"term_vector", b"sequence_count", b"tfidf"]
    )
    status, _, error = asked(capfdbinary, mounted / "dir", "wordcount")
    assert status == 1
    assert b"statistics are of the mount as a whole, or of one file" in error
    status, _, error = asked(capfdbinary, mounted / "nowhere", "wordcount")
    assert status == 1
    assert b"No such file" in error


def test_a_mount_of_a_subdirectory(mount: MountArchive, archive: Path, capfdbinary: Capture) -> None:
    """The statistics are those of the whole archive; a file is the one that the mount shows under this name."""
    mounted = mount(archive, "subdir=dir")
    for shown, path in (("one", "dir/one"), ("sub/two", "dir/sub/two")):
        expected = asked(capfdbinary, archive, "term_vector", "--file", path)
        assert expected[0] == 0
        assert asked(capfdbinary, mounted / shown, "term_vector") == expected
        assert asked(capfdbinary, mounted.path, "term_vector", "--file", shown) == expected
        other = asked(capfdbinary, archive, "inverted_index", "--file", path)
        assert asked(capfdbinary, mounted / shown, "inverted_index") == other
    assert asked(capfdbinary, mounted.path, "sort") == asked(capfdbinary, archive, "sort")


def test_without_statistics(mount: MountArchive, archive: Path, capfdbinary: Capture, tmp_path: Path) -> None:
    """The command opens the archive. If it is gone, the message says why it was needed."""
    moved = tmp_path / "moved.gomp"
    moved.write_bytes(archive.read_bytes())
    mounted = mount(moved, "stats=off")
    assert asked(capfdbinary, mounted.path, "wordcount") == asked(capfdbinary, archive, "wordcount")
    assert asked(capfdbinary, mounted / "three", "sort") == asked(capfdbinary, archive, "sort", "--file", "three")
    moved.unlink()
    status, text, error = asked(capfdbinary, mounted.path, "wordcount")
    assert (status, text) == (1, b"")
    assert b"the mount has no statistics (stats=off), and " in error
    assert error.count(b"\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_another_user(mount: MountArchive) -> None:
    """The kernel decides who may read statistics in the mount, and who may read the archive."""
    with tempfile.TemporaryDirectory(
        dir="/tmp", ignore_cleanup_errors=True
    ) as directory:  # whose parents every user may enter
        root = Path(directory)
        root.chmod(0o755)
        write_files(root / "tree", {"open": b"words of open", "closed": b"words of closed"})
        (root / "tree/closed").chmod(0o600)
        pack(root / "a.gomp", root / "tree", codec=Codec.GOMPRESSO_TADOC)
        (root / "a.gomp").chmod(0o600)
        mounted = mount(root / "a.gomp", "allow_other", path=root / "m")
        assert run(["stats", str(mounted.path), "sort"]) == 0  # imports what another user may not read
        status, error = output_as_nobody("stats", mounted.path, "wordcount")
        assert status == 1
        assert b"you may not read these statistics in the mount (see -o stats=public), and you may not read " in error
        assert error.count(b"\n") == 1
        assert output_as_nobody("stats", mounted / "open", "sort") == (0, b"of\t1\nopen\t1\nwords\t1\n")
        status, error = output_as_nobody("stats", mounted / "closed", "sort")
        assert status == 1
        assert b"closed: you may not read these statistics in the mount" in error
        mounted.clean_up()
        public = mount(root / "a.gomp", "allow_other", "stats=public", path=root / "m")
        assert output_as_nobody("stats", public.path, "word/closed") == (0, b"closed\t1\n")
        status, error = output_as_nobody("stats", public.path, "sequence_count", "--n", "2")
        assert status == 1
        assert b"these options need the archive, and you may not read " in error
        public.clean_up()


def test_several_archives(
    tmp_path: Path, archive: Path, gompfs_command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    other = tmp_path / "other.gomp"
    other.write_bytes(archive.read_bytes())
    (tmp_path / "m").mkdir()
    assert gompfs_command("mount", "--union", archive, other, tmp_path / "m").returncode == 0
    try:
        done = gompfs_command("stats", tmp_path / "m", "wordcount")
        assert done.returncode == 1
        assert "this is a mount of several archives" in done.stderr
        assert done.stderr.endswith("name the archive\n")
        assert done.stderr.count("\n") == 1
    finally:
        gompfs_command("umount", tmp_path / "m")
