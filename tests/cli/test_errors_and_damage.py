"""Exit statuses, one-line errors, and archives with flipped bytes."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import IO

import pytest
from tree_helpers import files_of_block

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.format import GENERATION_HEADER_SIZE, align

READERS = ("ls", "info", "verify", "extract", "bench")


def flip_byte(path: Path, archive_offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[archive_offset] ^= 0x10
    path.write_bytes(content)


@pytest.fixture
def damaged(archive: Path) -> tuple[Path, int]:
    """The archive with a flipped byte in a block that only docs/b.txt uses, and the number of that block."""
    with Archive(archive) as opened:
        inode = opened.resolve("docs/b.txt")
        (extent,) = opened.extents(inode.ino)
        block = extent.stream_offset // opened.block_size + 1
        assert files_of_block(opened, block) == [inode.ino]
        archive_offset = int(opened.segments[0].blocks.archive_offsets[block])
    flip_byte(archive, archive_offset + 1000)
    return archive, block


def test_cat_of_a_damaged_file_names_archive_and_block(gompfs, damaged, tree):
    archive, block = damaged
    result = gompfs("cat", archive, "docs/b.txt", "docs/a.txt", "z.txt")
    assert result.status == 1
    expected = "the compressed bytes do not match their checksum"
    assert result.error_line == f"{archive}: docs/b.txt: block {block}: {expected}"
    assert result.output == (tree / "docs/a.txt").read_bytes() + (tree / "z.txt").read_bytes()


def test_verify_lists_damaged_blocks(gompfs, damaged):
    archive, block = damaged
    result = gompfs("verify", archive)
    assert result.status == 1
    assert result.errors == ""
    assert f"block {block}: " in result.lines[0]
    assert result.lines[0].endswith("affects docs/b.txt")
    assert result.lines[1].endswith("1 damaged block, 1 file affected")
    report = json.loads(gompfs("verify", "--json", archive).output)
    assert [(damage["block"], damage["paths"]) for damage in report["damages"]] == [(block, ["docs/b.txt"])]


def test_extract_leaves_out_only_the_damaged_file(gompfs, damaged, tree, tmp_path):
    result = gompfs("extract", damaged[0], "-C", "out")
    assert result.status == 1
    assert "docs/b.txt" in result.error_line
    assert not (tmp_path / "out/docs/b.txt").exists()
    assert (tmp_path / "out/z.txt").read_bytes() == (tree / "z.txt").read_bytes()


def test_bench_refuses_damaged_blocks(gompfs, damaged):
    archive, block = damaged
    result = gompfs("bench", "--seconds", "0", archive)
    assert result.status == 1
    assert result.error_line.startswith(f"{archive}: block {block}: ")


@pytest.mark.parametrize("damage", ["damaged header", "no trailers", "other bytes"])
def test_verify_of_an_archive_whose_last_generation_is_lost(gompfs, archive, tmp_path, damage):
    """Verify fails, since an interrupted add and a damaged header cannot be told apart.

    Other commands read the generation before, with a warning.
    """
    before = gompfs("ls", "-lR", archive).output
    size = archive.stat().st_size
    if damage == "other bytes":
        with open(archive, "ab") as file:
            file.write(os.urandom(5000))
    else:
        (tmp_path / "more.txt").write_text("more")
        assert gompfs("add", "more.txt", archive).status == 0
        assert gompfs("verify", archive).status == 0
        if damage == "no trailers":
            os.truncate(archive, archive.stat().st_size // 2 + size // 2)
        else:
            flip_byte(archive, align(size, GENERATION_HEADER_SIZE) + 20)
    num_bytes = archive.stat().st_size - size
    reason = "an add is running or was interrupted, or they are damaged; see gompfs repair"
    found = gompfs("verify", "-q", archive)
    assert (found.status, found.errors) == (1, "")
    assert found.lines == [
        f"{archive}: the {num_bytes} bytes after generation 1 are not a complete generation: {reason}",
        f"{archive}: 1 problem",
    ]
    report = json.loads(gompfs("verify", "--json", archive).output)
    assert [(problem["inode"], problem["path"]) for problem in report["problems"]] == [(None, None)]
    listing = gompfs("ls", "-lR", archive)
    assert (listing.status, listing.output) == (0, before)
    ignored = f"this is generation 1; the {num_bytes} bytes after it are ignored: {reason}"
    assert listing.error_line == f"warning: {archive}: {ignored}"


def test_verify_looks_at_earlier_generations(gompfs, archive, tmp_path):
    with Archive(archive) as opened:
        index_offset = opened.footer.index_offset
    (tmp_path / "more.txt").write_text("more")
    assert gompfs("add", "more.txt", archive).status == 0
    flip_byte(archive, index_offset + 200)
    found = gompfs("verify", archive)
    assert found.status == 1
    assert found.lines[0].startswith(f"{archive}: generation 1: copy 1 of the index: the index is damaged: ")
    listed = gompfs("ls", archive)
    assert listed.status == 0
    assert "copy 1 of the index of generation 1: " in listed.errors


def test_verify_names_the_file_of_a_problem(gompfs, tmp_path):
    archive = Path(__file__).parents[1] / "data/invalid/data/inode-device.gomp"
    assert json.loads(gompfs("verify", "--json", archive).output)["problems"] == [
        {"inode": 3, "path": "damaged", "reason": "it has the device number 1 and is not a device"}
    ]


def test_verify_of_a_sound_archive(gompfs, archive):
    result = gompfs("verify", archive)
    assert result.status == 0
    assert result.lines[0].endswith("no damage found")
    quiet = gompfs("verify", "-q", archive)
    assert (quiet.status, quiet.output, quiet.errors) == (0, b"", "")


@pytest.mark.parametrize("command", READERS)
def test_a_missing_archive(gompfs, command):
    result = gompfs(command, "nowhere.gomp")
    assert (result.status, result.output) == (1, b"")
    assert result.error_line.endswith("nowhere.gomp: No such file or directory")


@pytest.mark.parametrize("command", READERS)
def test_not_an_archive(gompfs, tmp_path, command):
    (tmp_path / "other.gomp").write_bytes(b"something else " * 1000)
    result = gompfs(command, "other.gomp")
    assert (result.status, result.output) == (1, b"")
    assert "other.gomp: " in result.error_line


def test_empty_and_truncated_archives(gompfs, archive, tmp_path):
    (tmp_path / "empty.gomp").touch()
    assert "empty.gomp: " in gompfs("ls", "empty.gomp").error_line
    (tmp_path / "half.gomp").write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    result = gompfs("ls", "half.gomp")
    assert result.status == 1
    assert "half.gomp: " in result.error_line


def test_damaged_index(gompfs, archive):
    with Archive(archive) as opened:
        footer, size = opened.footer, opened.size
    for copy_end in (size, footer.index_offset):
        flip_byte(archive, copy_end - 200)
    result = gompfs("ls", archive)
    assert result.status == 1
    assert result.error_line.startswith(f"{archive}: both copies of the index are damaged: copy 0 of the index: ")


def test_ls_of_a_directory_within_itself_ends(gompfs, tmp_path):
    looped = Path(__file__).parents[1] / "data/invalid/data/directory-with-two-names.gomp"
    for options in ("-R", "-lR"):
        result = gompfs("ls", options, looped)
        assert result.status == 1
        assert result.error_line == f"{looped}: folder/up: the index is damaged: a directory has two names"
        assert len(result.lines) == 3


def test_a_missing_source(gompfs, tmp_path):
    result = gompfs("pack", "--codec", "gompresso-bit", "nowhere", "new.gomp")
    assert result.status == 1
    assert result.error_line == "nowhere: cannot read: No such file or directory"
    assert not (tmp_path / "new.gomp").exists()


def test_an_unavailable_engine(gompfs, archive):
    result = gompfs("cat", "--engine", "gpu", archive, "z.txt")
    assert (result.status, result.output) == (1, b"")
    assert "needs CuPy" in result.error_line


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("ls",),
        ("ls", "--frobnicate", "x.gomp"),
        ("cat", "x.gomp"),
        ("pack", "--block-size", "5K", "source", "x.gomp"),
        ("pack", "--block-size", "wide", "source", "x.gomp"),
        ("pack", "--level", "10", "source", "x.gomp"),
        ("pack", "--mtime", "yesterday", "source", "x.gomp"),
        ("pack", "--mtime", "2300-01-01", "source", "x.gomp"),
        ("pack", "--owner", "no such user", "source", "x.gomp"),
        ("mount", "x.gomp", "somewhere", "-o", "frobnicate"),
        ("setup", "--remove"),
    ],
)
def test_wrong_usage_is_status_2(gompfs, arguments):
    result = gompfs(*arguments)
    assert (result.status, result.output) == (2, b"")
    assert result.error_line


def test_no_command_shows_the_help_and_fails(gompfs):
    result = gompfs()
    assert result.status == 2
    assert "Commands:" in result.errors


def test_umount_of_no_mount(gompfs, tmp_path):
    result = gompfs("umount", tmp_path)
    assert result.status == 1
    assert result.error_line == f"{tmp_path}: nothing is mounted here"


def test_debug_shows_a_traceback(gompfs):
    result = gompfs("--debug", "ls", "nowhere.gomp")
    assert result.status == 1
    assert "Traceback" in result.errors


def unread_bytes(pipe: IO[bytes]) -> int:
    """Returns how many bytes written to the pipe have not been read yet."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


def is_asleep(process: subprocess.Popen[bytes]) -> bool:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def test_interrupt_is_one_line(archive):
    """^C while pack waits for its input."""
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "gompfs", "pack", "--codec", "gompresso-bit", "-", "never.gomp"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=archive.parent,
        # a shell starts background processes with SIGINT ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"the beginning of a tar")
        process.stdin.flush()
        # until pack has read everything and waits for more
        while unread_bytes(process.stdin) or not is_asleep(process):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
        assert process.wait(timeout=60) == 130
    assert errors == b"gompfs: interrupted\n"
    assert not list(archive.parent.glob("*never*"))


def test_an_internal_error_is_one_line_without_control_characters(
    monkeypatch: pytest.MonkeyPatch, archive: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a\x1b[2J\nb\r\udcff\ud800\u202e")

    monkeypatch.setattr("gompfs.cli.ls.opened", fail)
    assert run(["ls", str(archive)]) == 1
    (line,) = capfdbinary.readouterr().err.decode().splitlines()
    assert line.startswith(r"gompfs: internal error: RuntimeError: a\x1b[2J b \xff\ud800\u202e (run gompfs --debug")
