"""With allow_other, the kernel applies the POSIX ACLs of the archive, as it does for the same files on a disk."""

from __future__ import annotations

import os
import random
import shutil
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from access_lists import ACCESS, DEFAULT, access_list
from forged_index import forge_index
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.errors import MountError
from gompfs.mount import service
from gompfs.mount.fuse import session
from gompfs.mount.tree.snapshots import Snapshots
from gompfs.options import MountOptions

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root, to become somebody else"
)

ALICE, BOB, CAROL, STAFF, GUESTS = 4001, 4002, 4003, 4100, 4200
USERS = {ALICE: (STAFF,), BOB: (GUESTS,), CAROL: (STAFF, GUESTS)}

# Prints what the user gets of each path: the content, the names of a directory, or the name of the error.
_READER = """
import errno, json, os, sys
got = {}
for path in json.load(sys.stdin):
    try:
        got[path] = sorted(os.listdir(path)) if os.path.isdir(path) else open(path).read()
    except OSError as error:
        got[path] = errno.errorcode[error.errno]
json.dump(got, sys.stdout)
"""


def read_as(directory: Path, paths: list[str], uid: int) -> dict[str, Any]:
    """Returns what a user reads. Only root may enter pytest's temporary directory, so root changes to it first."""
    import json

    groups = USERS.get(uid, ())
    become = ["setpriv", f"--reuid={uid}", f"--regid={uid}"]
    become.append(f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups")
    command = [*become, sys.executable, "-I", "-c", _READER]
    text = json.dumps(paths)
    done = subprocess.run(command, cwd=directory, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def write(path: Path, mode: int, acl: str | None = None, gid: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"secret words of {path.name}\n")
    os.chown(path, 0, gid)
    os.chmod(path, mode)
    if acl is not None:
        os.setxattr(path, ACCESS, access_list(acl))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The three cases in which a reader that looks only at modes is wrong, and a directory with an ACL."""
    root = tmp_path / "tree"
    write(root / "denied", 0o644, f"user::rw-,user:{ALICE}:---,group::r--,mask::r--,other::r--")
    write(root / "group", 0o660, "user::rw-,group::---,mask::rw-,other::---", STAFF)
    write(root / "allowed", 0o600, f"user::rw-,user:{BOB}:r--,group::---,mask::r--,other::---")
    write(root / "directory/file", 0o644)
    os.setxattr(
        root / "directory",
        ACCESS,
        access_list(f"user::rwx,user:{CAROL}:---,group::r-x,mask::r-x,other::r-x"),
    )
    os.setxattr(root / "directory", DEFAULT, access_list("user::rwx,group::r-x,other::r-x"))
    os.chmod(root, 0o755)
    return root


PATHS = ["denied", "group", "allowed", "directory", "directory/file"]


def test_the_kernel_applies_them(mount, tree: Path, tmp_path: Path) -> None:
    pack(tmp_path / "a.gomp", tree)
    mounted = mount(tmp_path / "a.gomp", "allow_other")
    for uid in USERS:
        assert read_as(mounted.path, PATHS, uid) == read_as(tree, PATHS, uid)
    alice, bob, carol = (read_as(mounted.path, PATHS, uid) for uid in USERS)
    assert (alice["denied"], alice["group"], alice["allowed"]) == ("EACCES",) * 3
    assert bob["allowed"] == "secret words of allowed\n"
    assert carol["directory"] == carol["directory/file"] == "EACCES"
    assert (mounted / "group").read_text() == "secret words of group\n"
    for path in PATHS:
        assert os.stat(mounted / path).st_mode == os.stat(tree / path).st_mode
    assert os.getxattr(mounted / "denied", ACCESS) == os.getxattr(tree / "denied", ACCESS)
    assert os.getxattr(mounted / "directory", DEFAULT) == os.getxattr(tree / "directory", DEFAULT)


def random_acl(rng: random.Random) -> str:
    """Returns a random ACL that Linux stores as it is: with a mask, as each with names has one."""

    def rights() -> str:
        return "".join(letter if rng.random() < 0.6 else "-" for letter in "rwx")

    users = rng.sample([0, *USERS], rng.randrange(3))
    groups = rng.sample([STAFF, GUESTS, ALICE], rng.randrange(3))
    entries = [f"user::{rights()}", *(f"user:{uid}:{rights()}" for uid in sorted(users)), f"group::{rights()}"]
    entries += [f"group:{gid}:{rights()}" for gid in sorted(groups)]
    return ",".join([*entries, f"mask::{rights()}", f"other::{rights()}"])


@pytest.mark.parametrize("how", ["", "follow", "subdir_per_archive"])
def test_random_lists(mount, tmp_path: Path, how: str) -> None:
    """All users get the same answers as from the file system that was packed."""
    rng = random.Random(30)
    root = tmp_path / "tree"
    paths = []
    for number in range(120):
        path = root / f"d{number % 12}/f{number}"
        write(path, 0o644, random_acl(rng) if number % 4 else None, rng.choice([0, STAFF, GUESTS]))
        os.chown(path, rng.choice([0, ALICE, BOB]), -1)
        paths.append(f"d{number % 12}/f{number}")
    for number in range(12):
        os.chmod(root / f"d{number}", 0o755)
        if number % 2:
            os.setxattr(root / f"d{number}", ACCESS, access_list(random_acl(rng)))
        paths.append(f"d{number}")
    pack(tmp_path / "a.gomp", root)
    mounted = mount(tmp_path / "a.gomp", "allow_other", *filter(None, [how]))
    top = mounted / "a" if how == "subdir_per_archive" else mounted.path
    for uid in (*USERS, 4004):
        expected = read_as(root, paths, uid)
        assert {"EACCES"} < {str(got) for got in expected.values()}
        assert read_as(top, paths, uid) == expected


def test_umask_takes_rights_of_lists_away(mount, tree: Path, tmp_path: Path) -> None:
    write(tree / "other", 0o666, f"user::rw-,user:{BOB}:rw-,group::rw-,mask::rw-,other::rw-")
    # Bob may enter the root only by its ACL.
    os.setxattr(tree, ACCESS, access_list(f"user::rwx,user:{BOB}:r-x,group::r-x,mask::r-x,other::r-x"))
    pack(tmp_path / "a.gomp", tree)
    mounted = mount(tmp_path / "a.gomp", "allow_other", "umask=027")
    assert read_as(mounted.path, ["other", "allowed"], BOB) == read_as(tree, ["other", "allowed"], BOB)
    assert read_as(mounted.path, ["other"], CAROL) == {"other": "EACCES"}
    masked = access_list(f"user::rw-,user:{BOB}:rw-,group::rw-,mask::r--,other::---")
    assert os.getxattr(mounted / "other", ACCESS) == masked
    closed = mount(tmp_path / "a.gomp", "allow_other", "umask=077")
    assert set(read_as(closed.path, PATHS, BOB).values()) == {"EACCES"}


def test_a_kernel_that_cannot_apply_them(monkeypatch: pytest.MonkeyPatch, tree: Path, tmp_path: Path) -> None:
    """The mount is refused: the kernel would give rights that the ACLs take away."""
    pack(tmp_path / "a.gomp", tree)
    monkeypatch.setattr(session, "answer_init", lambda *_arguments: (False, False))
    place = tmp_path / "mount"
    place.mkdir()
    options = MountOptions(allow_other=True)
    with Snapshots(os.fspath(tmp_path / "a.gomp"), Archive, options) as content:
        mounting = service._session(os.fspath(place), "source", options)
        try:
            with pytest.raises(MountError, match=r"mount: this kernel cannot apply ACLs"):
                mounting.serve(content, lambda: pytest.fail("the mount begins"))
        finally:
            mounting.close()
    assert not os.path.ismount(place)


def test_without_allow_other_the_mounting_user_reads_all(mount, tree: Path, tmp_path: Path) -> None:
    pack(tmp_path / "a.gomp", tree)
    mounted = mount(tmp_path / "a.gomp")
    assert (mounted / "group").read_text() == "secret words of group\n"
    assert set(read_as(mounted.path, PATHS, ALICE).values()) == {"EACCES"}


GOOD = access_list(f"user::rw-,user:{BOB}:rw-,group::rw-,mask::rw-,other::rw-")
MALFORMED = {
    "empty": b"",
    "no entries": GOOD[:4],
    "version": struct.pack("<I", 3) + GOOD[4:],
    "half an entry": GOOD[:-3],
    "no others": GOOD[:-8],
    "no mask": GOOD[:-16] + GOOD[-8:],
    "wrong tag": GOOD[:4] + struct.pack("<H", 64) + GOOD[6:],
    "wrong order": GOOD[:4] + GOOD[12:20] + GOOD[4:12] + GOOD[20:],
    "two masks": GOOD[:-8] + GOOD[-16:],
    "rights": GOOD[:6] + struct.pack("<H", 15) + GOOD[8:],
    "user without number": access_list("user::rw-,user:4294967295:rw-,group::rw-,mask::rw-,other::rw-"),
    "more than the kernel reads": access_list(
        f"user::rw-,{','.join(f'user:{uid}:rw-' for uid in range(10_000, 10_600))},group::rw-,mask::rw-,other::rw-"
    ),
    "no list": b"\xff" * 400,
}


def test_malformed_lists_give_nobody_rights(mount, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    for name in (*MALFORMED, "good"):
        write(root / name, 0o666)
        os.setxattr(root / name, "user.acl", b"")
    os.chmod(root, 0o755)
    pack(tmp_path / "a.gomp", root)
    forge_index(
        tmp_path / "a.gomp",
        *(
            f"UPDATE xattr SET name = CAST('{ACCESS}' AS BLOB), value = x'{value.hex()}' WHERE ino ="
            f" (SELECT ino FROM dirent WHERE name = CAST('{name}' AS BLOB))"
            for name, value in {**MALFORMED, "good": GOOD}.items()
        ),
    )
    mounted = mount(tmp_path / "a.gomp", "allow_other")
    names = list(MALFORMED)
    assert read_as(mounted.path, names, BOB) == dict.fromkeys(names, "EACCES")
    assert read_as(mounted.path, ["good"], BOB) == {"good": "secret words of good\n"}
    for name in names:
        assert (mounted / name).read_text() == f"secret words of {name}\n"  # root may
        assert stat.S_IMODE(os.stat(mounted / name).st_mode) == 0o666
    assert mounted.process.poll() is None
    assert not mounted.logged().count("Traceback")


OF_ALL_FILES = ["wordcount", "word/secret", "grep/secret", "search-socket", "inverted_index", "index.sqlite"]


def test_statistics_are_refused_as_files_are(mount, tree: Path, tmp_path: Path) -> None:
    """A file that modes alone would show to everybody, and statistics of one file with an ACL."""
    for path in ("group", "allowed", "directory/file"):
        (tree / path).unlink()
    (tree / "directory").rmdir()
    write(tree / "named", 0o644, f"user::rw-,user:{BOB}:r--,group::---,mask::r--,other::---")
    pack(tmp_path / "a.gomp", tree)
    mounted = mount(tmp_path / "a.gomp", "allow_other")
    for uid in USERS:
        assert read_as(mounted / "stats", OF_ALL_FILES, uid) == dict.fromkeys(OF_ALL_FILES, "EACCES")
        of_files = ["files/denied/wordcount", "files/named/wordcount"]
        files = read_as(mounted.path, ["denied", "named"], uid)
        statistics = read_as(mounted / "stats", of_files, uid)
        for path, statistic in zip(files, of_files, strict=True):
            assert (statistics[statistic] == "EACCES") == (files[path] == "EACCES")
    assert read_as(mounted / "stats", of_files, BOB)["files/named/wordcount"].startswith("named\t1\n")
    assert read_as(mounted / "stats", of_files, ALICE)["files/denied/wordcount"] == "EACCES"
    assert "secret\t2\n" in (mounted / "stats/wordcount").read_text()
    public = mount(tmp_path / "a.gomp", "allow_other", "stats=public")
    assert read_as(public / "stats", ["wordcount", "files/denied/wordcount"], ALICE)["wordcount"] != "EACCES"


def test_lists_that_refuse_nobody_keep_statistics_open(mount, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    write(root / "a", 0o644, f"user::rw-,user:{ALICE}:rw-,group::r--,mask::r--,other::r--")
    os.chmod(root, 0o755)
    pack(tmp_path / "a.gomp", root)
    mounted = mount(tmp_path / "a.gomp", "allow_other")
    assert read_as(mounted / "stats", ["wordcount"], BOB) == {"wordcount": "a\t1\nof\t1\nsecret\t1\nwords\t1\n"}


def test_grep_asks_the_daemon_only_for_its_users(
    mount, gompfs_command: Callable[..., subprocess.CompletedProcess[str]], tree: Path, tmp_path: Path
) -> None:
    """The daemon searches all files, so a user whom an ACL refuses one file gets no answer from it."""
    pack(tmp_path / "a.gomp", tree)
    mounted = mount(tmp_path / "a.gomp", "allow_other")
    found = gompfs_command("grep", "-l", "secret", mounted.path)
    assert sorted(found.stdout.split()) == sorted(str(mounted / p) for p in PATHS if p != "directory")
    assert read_as(mounted / "stats", ["search-socket"], ALICE) == {"search-socket": "EACCES"}


def test_ls_marks_them(
    gompfs_command: Callable[..., subprocess.CompletedProcess[str]], tree: Path, tmp_path: Path
) -> None:
    """GNU ls writes a plus after the mode of a file with an ACL."""
    pack(tmp_path / "a.gomp", tree)
    lines = gompfs_command("ls", "-lR", tmp_path / "a.gomp").stdout.splitlines()
    marked = {line.split()[-1]: line.split()[0] for line in lines}
    expected = subprocess.run(["ls", "-lR", tree], capture_output=True, text=True, check=True).stdout.splitlines()
    modes = {line.split()[-1]: line.split()[0] for line in expected if line.startswith(("-", "d"))}
    for path in PATHS:
        name = path.rpartition("/")[2]
        assert marked[path + "/" if path == "directory" else path] == modes[name]
    assert marked["denied"].endswith("+")
    assert not marked["directory/file"].endswith("+")
    pack(tmp_path / "without.gomp", tree / "directory/file")
    (line,) = gompfs_command("ls", "-l", tmp_path / "without.gomp").stdout.splitlines()
    assert line.startswith("-rw-r--r--  1 ")
