"""Literals and sets of them, which are found without PCRE2, beside ripgrep."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest
import ripgrep
from tree_helpers import pack

from gompfs.cli.application import run
from gompfs.codec import Codec

Capture = pytest.CaptureFixture[bytes]
CORPUS = Path(__file__).parents[2] / "examples" / "corpus"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree of texts in which literals overlap in many ways."""
    rng = random.Random(3)
    root = tmp_path_factory.mktemp("literal-sets") / "tree"
    root.mkdir()
    for number in range(30):
        letters = rng.choice(["ab", "abc", "aAbB", "abé", "ab \n"])
        text = "".join(rng.choices(letters, k=rng.randrange(1, 3000)))
        (root / f"{number:02}").write_text(re.sub("(.{60})", r"\1\n", text))
    (root / "prose").write_bytes((CORPUS / "carroll" / "alice29.txt").read_bytes())
    (root / "bytes").write_bytes(b"a\xffab\nab\xc3\nabc\xfe\n" * 20)
    return root


@pytest.fixture(scope="module")
def archive(tree: Path) -> Path:
    target = tree.parent / "tree.gomp"
    pack(target, tree, codec=Codec.GOMPRESSO_TADOC)
    return target


def check(capfdbinary: Capture, tree: Path, archive: Path, arguments: list[str]) -> bytes:
    """Compares the output with that of ripgrep, and returns it."""
    theirs = subprocess.run([ripgrep.PROGRAM, "-uu", "--sort", "path", *arguments, "."], cwd=tree, capture_output=True)
    status = run(["grep", "--sort", "path", *arguments, str(archive)])
    ours = capfdbinary.readouterr().out
    assert (status, ours) == (theirs.returncode, theirs.stdout.replace(b"./", b"")), arguments
    return ours


def literals(rng: random.Random) -> list[str]:
    letters = rng.choice(["ab", "abc", "abé", "ab "])
    shortest = rng.choice([1, 2, 3, 4])
    return ["".join(rng.choices(letters, k=rng.randrange(shortest, 9))) for _ in range(rng.choice([2, 3, 8, 40, 200]))]


@pytest.mark.parametrize("seed", range(20))
def test_overlapping_literals(capfdbinary: Capture, tree: Path, archive: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    patterns = tmp_path / "patterns"
    patterns.write_text("\n".join(literals(rng)) + "\n")
    for options in (["-F"], ["-F", "-o"], ["-o", "-i"], ["-F", "-c", "-v"], ["-F", "-w"]):
        check(capfdbinary, tree, archive, [*options, "-f", str(patterns)])


ALTERNATIONS = ["abcd|bc|b", "b|bc|abcd", "ab|abc|abcd", "(aab|aba)+b", r"(Alice|Rabbit)'s \w+"]
ALTERNATIONS += ["(?i)queen|king", "Queen|K", "é|ab"]


@pytest.mark.parametrize("pattern", ALTERNATIONS)
def test_alternations(capfdbinary: Capture, tree: Path, archive: Path, pattern: str) -> None:
    for options in ([], ["-o"], ["-c"], ["-U", "-o"]):
        check(capfdbinary, tree, archive, [*options, "-e", pattern])


def test_thousands_of_literals(capfdbinary: Capture, tree: Path, archive: Path, tmp_path: Path) -> None:
    rng = random.Random(4)
    words = re.findall(r"[a-z]{6,}", (tree / "prose").read_text())
    patterns = tmp_path / "patterns"
    patterns.write_text("\n".join(rng.sample(words, 300) + [f"{rng.getrandbits(60):x}" for _ in range(20_000)]) + "\n")
    assert check(capfdbinary, tree, archive, ["-F", "-n", "-f", str(patterns)]).count(b"\n") > 300


def test_literals_that_nearly_match_everywhere(capfdbinary: Capture, tmp_path: Path) -> None:
    """The time does not grow with the product of the sizes of text and literals."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_text("a" * 3_000_000 + "\n")
    archive = tmp_path / "tree.gomp"
    pack(archive, tree)
    patterns = tmp_path / "patterns"
    patterns.write_text("\n".join("a" * size + "b" for size in range(2, 250)) + "\n")
    assert run(["grep", "-F", "-f", str(patterns), str(archive)]) == 1


@pytest.mark.parametrize("options", [["-F", "needle"], ["-F", "ne"], ["-F", "e"], ["-i", "NEedle"]], ids=" ".join)
def test_a_literal_at_every_offset(capfdbinary: Capture, tmp_path: Path, options: list[str]) -> None:
    """Many positions are compared at once: the literal begins at each of them, up to the end of the file."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for offset in range(200):
        (tree / f"{offset:03}").write_text("x" * offset + "Needle needle"[offset % 8 :] + "y" * (offset % 3 * 40))
        (tree / f"{offset:03}-near").write_text("n.e.d.l.needl.eedle" * (offset // 19) + "\n" * offset)
    pack(tmp_path / "tree.gomp", tree, codec=Codec.GOMPRESSO_TADOC)
    check(capfdbinary, tree, tmp_path / "tree.gomp", options)
