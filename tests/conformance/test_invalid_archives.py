"""Archives that break one rule each: commands say which in one line, and undamaged files stay readable."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from make_invalid import DAMAGED, MAKERS, SOUND
from manifests import INVALID

from gompfs.cli.application import run

EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((INVALID / "expected.toml").read_text())
ENGINES = ["reference", "cpu", pytest.param("gpu", marks=pytest.mark.gpu)]
WORDS = Counter(SOUND.split() + DAMAGED.split())
COUNTED = b"".join(b"%s\t%d\n" % item for item in sorted(WORDS.items(), key=lambda item: (-item[1], item[0])))


class Answer(NamedTuple):
    """Status, standard output, and the lines of standard error without the names of program and archive."""

    status: int
    output: bytes
    errors: list[str]


Ask = Callable[..., Answer]


@pytest.fixture
def ask(capfdbinary: pytest.CaptureFixture[bytes]) -> Ask:
    """Runs a command on an invalid archive."""

    def run_command(command: str, name: str, *arguments: str) -> Answer:
        archive = INVALID / f"{name}.gomp"
        capfdbinary.readouterr()
        status = run([command, str(archive), *arguments])
        captured = capfdbinary.readouterr()
        errors = captured.err.decode().splitlines()
        assert all(line.startswith(f"gompfs: {archive}: ") for line in errors)
        return Answer(
            status,
            captured.out.replace(f"{archive}: ".encode(), b""),
            [line.removeprefix(f"gompfs: {archive}: ") for line in errors],
        )

    return run_command


def answer(error: str | None, output: bytes) -> Answer:
    """Returns the expected answer: that of a failure with `error`, or else that of success with `output`."""
    return Answer(0, output, []) if error is None else Answer(1, b"", [error])


def test_each_archive_is_expected() -> None:
    assert set(EXPECTED) == set(MAKERS) == {path.stem for path in INVALID.glob("*.gomp")}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", EXPECTED)
def test_contents(ask: Ask, name: str, engine: str) -> None:
    expected = EXPECTED[name]
    opening = expected.get("opening")
    assert ask("cat", name, "sound", "--engine", engine) == answer(opening, SOUND)
    damaged = f"damaged: {expected['damaged']}" if "damaged" in expected else opening
    assert ask("cat", name, "damaged", "--engine", engine) == answer(damaged, DAMAGED)
    if opening is None:  # the sound file is readable, whatever is wrong with the other
        both = ask("cat", name, "damaged", "sound", "--verify", "--engine", engine)
        assert both.output.removeprefix(DAMAGED) == SOUND
        assert both.status == len(both.errors) == int("damaged" in expected or "verify" in expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", EXPECTED)
def test_verify(ask: Ask, name: str, engine: str) -> None:
    expected = EXPECTED[name]
    found = ask("verify", name, "-q", "--engine", engine)
    lines, summary = expected.get("problems", []), []
    if "verify" in expected:
        lines, summary = [expected["verify"], *lines], ["1 damaged block, 1 file affected"]
    if "problems" in expected:
        number = len(expected["problems"])
        summary.append(f"{number} problem{'' if number == 1 else 's'}")
    if summary:
        text = "\n".join([*lines, ", ".join(summary), ""])
        assert found == Answer(1, text.encode(), [])
    else:
        assert found == answer(expected["opening"], b"")


@pytest.mark.parametrize("name", EXPECTED)
def test_names_and_statistics(ask: Ask, name: str) -> None:
    expected = EXPECTED[name]
    opening = expected.get("opening")
    listing = ask("ls", name, "-R")
    if "ls" in expected:
        assert (listing.status, listing.errors) == (1, [expected["ls"]])
    else:
        assert listing == answer(opening, b"damaged\nfolder/\nsound\n")
    damaged = f"damaged: {expected['damaged']}" if "damaged" in expected else None
    counts = expected["counts"].encode().replace(b"WORD", DAMAGED) if "counts" in expected else COUNTED
    assert ask("stats", name, "wordcount") == answer(opening or expected.get("stats", damaged), counts)
