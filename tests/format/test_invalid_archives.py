"""Archives that break one rule each: commands say which in one line, and undamaged files stay readable."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import make_invalid
import make_invalid_text
import pytest
from manifests import INVALID
from oracle.archive import OracleError, read_archive

from gompfs.cli.application import run

ENGINES = ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)]


class Contents(NamedTuple):
    """The files of the archives in a folder, and the output of wordcount for both."""

    sound: bytes
    damaged: bytes
    counts: bytes


def contents(sound: bytes, damaged: bytes, words_of: Callable[[bytes], list[bytes]]) -> Contents:
    words = sorted(Counter(words_of(sound) + words_of(damaged)).items(), key=lambda item: (-item[1], item[0]))
    return Contents(sound, damaged, b"".join(b"%s\t%d\n" % item for item in words))


MAKERS = {"data": make_invalid.MAKERS, "text": make_invalid_text.MAKERS}
CONTENTS = {
    "data": contents(make_invalid.SOUND, make_invalid.DAMAGED, bytes.split),
    "text": contents(make_invalid_text.SOUND, make_invalid_text.DAMAGED, re.compile(rb"\w+").findall),
}
EXPECTED: dict[str, dict[str, Any]] = {
    f"{folder}/{name}": expected
    for folder in MAKERS
    for name, expected in tomllib.loads((INVALID / folder / "expected.toml").read_text()).items()
}


class Answer(NamedTuple):
    """Status, standard output, and the lines of standard error without the names of program and archive."""

    status: int
    output: bytes
    errors: list[str]


Ask = Callable[..., Answer]


@pytest.fixture
def ask(capfdbinary: pytest.CaptureFixture[bytes]) -> Ask:
    """Runs a command on an invalid archive. The warning that is expected of the archive is taken out of its answer."""

    def run_command(command: str, name: str, *arguments: str) -> Answer:
        archive = INVALID / f"{name}.gomp"
        capfdbinary.readouterr()
        status = run([command, str(archive), *arguments])
        captured = capfdbinary.readouterr()
        errors = captured.err.decode().splitlines()
        if "warning" in EXPECTED[name] and command != "verify":
            assert errors.pop(0) == f"gompfs: warning: {archive}: {EXPECTED[name]['warning']}"
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


def contents_of(name: str) -> Contents:
    return CONTENTS[name.partition("/")[0]]


@pytest.mark.parametrize("folder", MAKERS)
def test_each_archive_is_expected(folder: str) -> None:
    expected = {name.partition("/")[2] for name in EXPECTED if name.startswith(f"{folder}/")}
    assert expected == set(MAKERS[folder]) == {path.stem for path in (INVALID / folder).glob("*.gomp")}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", EXPECTED)
def test_contents(ask: Ask, name: str, engine: str) -> None:
    expected, files = EXPECTED[name], contents_of(name)
    opening = expected.get("opening")
    assert ask("cat", name, "sound", "--engine", engine) == answer(opening, files.sound)
    damaged = f"damaged: {expected['damaged']}" if "damaged" in expected else opening
    assert ask("cat", name, "damaged", "--engine", engine) == answer(damaged, files.damaged)
    if opening is None:  # the sound file is readable, whatever is wrong with the other
        both = ask("cat", name, "damaged", "sound", "--verify", "--engine", engine)
        assert both.output.removeprefix(files.damaged) == files.sound
        assert both.status == len(both.errors) == int("damaged" in expected or "verify" in expected)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_slow_reader(name: str) -> None:
    """It reads what can be read, and no damaged file. It does not know all rules for the index."""
    expected, files = EXPECTED[name], contents_of(name)
    try:
        reading = read_archive((INVALID / f"{name}.gomp").read_bytes())
        entries = reading.paths
    except OracleError:
        assert expected.keys() & {"opening", "problems"}
        return
    sound, damaged = (reading.content(entries[path].ino, verify=True) for path in (b"sound", b"damaged"))
    assert sound == files.sound or "opening" in expected
    if not expected.keys() & {"opening", "problems"}:
        assert damaged == (None if expected.keys() & {"damaged", "verify"} else files.damaged)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", EXPECTED)
def test_verify(ask: Ask, name: str, engine: str) -> None:
    expected = EXPECTED[name]
    found = ask("verify", name, "-q", "--engine", engine)
    damages = [expected[key] for key in ("verify", "section") if key in expected]
    problems, summary = expected.get("problems", []), []
    if damages:
        summary = ["1 damaged block, 1 file affected" if len(damages) == 1 else "2 damaged blocks, 1 file affected"]
    if problems:
        summary.append(f"{len(problems)} problem{'' if len(problems) == 1 else 's'}")
    if summary:
        text = "\n".join([*damages, *problems, ", ".join(summary), ""])
        assert found == Answer(1, text.encode(), [])
    else:
        assert found == answer(expected.get("opening"), b"")


@pytest.mark.parametrize("name", EXPECTED)
def test_names_and_statistics(ask: Ask, name: str) -> None:
    expected, files = EXPECTED[name], contents_of(name)
    opening = expected.get("opening")
    listing = ask("ls", name, "-R")
    if "ls" in expected:
        assert (listing.status, listing.errors) == (1, [expected["ls"]])
    else:
        assert listing == answer(opening, b"damaged\nfolder/\nsound\n")
    damaged = f"damaged: {expected['damaged']}" if "damaged" in expected else None
    counts = expected["counts"].encode() if "counts" in expected else files.counts
    error = opening or (None if "counts" in expected else expected.get("stats", damaged))
    assert ask("stats", name, "wordcount") == answer(error, counts)
