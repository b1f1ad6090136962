"""Large files are searched in pieces, on several threads, with the output of ripgrep."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
import ripgrep
from searched_tree import make_large_tree
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import Codec


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("large") / "tree"
    make_large_tree(root)
    return root


@pytest.fixture(scope="module")
def archive(tree: Path) -> Path:
    target = tree.parent / "tree.gomp"
    pack(target, tree, codec=Codec.GOMPRESSO_TADOC)
    return target


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "options",
    [
        *(["-n"], ["-c"], ["-l"], ["-o"], ["-m3", "-A2"], ["-n", "-C2"], ["-n", "-B3", "--heading"]),
        *(["-cv"], ["-w", "-i"], ["--json"], ["-U", "-n"], ["-a", "-c"], ["-n", "-A100000", "-m2"]),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("pattern", ["foo", r"needle \d+ .*r$"])
def test_options(
    capfdbinary: pytest.CaptureFixture[bytes], tree: Path, archive: Path, options: list[str], pattern: str
) -> None:
    command = [ripgrep.PROGRAM, "--no-config", "-uu", "--sort=path", *options, "-e", pattern]
    expected = subprocess.run(command, cwd=tree, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    status = run(["grep", "--sort=path", *options, "-e", pattern, str(archive)])
    found, wanted = capfdbinary.readouterr().out, expected.stdout
    if "--json" in options:  # times, and sizes of the output, differ
        found, wanted = (only_matches(output) for output in (found, wanted))
    assert status == expected.returncode
    assert found == wanted


PIECE = 512 << 10
"""The size of the pieces in which large files are searched (native/search/large_file_search.cpp)."""


@pytest.fixture(scope="module")
def nuls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive beside its tree: large files that follow each other, with NULs around the ends of pieces, or none.

    `searched` has what comes before the line with the NUL.
    """
    root = tmp_path_factory.mktemp("nuls")
    (root / "tree").mkdir()
    (root / "searched").mkdir()
    rng = random.Random(11)
    ends = (b"foo\n", b"\n")
    lines = [b"%d " % number + b"text " * rng.randrange(1, 40) + rng.choice(ends) for number in range(9000)]
    for number, offset in enumerate([-70_000, -30_000, -1, 0, 1, 9_000, 40_000, 300_000, None]):
        # not the same text for all: that would be stored once
        content = bytearray(b"".join(rng.choices(lines, k=180_000))[: (16 << 20) + 12_345])
        searched = len(content)
        if offset is not None:
            content[(number + 1) * PIECE + offset] = 0
            searched = content.rfind(b"\n", 0, (number + 1) * PIECE + offset) + 1
        (root / "tree" / f"{number}").write_bytes(content)
        (root / "searched" / f"{number}").write_bytes(content[:searched])
    pack(root / "tree.gomp", root / "tree")
    return root


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("threads", "options"),
    [(1, ["-n"]), (16, ["-n"]), (2, ["-nv"]), (16, ["-a", "-no"]), (2, ["-m7"]), (16, ["-n", "--no-filename"])],
)
def test_nuls_and_the_order_of_files(
    capfdbinary: pytest.CaptureFixture[bytes], nuls: Path, threads: int, options: list[str]
) -> None:
    """A NUL ends the search, wherever it is in a piece, and however many threads there are."""
    command = [ripgrep.PROGRAM, "--no-config", "--sort=path", *options, "foo"]
    tree = nuls / ("tree" if "-a" in options else "searched")
    wanted = subprocess.run(command, cwd=tree, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    assert run(["grep", f"-j{threads}", "--sort=path", *options, "foo", str(nuls / "tree.gomp")]) == 0
    lines = capfdbinary.readouterr().out.splitlines()
    notes = [line for line in lines if b"WARNING: stopped searching binary file after match" in line]
    assert [line for line in lines if line not in notes] == wanted.splitlines()
    assert len(notes) == (0 if {"-a", "-m7"} & {*options} else 8)


def test_files_with_a_nul_are_not_counted(capfdbinary: pytest.CaptureFixture[bytes], nuls: Path) -> None:
    """A match before the NUL is one, as with -l."""
    counted = b"8:%d\n" % (nuls / "tree" / "8").read_bytes().count(b"foo")
    for option, wanted in (("-c", counted), ("-l", b"".join(b"%d\n" % number for number in range(9)))):
        assert run(["grep", option, "--sort=path", "foo", str(nuls / "tree.gomp")]) == 0
        assert capfdbinary.readouterr().out == wanted


def test_a_short_first_piece(capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    """The NUL that hides the lines of a file that is named is after its first piece, in what ripgrep looks at first."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_bytes(bytes(PIECE - 1000))
    content = bytearray((b"bar\n" * 999 + b"foo\n") * 4200)
    content[30_000] = 0
    (tree / "b").write_bytes(content)
    pack(tmp_path / "a.gomp", tree, codec=Codec.STORED)
    for option in ("-n", "-c"):
        command = [ripgrep.PROGRAM, "--no-config", option, "foo", "b"]
        expected = subprocess.run(command, cwd=tree, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        assert run(["grep", option, "foo", str(tmp_path / "a.gomp"), "b"]) == 0
        assert capfdbinary.readouterr().out == expected.stdout


def test_many_lines_before_a_match(capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    """Their numbers are not counted from the match back, each time."""
    num_lines = 1_000_000
    (tmp_path / "a").write_bytes(b"\n" * num_lines + b"foo\n")
    pack(tmp_path / "a.gomp", tmp_path / "a")
    assert run(["grep", "-I", "-n", f"-B{num_lines}", "foo", str(tmp_path / "a.gomp")]) == 0
    expected = "".join(f"{number}-\n" for number in range(1, num_lines + 1)) + f"{num_lines + 1}:foo\n"
    assert capfdbinary.readouterr().out == expected.encode()


@pytest.mark.timeout(600)
def test_damage_ends_one_of_several_large_files(capfdbinary: pytest.CaptureFixture[bytes], nuls: Path) -> None:
    """What comes before the damage is searched, and so are the other files."""
    damaged = nuls / "damaged.gomp"
    with Archive(nuls / "tree.gomp") as opened:
        table = opened.segments[0].blocks
        block = 11 * (8 << 20) // table.uncompressed_sizes[0]  # in the middle of the sixth file
        offset = table.archive_offsets[block] + table.compressed_sizes[block] // 2
    content = bytearray((nuls / "tree.gomp").read_bytes())
    content[offset] ^= 255
    damaged.write_bytes(content)
    found = []
    for threads in (1, 16):
        assert run(["grep", f"-j{threads}", "-a", "-n", "--sort=path", "foo", str(damaged)]) == 2
        output, errors = capfdbinary.readouterr()
        assert errors.count(b"\n") == 1
        found.append(output.splitlines())
    run(["grep", "-a", "-n", "--sort=path", "foo", str(nuls / "tree.gomp")])
    wanted = capfdbinary.readouterr().out.splitlines()
    whole, cut = ([line for line in wanted if line.startswith(b"5:") is chosen] for chosen in (False, True))
    for lines in found:
        assert [line for line in lines if not line.startswith(b"5:")] == whole
        of_damaged = [line for line in lines if line.startswith(b"5:")]
        assert 0.3 * len(cut) < len(of_damaged) < 0.7 * len(cut)
        assert of_damaged == cut[: len(of_damaged)]


def only_matches(output: bytes) -> bytes:
    return b"\n".join(line for line in output.splitlines() if line.startswith(b'{"type":"match"'))
