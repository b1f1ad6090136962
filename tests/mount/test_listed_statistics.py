"""What a listing of `stats` shows, and that programs that walk the tree compute nothing large."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tree_helpers import pack, write_files

from gompfs.codec import Codec
from gompfs.statistics.tasks import TASKS

if TYPE_CHECKING:
    from conftest import MountArchive


FILES = ["README", "binary-files", "info", "metrics", "metrics.json", "sort", "wordcount"]
DIRECTORIES = ["count", "files", "files-with", "grep", "phrase", "search", "tables", "word"]
LARGE = ["inverted_index", "ranked_inverted_index", "sequence_count", "term_vector", "tfidf"]
NUM_BINARY = 3000


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("listed")
    text = b"to be or not to be\nerror: no color\n#include <signal.h>\n/* TODO Copyright */\n"
    contents = {"docs/index.md": text, "docs/more.md": b"no .gitignore, no CACHEDIR.TAG\n"}
    contents |= {f"binary/a file with a long name {number}": b"\0%d" % number for number in range(NUM_BINARY)}
    write_files(root / "tree", contents)
    pack(root / "tree.gomp", root / "tree", codec=Codec.GOMPRESSO_TADOC)
    return root / "tree.gomp"


def computed(stats: Path) -> list[str]:
    """Returns which kinds of statistics the daemon has computed so far, as `info` says."""
    time.sleep(1.1)  # the daemon keeps the text of this file for a second
    (line,) = (line for line in (stats / "info").read_text().splitlines() if line.startswith("statistics_times\t"))
    times = line.partition("\t")[2]
    return [] if times == "none yet" else [kind.partition(":")[0] for kind in times.split(", ")]


def test_a_listing_shows_what_there_is(mount: MountArchive, archive: Path) -> None:
    stats = mount(archive) / "stats"
    assert sorted(os.listdir(stats)) == sorted(FILES + DIRECTORIES)
    for name in DIRECTORIES:
        assert (stats / name).is_symlink()
        assert (stats / name).is_dir()
        assert sorted(os.listdir(stats / name)) == (["binary", "docs"] if name == "files" else [])
    for name in FILES:
        assert (stats / name).is_file()
        assert not (stats / name).is_symlink()
        assert (stats / name).stat().st_size == len((stats / name).read_bytes()) or name.startswith("metrics")
    assert computed(stats) == ["sort", "wordcount"]
    for name in LARGE:
        assert (stats / name).read_bytes()
    assert set(LARGE) < set(computed(stats))
    assert (stats / "files/docs/index.md/tfidf").read_bytes().startswith(b"docs/index.md\t")
    assert "tfidf" not in os.listdir(stats / "files/docs/index.md")


@pytest.mark.parametrize(
    "command",
    [
        "ls -lA --color=always . stats",
        "find . -size +0 -ls",
        "grep -r computed-by-nobody . || true",
        "rg -uu computed-by-nobody . || true",
        "rg --hidden computed-by-nobody . || true",
        "tar -c --exclude-caches . | cat",
        "rsync -a ./ ../copied/",
        "cp -a . ../copied-by-cp",
        "du -a .",
    ],
)
def test_programs_that_walk_the_tree(mount: MountArchive, archive: Path, command: str) -> None:
    """Only the two word counts are computed, which are small."""
    mounted = mount(archive, "stats=visible")
    environment = {**os.environ, "LS_COLORS": "or=40;31;01:ex=01;32:mi=01"}
    done = subprocess.run(
        ["bash", "-ec", command], cwd=mounted.path, env=environment, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert set(computed(mounted / "stats")) <= {"sort", "wordcount"}


def test_the_same_directory_is_read_once(mount: MountArchive, archive: Path) -> None:
    """With both `stats` and `.gompfs/stats` in the listing, programs would read everything twice."""
    mounted = mount(archive, "stats=visible")
    found = [name for folder, _, names in os.walk(mounted.path) for name in names]
    assert found.count("wordcount") == 1
    assert (mounted / ".gompfs/stats/sort").read_bytes() == (mounted / "stats/sort").read_bytes()


def test_facts_are_short_and_binary_files_have_a_list(mount: MountArchive, archive: Path) -> None:
    stats = mount(archive) / "stats"
    info = (stats / "info").read_text()
    assert len(info) < 2000
    assert f"binary_files\t{NUM_BINARY}\n" in info
    expected = sorted(f"binary/a file with a long name {number}\n" for number in range(NUM_BINARY))
    assert (stats / "binary-files").read_text() == "".join(expected)


def test_readme_has_every_name_and_its_examples_work(mount: MountArchive, archive: Path) -> None:
    stats = mount(archive) / "stats"
    readme = (stats / "README").read_text()
    blocks = [block.splitlines() for block in readme.split("\n\n")]
    entries = {lines[0].partition("/")[0]: lines for lines in blocks if lines[-1].startswith("    Example: ")}
    names = [name for name, task in TASKS.items() if task.in_mount]
    assert sorted(entries) == sorted({*FILES, *DIRECTORIES, *names, "index.sqlite"})
    for lines in entries.values():
        command = lines[-1].partition("Example: ")[2]
        done = subprocess.run(["bash", "-c", command], cwd=stats, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, (command, done.stderr)
        assert done.stdout, command
