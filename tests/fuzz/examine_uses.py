"""Further uses of one archive: many files as arrays, datasets, searches, tables, repair and repack; see examine.py.

A use of the library may raise a GompfsError, or a MemoryError for a forged size; other exceptions are findings.
"""

from __future__ import annotations

import filecmp
import os
import random
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pyarrow.parquet  # noqa: F401 (here, so that forked children need not load it)
from oracle.archive import MAX_SIZE, OracleError, TooMuchError, read_archive

import gompfs
from gompfs.errors import GompfsError
from gompfs.torch import ArchiveDataset

if TYPE_CHECKING:
    from examine import Examination, Outcome

Use = tuple[str, Callable[[], None]]
_TABLES = ("wordcount", "term_vector", "sequence_count", "ranked_inverted_index", "tfidf", "inverted_index")
_NO_SEARCH = ("no file was searched", "take too much memory", "the paths of all directories are too long together")
"""Errors that `grep` may give for a valid archive: it has no files; tebibytes of holes are a line; paths are long."""
_SOME_MEMORY, _NO_MEMORY = 256 << 20, 64 << 30
"""What is between may be a file with a large hole, which takes its memory if somebody wants it as an array."""
_NUM_PATTERNS = 3
_PATTERNS = ("", "the", "of.*the", "(?i)ALICE", r"\bto\b", "[a-c]$", "word", "x{3}")


def uses(examination: Examination, rng: random.Random) -> list[Use]:
    """Returns some uses for each archive, so that a campaign has all of them many times."""
    every = [
        ("read_many", partial(_read_many, examination)),
        ("dataset", partial(_read_dataset, examination, rng)),
        ("grep -c", partial(_count_lines, examination, rng)),
        ("grep --json", partial(_search, examination, rng)),
        ("stats --format", partial(_make_table, examination, rng)),
        ("repair", partial(_repair, examination)),
        ("repack", partial(_repack, examination)),
    ]
    return rng.sample(every, 3)


def _small_files(examination: Examination) -> list[bytes]:
    """Returns the paths of the files that the slow reading can compare, or those of the seed."""
    if examination.reading is None:
        return sorted(examination.originals or ())
    entries = examination.reading.paths.items()
    return [path for path, e in entries if stat.S_ISREG(e.mode) and e.size <= MAX_SIZE and b"\0" not in path]


@contextmanager
def _library(examination: Examination, name: str) -> Iterator[None]:
    """A use of the library. A file that `verify` calls sound must be readable."""
    examination.tell("command", name)
    try:
        yield
    except (GompfsError, MemoryError, ValueError) as error:
        is_too_much = isinstance(error, MemoryError) or "too large" in str(error)
        if isinstance(error, ValueError) and not isinstance(error, GompfsError) and not is_too_much:
            raise
        if examination.is_sound and not is_too_much:
            examination.finding("refused", f"{name} of an archive that verify calls sound: {error}")


def _read_many(examination: Examination) -> None:
    """Reads all files at once, also if they claim sizes that no memory has; then each of those that can be compared."""
    with _library(examination, "read_many of all"), gompfs.open(examination.path, verify=True) as files:
        sizes = _sizes(files)
        if not _SOME_MEMORY < sum(sizes.values()) < _NO_MEMORY:
            files.read_many(list(sizes))
    paths = _small_files(examination)
    with _library(examination, "read_many"), gompfs.open(examination.path, verify=True) as files:
        for path, content in zip(paths, files.read_many(paths), strict=True):
            examination.compare("read_many", path, content.tobytes(), verify=True)
    for path in paths[:50]:
        with _library(examination, "read_many of one"), gompfs.open(examination.path, verify=True) as files:
            if stat.S_ISREG(files.stat(path, follow_symlinks=False).st_mode):
                examination.compare("read_many of one", path, files.read_many([path])[0].tobytes(), verify=True)


def _sizes(files: gompfs.ArchiveFiles) -> dict[bytes, int]:
    """Returns the sizes of all regular files by path."""
    return {
        path: state.st_size
        for top, _, names in files.walk(b"")
        for path in (os.path.join(top, name) for name in names)
        if stat.S_ISREG((state := files.stat(path, follow_symlinks=False)).st_mode)
    }


def _read_dataset(examination: Examination, rng: random.Random) -> None:
    """Reads lines of files, and files, as a DataLoader does: by random numbers. A sample may be a file with a hole."""
    for chosen in ("*", _small_files(examination)):
        for lines in (True, False):
            name = f"dataset{' of lines' if lines else ''}"
            with _library(examination, name):
                dataset = ArchiveDataset(examination.path, chosen, lines=lines, output="bytes", verify=True)
                numbers = [rng.randrange(len(dataset)) for _ in range(30 if len(dataset) else 0)]
                for number in numbers:
                    path = os.fsencode(dataset.path(number))
                    if not lines and path in _small_files(examination):
                        examination.compare(name, path, dataset[number], verify=True)
                size = 0 if lines else sum(dataset.files.stat(dataset.path(number)).st_size for number in numbers)
                samples = [] if _SOME_MEMORY < size < _NO_MEMORY else dataset.__getitems__(numbers)
                if lines and examination.is_sound and isinstance(chosen, list):
                    _check_lines(examination, chosen, numbers, samples)
                dataset.close()


def _check_lines(examination: Examination, paths: list[bytes], numbers: list[int], samples: list[bytes]) -> None:
    if examination.reading is None:
        return
    contents = [examination.reading.content(examination.reading.paths[path].ino, verify=True) or b"" for path in paths]
    known = [line for content in contents for line in _lines(content)]
    if [known[number] for number in numbers] != samples:
        examination.finding("wrong bytes", "lines of a dataset are not those of the slow reading")


def _lines(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def _check_grep(examination: Examination, outcome: Outcome) -> None:
    """Notes that a search of a sound archive failed without one of the reasons that a valid archive may give."""
    if examination.is_sound and outcome.status == 2 and not any(text in outcome.err for text in _NO_SEARCH):
        examination.finding("refused", f"grep of an archive that verify calls sound: {outcome.err[:300]}")


def _count_lines(examination: Examination, rng: random.Random) -> None:
    """Counts the lines with a literal, and compares the counts with those of the slow reading."""
    literal = rng.choice((b"", b"the", b"words", b"a"))
    arguments = ("-F", "-a", "-E", "none", "-c", "--null", "--sort", "path", "-e", os.fsdecode(literal))
    outcome = examination.command("grep", *arguments)
    _check_grep(examination, outcome)
    reading = examination.reading
    if reading is None:
        return
    found: dict[bytes, int] = {}
    rest = outcome.out
    while b"\0" in rest:
        path, _, rest = rest.partition(b"\0")
        count, _, rest = rest.partition(b"\n")
        found[path] = int(count)
    for path in _small_files(examination):
        try:
            content = reading.content(reading.paths[path].ino, verify=False)
        except OracleError:
            continue
        if content is None:
            if path in found and examination.is_sound:
                examination.finding("wrong bytes", f"grep counts lines of {path!r}, which is damaged")
            continue
        expected = sum(literal in line for line in _lines(content))
        is_listed = path in found or not expected
        if found.get(path, expected) != expected or (examination.is_sound and not is_listed):
            examination.finding("wrong counts", f"grep {literal!r} {path!r}: {found.get(path)}, not {expected}")


def _search(examination: Examination, rng: random.Random) -> None:
    for pattern in rng.sample(_PATTERNS, _NUM_PATTERNS):
        options = rng.sample(("-U", "-v", "-i", "-w", "-n", "-o", "-A2"), 2)
        outcome = examination.command("grep", *rng.choice(((), ("--json",), ("-l",))), *options, "-e", pattern)
        _check_grep(examination, outcome)


def _make_table(examination: Examination, rng: random.Random) -> None:
    for kind in ("arrow", "parquet", "jsonl"):
        examination.say("stats", rng.choice(_TABLES), "--format", kind)


def _repair(examination: Examination) -> None:
    """Repairs a copy, which then must be an archive, unless the command says why it is none."""
    original = examination.path
    copy = examination.scratch / "repaired.gomp"
    shutil.copyfile(original, copy)
    examination.path = copy
    try:
        examination.command("repair", "--dry-run")
        if not filecmp.cmp(copy, original, shallow=False):
            examination.finding("changed", "repair --dry-run changes the archive")
        if (
            examination.command("repair").status == 0
            and examination.command("repair").out.count(b"nothing to repair") != 1
        ):
            examination.finding("not repaired", "after a repair, repair finds more to do")
    finally:
        examination.path = original
        for path in (copy, copy.with_name("repaired.gomp.cut")):
            path.unlink(missing_ok=True)


def _repack(examination: Examination) -> None:
    """Packs the archive again. What that writes must be what the slow reading finds in the archive."""
    target = examination.scratch / "repacked.gomp"
    before = set(os.listdir(examination.scratch))
    outcome = examination.command("repack", "-q", "-j", "1", "--", str(target))
    try:
        if outcome.status:
            if examination.is_sound:
                examination.finding("refused", f"repack of an archive that verify calls sound: {outcome.err[:300]}")
            if set(os.listdir(examination.scratch)) != before:
                examination.finding("left behind", f"repack leaves {os.listdir(examination.scratch)}")
        else:
            _check_repacked(examination, target.read_bytes())
    finally:
        target.unlink(missing_ok=True)


def _check_repacked(examination: Examination, content: bytes) -> None:
    try:
        repacked = read_archive(content)
        paths = repacked.paths
    except TooMuchError:
        return
    for path, entry in paths.items():
        if stat.S_ISREG(entry.mode) and entry.size <= MAX_SIZE:
            examination.compare("repack", path, repacked.content(entry.ino, verify=True) or b"", verify=True)
    reading = examination.reading
    if reading is not None and sorted(reading.paths) != sorted(paths):
        examination.finding("wrong listing", "repack has other paths")
