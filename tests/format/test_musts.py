"""The requirements ("must") of docs/format.md for the index: archives that break them, and the commands' reactions.

A broken must is either `refused` or `excused`. Refused: every command that reads the affected part of the archive ends
with status 1 and one line. Excused: section 17 permits readers not to notice it, and `verify` reports it. No broken
must is silently accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from make_invalid import MAKERS, SOUND, archive

from gompfs.cli.application import run

FORMAT = (Path(__file__).parents[2] / "docs" / "format.md").read_text()
ALL = ("ls", "info", "cat", "extract", "stats", "verify")
LINK = "INSERT INTO inode VALUES (5, 41471, 0, 0, {}, 0, 1, 0, {}), (6, 33188, 0, 0, 0, 0, 1, 0, NULL)"
NAMES = "INSERT INTO dirent VALUES (1, x'6c', 5), (1, x'6d', 6)"
NEXT = "UPDATE meta SET value = '7' WHERE key = 'next_ino'"
FILE = "name = x'64616d61676564'"  # SQL for the name `damaged`


class Must(NamedTuple):
    """A requirement: an archive that breaks it, and the commands that refuse it or the sentence that excuses it."""

    make: Callable[[], bytes]
    refused: tuple[str, ...] = ()
    excused: str = ""


def link(size: int, target: str) -> Callable[[], bytes]:
    return lambda: archive(None, LINK.format(size, target), NAMES, NEXT)


def index(*statements: str) -> Callable[[], bytes]:
    return lambda: archive(None, *statements)


READING = ("ls", "extract")
MUSTS = {
    # Inodes
    "inode 2^62": Must(
        index("UPDATE inode SET ino = 1 << 62 WHERE ino = 3", "UPDATE dirent SET ino = 1 << 62 WHERE ino = 3"), READING
    ),
    "mode without a type": Must(index("UPDATE inode SET mode = 420 WHERE ino = 3"), READING),
    "mode 0": Must(index("UPDATE inode SET mode = 0 WHERE ino = 3"), READING),
    "mode of an unknown type": Must(index("UPDATE inode SET mode = 36864 WHERE ino = 3"), READING),
    "mode above 16 bits": Must(index("UPDATE inode SET mode = 98724 WHERE ino = 3"), READING),
    "uid above 32 bits": Must(index("UPDATE inode SET uid = 1 << 32 WHERE ino = 3"), READING),
    "a link with an empty target": Must(link(0, "x''"), READING),
    "a link with a target of 4,096 bytes": Must(link(4096, "CAST(hex(zeroblob(2048)) AS BLOB)"), READING),
    "a link of another size": Must(link(7, "x'6162'"), excused="the `size` of a symbolic link"),
    "a device number of a file": Must(MAKERS["inode-device"], excused="`rdev`"),
    "an inode without a name": Must(MAKERS["inode-without-name"], excused="inodes without a name"),
    # Names
    "a name of 256 bytes": Must(
        index(f"UPDATE dirent SET name = CAST(printf('%.256c', 'a') AS BLOB) WHERE {FILE}"), READING
    ),
    "an empty name": Must(index(f"UPDATE dirent SET name = x'' WHERE {FILE}"), READING),
    "a name with a slash": Must(MAKERS["name-with-slash"], READING),
    "a name that leads nowhere": Must(MAKERS["entry-without-inode"], READING),
    "a name that is looked up and leads nowhere": Must(index(f"UPDATE dirent SET ino = 99 WHERE {FILE}"), ("cat",)),
    "the root is a file": Must(
        index("UPDATE inode SET mode = 33188, nlink = 1 WHERE ino = 1"), ("ls", "cat", "extract")
    ),
    "there is no root": Must(index("DELETE FROM inode WHERE ino = 1"), ("ls", "cat", "extract")),
    # Extents
    "an empty extent": Must(index("UPDATE extent SET size = 0 WHERE ino = 3"), ("cat", "extract")),
    "extents that overlap": Must(MAKERS["extents-overlap"], ("cat", "extract")),
    "an extent outside the stream": Must(MAKERS["extent-outside-stream"], ("cat", "extract")),
    "an extent after the file": Must(MAKERS["extent-after-file"], excused="parts of extents after their file's size"),
    "an extent of a directory": Must(MAKERS["extent-of-directory"], excused="extents or `binary_file` say of inodes"),
    # Extended attributes
    "an attribute without a name": Must(index("INSERT INTO xattr VALUES (3, x'', x'61')"), ("extract",)),
    "an attribute of 256 bytes": Must(
        index("INSERT INTO xattr VALUES (3, CAST(printf('user.%.251c', 'a') AS BLOB), x'61')"), ("extract",)
    ),
    "a value above 64 KiB": Must(index("INSERT INTO xattr VALUES (3, x'757365722e61', zeroblob(65537))"), ("extract",)),
    "an attribute of nothing": Must(MAKERS["xattr-without-inode"], excused="of inodes that are not there"),
    # Segments, sections, facts
    "blocks after the index": Must(MAKERS["index-block-after-index"], ALL),
    "a section of no segment": Must(MAKERS["section-without-segment"], excused="segments that are not there"),
    "no next_ino": Must(index("DELETE FROM meta WHERE key = 'next_ino'"), excused="missing facts of `meta`"),
    "no words": Must(index("DELETE FROM meta WHERE key = 'words'"), excused="missing facts of `meta`"),
    "a low next_ino": Must(MAKERS["meta-next-ino"], excused="wrong or missing facts of `meta`"),
    "next_ino above 2^62": Must(
        index("UPDATE meta SET value = '4611686018427387905' WHERE key = 'next_ino'"), excused="facts of `meta`"
    ),
}  # fmt: skip


def answers(path: Path, target: Path, capfd: pytest.CaptureFixture[str]) -> dict[str, tuple[int, str, str]]:
    commands = {
        "ls": ["ls", "-lR", str(path)],
        "info": ["info", str(path)],
        "cat": ["cat", str(path), "damaged"],
        "extract": ["extract", "-q", str(path), "-C", str(target)],
        "stats": ["stats", str(path), "wordcount"],
        "verify": ["verify", "-q", str(path)],
    }
    found = {}
    for command, arguments in commands.items():
        status = run(arguments)
        output, errors = capfd.readouterr()
        found[command] = (status, output, errors)
    return found


@pytest.mark.parametrize("name", MUSTS)
def test_must(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    must = MUSTS[name]
    path = tmp_path / "a.gomp"
    path.write_bytes(must.make())
    found = answers(path, tmp_path / "out", capfd)
    assert found["verify"][0] == 1, "verify reports each"
    for command, (status, _, errors) in found.items():
        assert "internal error" not in errors
        assert "Traceback" not in errors
        assert status in (0, 1)
        assert bool(errors) == (status == 1) or command == "verify"
    for command in must.refused:
        assert command == "verify" or found[command][2].count("\n") == 1, command
        assert found[command][0] == 1, (command, found[command])
    if must.excused:
        assert must.excused in " ".join(FORMAT.partition("**Readers need not notice**")[2].split())
        assert {found[command][0] for command in ("ls", "info", "cat")} == {0}
    assert must.refused or must.excused


def test_the_sound_archive_passes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.gomp"
    path.write_bytes(archive())
    assert {status for status, _, _ in answers(path, tmp_path / "out", capfd).values()} == {0}
    assert (tmp_path / "out/sound").read_bytes() == SOUND
