"""What docs/faq.md and docs/howto/mount.md advise for programs that write: SQLite, and editors on an overlay."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tree_helpers import pack

if TYPE_CHECKING:
    from conftest import Mount, MountArchive

OVERLAY = ["mount", "-t", "overlay", "overlay"]
FUSE_OVERLAY = ["fuse-overlayfs"]


@pytest.fixture
def shown(tmp_path: Path, mount: MountArchive) -> Mount:
    (tmp_path / "tree").mkdir()
    for mode in ("wal", "delete"):
        with sqlite3.connect(tmp_path / "tree" / f"{mode}.db") as database:
            database.execute(f"pragma journal_mode={mode}")
            database.execute("create table t (x)")
            database.execute("insert into t values (7)")
        database.close()
    (tmp_path / "tree" / "text").write_text("text\n")
    pack(tmp_path / "tree.gomp", tmp_path / "tree")
    return mount(tmp_path / "tree.gomp")


def rows(name: str | Path, *, uri: bool = False) -> list[tuple[int]]:
    database = sqlite3.connect(name, uri=uri)
    try:
        return database.execute("select x from t").fetchall()
    finally:
        database.close()


def test_databases_in_a_mount(shown: Mount) -> None:
    assert rows(shown / "delete.db") == [(7,)]
    with pytest.raises(sqlite3.OperationalError, match="unable to open database file"):
        rows(shown / "wal.db")
    assert rows(f"file:{shown / 'wal.db'}?immutable=1", uri=True) == [(7,)]


@pytest.mark.parametrize("command", [OVERLAY, FUSE_OVERLAY], ids=["overlay", "fuse-overlayfs"])
def test_an_overlay(shown: Mount, tmp_path: Path, command: list[str]) -> None:
    if command == FUSE_OVERLAY and not shutil.which("fuse-overlayfs"):
        pytest.skip("needs fuse-overlayfs")
    if command == OVERLAY and os.geteuid() != 0:
        pytest.skip("needs root")
    changes, work, edited = (tmp_path / name for name in ("changes", "work", "edited"))
    for path in (changes, work, edited):
        path.mkdir()
    layers = f"lowerdir={shown.path},upperdir={changes},workdir={work}"
    done = subprocess.run([*command, "-o", layers, edited], capture_output=True, text=True, check=False)
    if done.returncode != 0 and command == OVERLAY:
        pytest.skip(f"no overlay on this file system: {done.stderr}")
    try:
        with open(edited / "text", "a") as file:
            file.write("more\n")
        (edited / "text~").write_text("new\n")
        (edited / "text~").rename(edited / "delete.db")
        with sqlite3.connect(edited / "wal.db") as database:
            database.execute("insert into t values (8)")
        database.close()
        assert (edited / "text").read_text() == "text\nmore\n"
        assert (edited / "delete.db").read_text() == "new\n"
        assert rows(edited / "wal.db") == [(7,), (8,)]
        pack(tmp_path / "new.gomp", edited)
    finally:
        subprocess.run(["umount", edited], check=True)
    assert (shown / "text").read_text() == "text\n"
