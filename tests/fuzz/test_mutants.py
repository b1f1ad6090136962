"""Runs all commands on some mutants, and checks that the checker finds errors.

`python -m tests.fuzz.run` does the same for hours; see the head of that file.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from pathlib import Path

import pytest
from mutate import STRUCTURES, make_mutant
from oracle.archive import read_archive
from run import Options, Result, run_campaign
from seeds import SEEDS, read_seed

from gompfs.archive import Archive
from gompfs.errors import GompfsError
from gompfs.index.reader import IndexReader
from gompfs.verify import archive_check

NUM_MUTANTS = 20


def campaign(tmp_path: Path, **options: object) -> Result:
    return run_campaign(Options(keep=str(tmp_path / "kept"), scratch=str(tmp_path), **options))  # type: ignore[arg-type]


@pytest.mark.timeout(300)
def test_mutants_do_no_harm(tmp_path: Path) -> None:
    result = campaign(tmp_path, count=NUM_MUTANTS, jobs=2, processes=30, mounts=30)
    assert result.mutants.total() == NUM_MUTANTS
    assert not result.told, "\n".join(result.told)
    assert 0.05 < result.sound.total() / NUM_MUTANTS < 0.5, "mutations are too weak, or too strong"


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_thousands_of_mutants_do_no_harm(tmp_path: Path) -> None:
    result = campaign(tmp_path, count=5000, seed=int(time.time()), jobs=len(os.sched_getaffinity(0)))
    assert not result.told, "\n".join(result.told)


def test_a_mutant_depends_only_on_its_number() -> None:
    for number in range(20):
        first, second = make_mutant(number), make_mutant(number)
        assert (first.describe(), first.content) == (second.describe(), second.content)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_structure_is_mutated(structure: str) -> None:
    contents = {make_mutant(number, structure=structure).content for number in range(8)}
    assert len(contents) > 4


def test_mutants_get_as_far_as_their_structure(tmp_path: Path) -> None:
    """Mutants of structures that are read after the index can be opened, and none is refused for a checksum."""
    num_opened, reasons = 0, []
    for number in range(60):
        path = tmp_path / "mutant.gomp"
        path.write_bytes(make_mutant(number, structure=("payload", "head", "block header")[number % 3]).content)
        try:
            with Archive(path) as archive:
                num_opened += 1
                damages = archive_check.verify_archive(archive).damages
                reasons += [damage.status.name for damage in damages]
        except GompfsError as error:
            reasons.append(error.message)
    assert num_opened > 50
    assert not any("checksum" in reason.lower() for reason in reasons)


# The checker itself: it finds commands that do something wrong.


def findings(tmp_path: Path, count: int = 3, **options: object) -> set[str]:
    """Returns the kinds of findings in a few valid archives that differ from the seeds in their UUID only.

    They have one generation: the headers of others have the UUID too.
    """
    made = (make_mutant(number, structure="superblock") for number in range(1000))
    of_one = (
        mutant
        for mutant in made
        if not any(word in mutant.seed for word in ("generations", "built", "adds", "history"))
    )
    sound = (mutant.number for mutant in of_one if "field 3" in mutant.told)
    numbers = list(itertools.islice(sound, count))
    result = campaign(tmp_path, numbers=numbers, structure="superblock", processes=0, mounts=0, **options)
    return set(result.findings)


def test_seeds_have_no_findings(tmp_path: Path) -> None:
    assert findings(tmp_path) == set()
    for seed in SEEDS:
        assert read_archive(read_seed(seed)).paths


def test_wrong_bytes_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = Archive.read_pieces
    monkeypatch.setattr(Archive, "read_pieces", lambda *args, **kwargs: [bytes(sum(map(len, sound(*args, **kwargs))))])
    assert "wrong bytes" in findings(tmp_path)


def test_wrong_listings_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = IndexReader.directory
    monkeypatch.setattr(IndexReader, "directory", lambda *arguments: sound(*arguments)[1:])
    assert "wrong listing" in findings(tmp_path)


def test_unexpected_exceptions_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IndexReader, "totals", lambda _self: [][0])
    assert "internal error" in findings(tmp_path)


@pytest.mark.parametrize(
    ("harm", "expected", "seconds"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "signal", 1.0),
        (lambda: any(itertools.repeat(False)), "time", 0.3),
        (lambda: bytearray(400 << 20).count(1), "memory", 1.0),
    ],
    ids=["signal", "time", "memory"],
)
def test_harm_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: object, expected: str, seconds: float
) -> None:
    monkeypatch.setattr(IndexReader, "num_binary_files", lambda _self: harm())  # type: ignore[operator]
    assert expected in findings(tmp_path, 1, seconds=seconds, memory=350 << 20)
