"""Files in many blocks are decoded to where they are searched: with the output of ripgrep, and with its limits."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
import ripgrep
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import Codec

BLOCK_SIZE = 16384
Capture = pytest.CaptureFixture[bytes]


def make_tree(root: Path) -> None:
    """Makes files of 0 to 10 blocks that share their first and last blocks with others; some have holes."""
    rng = random.Random(5)
    root.mkdir()
    for number in range(60):
        size = rng.choice([0, 100, BLOCK_SIZE, rng.randrange(10 * BLOCK_SIZE), 4 * BLOCK_SIZE + rng.randrange(-2, 3)])
        words = rng.choices(["needle", "hay", "straw,", "x" * 40, "\n"], k=size // 4 + 1)
        (root / f"{number:02}").write_text(" ".join(words)[:size])
    (root / "same").write_bytes((root / "07").read_bytes())
    for name, hole in (("hole-before", 0), ("hole-after", 1)):
        with (root / name).open("wb") as file:
            for part in range(2):
                file.seek(5 * BLOCK_SIZE, 1) if part == hole else file.write(b"a needle\n" * 12_000)
            file.truncate()


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("blocks") / "tree"
    make_tree(root)
    return root


@pytest.mark.parametrize("order", ["path", "none"])
@pytest.mark.parametrize("codec", [Codec.GOMPRESSO_TADOC, Codec.GOMPRESSO_BIT], ids=["parts", "stream"])
def test_the_output_is_that_of_ripgrep(capfdbinary: Capture, tree: Path, order: str, codec: Codec) -> None:
    target = tree.parent / f"{order}-{codec.label}.gomp"
    pack(target, tree, codec=codec, block_size=BLOCK_SIZE, part_size=5 * BLOCK_SIZE)
    for options in (["-n", "-a", "needle"], ["-c", "-a", r"st.aw, hay"], ["-l", "-a", "-U", r"\n needle"]):
        command = [ripgrep.PROGRAM, "--no-config", "-uu", "--sort=path", *options]
        expected = subprocess.run(command, cwd=tree, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert run(["grep", f"--sort={order}", *options, str(target)]) == expected.returncode
        lines = [output.splitlines() for output in (capfdbinary.readouterr().out, expected.stdout)]
        found, wanted = (sorted(each) for each in lines) if order == "none" else lines
        assert found == wanted, options


def test_a_damaged_block_costs_only_the_files_that_are_in_it(capfdbinary: Capture, tmp_path: Path) -> None:
    tree, target = tmp_path / "tree", tmp_path / "tree.gomp"
    tree.mkdir()
    rng = random.Random(6)
    for name, count in (("a", 9000), ("b", 30_000), ("c", 9000)):
        (tree / name).write_text("".join(f"needle {rng.getrandbits(40):x}\n" for _ in range(count)))
    pack(target, tree, block_size=BLOCK_SIZE)
    with Archive(target) as archive:
        middle = archive.num_blocks // 2
        offset = archive.segments[0].blocks.archive_offsets[middle]
    content = bytearray(target.read_bytes())
    content[offset + 100] ^= 1
    target.write_bytes(content)
    assert run(["grep", "-c", "needle", str(target)]) == 2
    output = capfdbinary.readouterr()
    assert output.out == b"a:9000\nc:9000\n"
    assert f"block {middle}".encode() in output.err
