"""With allow_other, statistics do not disclose the content of files that a user may not read."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from pathlib import Path

import pytest
from forged_index import forge_index
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.engine import select_engine
from gompfs.model import Inode
from gompfs.mount.stats_permissions import StatsPermissions
from gompfs.options import MountOptions, PackOptions
from gompfs.pack import open_source, pack_archive

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root, to become somebody else"
)

NOBODY = 65534
TASKS = (
    *("wordcount", "sort", "inverted_index", "term_vector", "sequence_count", "ranked_inverted_index", "tfidf"),
    *("word/secret", "word/open", "word/nowhere", "phrase/secret words"),
    *("grep/secret", "count/o", "files-with/secret"),
)
OF_A_FILE = ("wordcount", "sort", "term_vector", "sequence_count")


def as_user(directory: Path, *command: str, uid: int = NOBODY) -> subprocess.CompletedProcess[str]:
    """Runs a command as another user. Only root may enter pytest's temporary directory, so root changes to it first."""
    become = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    return subprocess.run([*become, *command], cwd=directory, capture_output=True, text=True, timeout=60, check=False)


def cat(root: Path, path: str, uid: int = NOBODY) -> str | None:
    """Returns the text of a file below `root` as another user reads it, or None if that is refused."""
    done = as_user(root, "cat", f"./{path}", uid=uid)
    if done.returncode == 0:
        return done.stdout
    assert done.stderr.endswith("Permission denied\n"), (path, done.stderr)
    return None


def make_tree(root: Path, files: dict[str, tuple[str, int]], directories: dict[str, int]) -> Path:
    """Makes a tree from files with (content, mode) and from directories whose mode is not 0755."""
    for name, (content, mode) in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
        os.chmod(root / name, mode)
    for path in [root, *root.rglob("*")]:
        if path.is_dir():
            os.chmod(path, directories.get(str(path.relative_to(root)), 0o755))
    return root


@pytest.fixture
def protected(tmp_path: Path) -> Path:
    """An archive of a tree with a file that only its owner may read."""
    files = {
        "private/shadow": ("secret words of the shadow\n", 0o600),
        "private/listed": ("a file for all in a directory for one\n", 0o644),
        "public/open": ("open words for all\n", 0o644),
        "public/closed": ("closed words\n", 0o600),
        "group": ("words of a group\n", 0o640),
    }
    root = make_tree(tmp_path / "protected", files, {"private": 0o700})
    os.link(root / "private/listed", root / "public/link")
    os.chown(root / "group", 0, NOBODY)
    pack(tmp_path / "protected.gomp", root)
    return tmp_path / "protected.gomp"


@pytest.fixture
def open_archive(tmp_path: Path) -> Path:
    """An archive whose files every user may read."""
    pack(tmp_path / "open.gomp", make_tree(tmp_path / "open", {"d/file": ("open words for all\n", 0o644)}, {}))
    return tmp_path / "open.gomp"


def pack_with_grammar(target: Path, source: Path) -> None:
    pack_archive([open_source(source)], target, PackOptions(force=True), engine=select_engine("cpu"))


def check_protected(stats: Path, uid: int = NOBODY) -> None:
    """Checks that another user can read no statistics of all files, and only those of files that the user may read."""
    for task in TASKS:
        assert cat(stats, task, uid) is None
    for directory in ("word", "phrase"):
        assert as_user(stats, "ls", directory, uid=uid).returncode != 0
    for path in ("private/shadow", "private/listed", "public/closed"):
        for task in OF_A_FILE:
            assert cat(stats, f"files/{path}/{task}", uid) is None
    listing = as_user(stats, "find", "files/", uid=uid)
    assert "shadow" not in listing.stdout
    assert "listed" not in listing.stdout
    assert cat(stats, "files/public/open/wordcount", uid) == "all\t1\nfor\t1\nopen\t1\nwords\t1\n"
    facts = (cat(stats, "info", uid) or "") + (cat(stats, "metrics", uid) or "")
    assert "shadow" not in facts
    # The user who mounted can read all statistics.
    assert "secret\t1\n" in (stats / "wordcount").read_text()
    assert (stats / "word/secret").read_text() == "private/shadow\t1\n"
    assert (stats / "files/private/shadow/wordcount").stat().st_mode & 0o777 == 0o400
    assert stat.S_IMODE((stats / "sequence_count").stat().st_mode) == 0o400
    assert stat.S_IMODE((stats / "word").stat().st_mode) == 0o500


@pytest.mark.parametrize("options", [(), ("follow",)], ids=" ".join)
def test_protected_files(mount, protected: Path, options: tuple[str, ...]) -> None:
    """Another user could read words, sequences and paths of a file of mode 0600 in a directory of mode 0700."""
    mounted = mount(protected, "allow_other", *options)
    assert cat(mounted.path, "private/shadow") is None
    check_protected(mounted / "stats")
    check_protected(mounted / ".gompfs/stats")


def test_with_passthrough(mount, protected: Path) -> None:
    check_protected(mount(protected, "allow_other", "passthrough_size=64M") / "stats")


def test_with_a_grammar(mount, protected: Path) -> None:
    pack_with_grammar(protected, protected.with_suffix(""))
    check_protected(mount(protected, "allow_other") / "stats")


def test_a_file_that_its_group_may_not_read(mount, tmp_path: Path) -> None:
    """The group of a file of mode 0604 is refused what all others may do."""
    tree = make_tree(tmp_path / "refused", {"file": ("secret words\n", 0o604)}, {})
    os.chown(tree / "file", 0, NOBODY)
    pack(tmp_path / "refused.gomp", tree)
    stats = mount(tmp_path / "refused.gomp", "allow_other") / "stats"
    for name in ("../file", "wordcount", "word/secret", "grep/secret", "files/file/wordcount"):
        assert cat(stats, name) is None
    assert "secret\t1\n" in (stats / "wordcount").read_text()


def test_a_group_reads_statistics_of_its_file(mount, protected: Path) -> None:
    mounted = mount(protected, "allow_other")
    assert cat(mounted.path, "group") == "words of a group\n"
    assert cat(mounted / "stats", "files/group/wordcount") == "a\t1\ngroup\t1\nof\t1\nwords\t1\n"
    assert cat(mounted / "stats", "files/group/wordcount", uid=4242) is None


def test_other_paths_of_a_hard_link_are_not_disclosed(mount, protected: Path) -> None:
    """A file has one name in a public directory and one in a private directory; the private path is not disclosed."""
    mounted = mount(protected, "allow_other")
    line = cat(mounted / "stats", "files/public/link/term_vector")
    assert line is not None
    assert line.startswith("public/link\t")


def test_a_refused_statistic_is_not_computed(mount, tmp_path: Path) -> None:
    """A user who may not read a statistic is refused at once, and the daemon does not compute the statistic."""
    words = " ".join(f"w{number * 7919 % 50_021}" for number in range(2_000_000))
    pack(tmp_path / "many.gomp", make_tree(tmp_path / "many", {"text": (words, 0o600)}, {}))
    mounted = mount(tmp_path / "many.gomp", "allow_other")
    assert cat(mounted / "stats", "ranked_inverted_index") is None
    metrics = (mounted / "stats/metrics").read_text()
    (decoded,) = [line for line in metrics.splitlines() if line.startswith('gompfs_decoded_blocks_total{engine="cpu"}')]
    assert float(decoded.split()[-1]) == 0


def test_open_archives_stay_open(mount, open_archive: Path) -> None:
    mounted = mount(open_archive, "allow_other")
    for task in TASKS:
        if "secret" not in task and task != "word/nowhere":
            assert cat(mounted / "stats", task)
    assert as_user(mounted / "stats", "cat", "word/nowhere").stderr.endswith("No such file or directory\n")


@pytest.mark.parametrize(
    ("option", "is_open"),
    [
        ("umask=077", False),
        ("umask=022", True),
        ("umask=055", False),
        ("uid=4242,umask=077", False),
        ("subdir=d", False),
    ],
)
def test_permissions_follow_the_modes_shown(mount, open_archive: Path, option: str, is_open: bool) -> None:
    mounted = mount(open_archive, "allow_other", option)
    name = "file" if option == "subdir=d" else "d/file"
    assert (cat(mounted.path, name) is not None) == (is_open or option == "subdir=d")
    stats = mounted / (".gompfs/stats")
    assert (cat(stats, "wordcount") is not None) == is_open
    assert (cat(stats, "files/d/file/wordcount") is not None) == is_open
    if option.startswith("uid"):
        assert cat(stats, "wordcount", uid=4242)
        assert cat(stats, "files/d/file/wordcount", uid=4242)


def test_an_owner_of_all_must_be_able_to_read_all(mount, tmp_path: Path) -> None:
    files = {"a": ("words\n", 0o644), "b": ("secret words\n", 0o040)}
    pack(tmp_path / "a.gomp", make_tree(tmp_path / "tree", files, {}))
    mounted = mount(tmp_path / "a.gomp", "allow_other", "uid=4242")
    assert cat(mounted.path, "b", uid=4242) is None
    assert cat(mounted / "stats", "wordcount", uid=4242) is None


@pytest.mark.parametrize("mode", [0o700, 0o711, 0o744])
def test_modes_of_directories_matter(mount, tmp_path: Path, mode: int) -> None:
    """A directory that may not be searched or listed hides the names in it, and perhaps the files."""
    pack(tmp_path / "a.gomp", make_tree(tmp_path / "tree", {"d/file": ("words\n", 0o644)}, {"d": mode}))
    mounted = mount(tmp_path / "a.gomp", "allow_other")
    assert cat(mounted / "stats", "inverted_index") is None
    assert "file" not in as_user(mounted / "stats", "ls", "files/d").stdout or mode == 0o744


def test_statistics_can_be_made_public(mount, protected: Path) -> None:
    for options in (("stats=public",), ("stats=visible", "stats=public")):
        mounted = mount(protected, "allow_other", *options)
        stats = mounted / "stats"
        assert cat(stats, "word/secret") == "private/shadow\t1\n"
        assert cat(stats, "files/private/shadow/wordcount")
        assert "secret\t1\n" in (cat(stats, "wordcount") or "")
        assert cat(mounted.path, "private/shadow") is None
        assert ("stats" in os.listdir(mounted.path)) == (len(options) == 2)


@pytest.mark.parametrize("several", ["union", "subdir_per_archive"])
def test_several_archives(gompfs_command, protected: Path, open_archive: Path, tmp_path: Path, several: str) -> None:
    """The permissions of each archive's statistics follow from its own files."""
    place = tmp_path / "both"
    place.mkdir()
    options = f"allow_other,{several}"
    assert gompfs_command("mount", "-o", options, protected, open_archive, place).returncode == 0
    try:
        assert cat(place / "stats/open", "wordcount")
        check_protected(place / "stats/protected")
    finally:
        assert gompfs_command("umount", place).returncode == 0


def test_follow_looks_at_each_archive(mount, protected: Path, open_archive: Path) -> None:
    mounted = mount(open_archive, "allow_other", "follow")
    assert cat(mounted / "stats", "wordcount")
    os.replace(protected, open_archive)
    deadline = time.monotonic() + 60
    while not (mounted / "private").exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    check_protected(mounted / "stats")


def test_paths_of_binary_files(mount, tmp_path: Path) -> None:
    """They are names of files, and so must be protected too."""
    root = make_tree(tmp_path / "tree", {"private/key": ("\0binary\0" * 100, 0o600)}, {"private": 0o700})
    pack_with_grammar(tmp_path / "a.gomp", root)
    mounted = mount(tmp_path / "a.gomp", "allow_other")
    assert (mounted / "stats/binary-files").read_text() == "private/key\n"
    assert cat(mounted / "stats", "binary-files") is None
    assert "private" not in (cat(mounted / "stats", "info") or "private")
    assert cat(mounted / "stats", "metrics")


def own_owner(archive: Path) -> int:
    with Archive(archive) as opened:
        permissions = StatsPermissions(opened, MountOptions(allow_other=True), 1, lambda inode: inode)
        return permissions.of_all_files(Inode(1, stat.S_IFREG, 7, 7, 0, 0, 1)).mode & 0o777


@pytest.mark.parametrize(
    "statement", ["UPDATE inode SET mode = -1 WHERE ino = 2", "UPDATE inode SET mode = 1 << 40 WHERE ino = 2"]
)
def test_impossible_modes_are_not_public(open_archive: Path, statement: str) -> None:
    assert own_owner(open_archive) == 0o444
    forge_index(open_archive, statement)
    assert own_owner(open_archive) == 0o400
