"""What an archive notes of its generations, and the removal of entries."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from forged_index import forge_index
from oracle.archive import read_archive
from tree_helpers import add, list_archive, pack

import gompfs
from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.errors import CorruptIndexError, EntryNotFoundError, OptionError, PackError
from gompfs.model import MAX_COMMENT_SIZE, Generation
from gompfs.pack import remove_from_archive
from gompfs.pack.history import note_of
from gompfs.statistics.tasks import compute
from gompfs.verify import verify_archive

GOLDEN = Path(__file__).parents[1] / "data" / "golden"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An archive of a small tree."""
    tree = tmp_path / "tree"
    (tree / "docs/deep/er").mkdir(parents=True)
    for name in ("docs/a.txt", "docs/deep/b.txt", "docs/deep/er/c.txt", "z.txt"):
        (tree / name).write_text(f"words of {name}\n")
    os.link(tree / "z.txt", tree / "docs/z-too")
    os.symlink("docs", tree / "to-docs")
    pack(tmp_path / "a.gomp", tree)
    return tmp_path / "a.gomp"


def notes(path: Path) -> list[Generation]:
    with Archive(path) as archive:
        assert verify_archive(archive).is_sound
        return archive.index.generations()


def paths(path: Path) -> set[bytes]:
    """Returns the paths in an archive, on which gompfs and the slow reader agree."""
    with Archive(path) as archive:
        seen = set(list_archive(archive))
    assert seen == set(read_archive(path.read_bytes()).paths)
    return seen


def test_notes(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "more").write_text("more")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    add(path, tmp_path / "more", comment="\u00e9\x1b[2J\n")
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    before = int(time.time())
    remove_from_archive(path, ["more"])
    program = f"gompfs {gompfs.__version__}"
    first, second, third = notes(path)
    assert first == (1, 1_700_000_000, 10, 0, f"{program} pack", "")
    assert second == (2, 0, 1, 0, f"{program} add", "\u00e9\x1b[2J\n")
    assert third == (3, third.time, 0, 1, f"{program} remove", "")
    assert before <= third.time <= int(time.time())
    assert run(["repack", "-q", str(path), str(tmp_path / "b.gomp"), "--comment", "again"]) == 0
    (only,) = notes(tmp_path / "b.gomp")
    assert (only.command, only.comment) == (f"{program} repack", "again")


def test_info_lists_generations(path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "more").write_text("more")
    size = path.stat().st_size
    add(path, tmp_path / "more", comment="\x1b[2J\n")
    assert run(["info", str(path)]) == 0
    lines = [line for line in capfd.readouterr().out.splitlines() if line.startswith("generation ")]
    assert lines[0].startswith(f"generation 1  2023-11-14 22:13:20 UTC, gompfs {gompfs.__version__} pack, 10 entries, ")
    assert lines[1].endswith(r": \x1b[2J\n")
    assert run(["info", "--json", str(path)]) == 0
    found = json.loads(capfd.readouterr().out)["generations"]
    assert [each["size"] for each in found] == [size, path.stat().st_size - size]
    assert found[1]["comment"] == "\x1b[2J\n"
    forge_index(path, f"UPDATE generation SET time = {(1 << 63) - 1}")
    assert run(["info", str(path)]) == 0
    assert f"@{(1 << 63) - 1}, " in capfd.readouterr().out


@pytest.mark.parametrize("text", ["", "now", "-1", "1.5", "253402300800", "9" * 30])
def test_impossible_times(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    with pytest.raises(OptionError, match="SOURCE_DATE_EPOCH must be a number of seconds"):
        note_of("pack", "")


def test_the_last_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "253402300799")
    assert note_of("pack", "").time == 253_402_300_799


def test_the_limit_of_comments(path: Path) -> None:
    for comment in ("\u00e9" * (MAX_COMMENT_SIZE // 2) + "x", "a\0b", "\udcff"):
        before = path.read_bytes()
        with pytest.raises(OptionError, match=r"a comment has at most 4096 bytes|not UTF-8"):
            remove_from_archive(path, ["z.txt"], comment=comment)
        assert path.read_bytes() == before
    longest = ["x" * (MAX_COMMENT_SIZE - 1), "\u00e9" * (MAX_COMMENT_SIZE // 2)]
    for name, comment in zip(("z.txt", "docs"), longest, strict=True):
        remove_from_archive(path, [name], comment=comment)
    assert [note.comment for note in notes(path)] == ["", *longest]
    forge_index(path, "UPDATE generation SET comment = comment || 'x' WHERE number = 3")
    with Archive(path) as archive:
        (problem,) = verify_archive(archive).problems
        assert problem.reason == "the command or the comment of generation 3 is too long"


@pytest.mark.parametrize("statement", ["DELETE FROM generation", "INSERT INTO generation VALUES (2, 0, 0, 0, '', '')"])
def test_another_number_of_notes(path: Path, statement: str) -> None:
    forge_index(path, statement)
    with Archive(path) as archive:
        (problem,) = verify_archive(archive).problems
        assert "generations, and is that of generation 1" in problem.reason
    before = path.read_bytes()
    with pytest.raises(CorruptIndexError, match="is that of generation 1"):
        remove_from_archive(path, ["z.txt"])
    assert path.read_bytes() == before


def test_removing(path: Path, tmp_path: Path) -> None:
    assert run(["remove", str(path), "docs/deep", "docs/*.txt", "to-docs", "docs/deep/b.txt"]) == 0
    assert paths(path) == {b"", b"docs", b"docs/z-too", b"z.txt"}
    assert notes(path)[-1].num_removed == 6
    assert remove_from_archive(path, ["z.txt"]) == 1
    with Archive(path) as archive:
        assert archive.footer.generation == 3
        assert archive.read(archive.resolve("docs/z-too").ino, 0, 100) == b"words of z.txt\n"
        assert compute(b"wordcount", archive).read() == b"of\t1\ntxt\t1\nwords\t1\nz\t1\n"
    add(path, tmp_path / "tree")
    assert b"docs/deep/er/c.txt" in paths(path)
    assert len(notes(path)) == 4


@pytest.mark.parametrize("wrong", ["none", "docs/none", "z.txt/none", "", "/", "docs/../z.txt"])
def test_what_cannot_be_removed(path: Path, wrong: str) -> None:
    before = path.read_bytes()
    with pytest.raises((EntryNotFoundError, PackError)):
        remove_from_archive(path, ["docs", wrong])
    assert path.read_bytes() == before


def test_repack_leaves_unknown_facts_and_sections_out(tmp_path: Path) -> None:
    """It numbers inodes and blocks anew, to which they may refer; `add` keeps them (test_golden.py)."""
    assert run(["repack", "-q", str(GOLDEN / "foreign.gomp"), str(tmp_path / "new.gomp")]) == 0
    with Archive(GOLDEN / "foreign.gomp") as old, Archive(tmp_path / "new.gomp") as new:
        assert old.meta.keys() - new.meta.keys()
        known = {"words", "dictionary"}
        assert {section.kind for section in new.sections} <= known
        assert {section.kind for section in old.sections} - known
