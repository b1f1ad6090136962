"""Measures searches for patterns: `gompfs grep` beside programs that search a tree, an archive, or an index."""

from __future__ import annotations

import hashlib
import os
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from .programs import GOMPFS, environment, lacking, pipeline, tar_of
from .report import Report
from .servers import Server, run, unmount

DEFAULT_PATTERNS = (
    *("PM_RESUME", "fput_light", r"\w+_SUSPEND\b"),
    *("(?i)out of memory", r"struct\s+kref\s*\*", r"^\s*return 0"),
)
_NO_MATCH = 1


@dataclass(frozen=True)
class _Searcher:
    """A program that searches. The pattern is appended to `command`, then `paths`. It runs in `directory`."""

    name: str
    command: tuple[str | Path, ...]
    paths: tuple[str | Path, ...] = ()
    directory: Path | None = None
    make: tuple[str | Path, ...] = ()
    """The command that is run first: it makes `stored`, an archive or an index."""
    stored: Path | None = None
    programs: tuple[str, ...] = ()
    is_like_ripgrep: bool = False
    """Whether the output is that of `rg -n --sort path`."""
    variables: dict[str, str] = field(default_factory=dict)


def measure_search(tree: Path, archive: Path | None, patterns: tuple[str, ...], rounds: int) -> list[Report]:
    """Returns a table of seconds for each pattern, and a table of what is stored, and how long that takes to make."""
    with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch:
        place = Path(scratch, "mount")
        place.mkdir()
        searchers, made = [], Report("archives and indexes", ["MB", "seconds to make"])
        times = Report(f"{tree.name}, seconds for a search with warm caches, medians of {rounds}", list(patterns))
        for searcher in _searchers(tree.resolve(), archive and archive.resolve(), Path(scratch), place):
            if missing := lacking(searcher.programs):
                times.add_missing(searcher.name, missing)
                continue
            searchers.append(searcher)
            _make(searcher, made)
        server = Server("gompfs", mount=(*GOMPFS, "mount", archive or Path(scratch, "it.gomp"), place))
        run(server.mount)
        try:
            _measure(searchers, patterns, rounds, times)
        finally:
            unmount(place)
        return [times, made]


def _searchers(tree: Path, archive: Path | None, scratch: Path, place: Path) -> list[_Searcher]:
    gomp, tar, index = archive or scratch / "it.gomp", scratch / "it.tar.gz", scratch / "csearch"
    pack = () if archive else (*GOMPFS, "pack", "-q", tree, gomp)
    ours = (*GOMPFS, "grep", "-n", "--sort=path")
    in_any_order = (*GOMPFS, "grep", "-n", "-e")
    ripgrep = ("rg", "--no-config", "-uu", "-n")
    csearch = {"CSEARCHINDEX": str(index)}
    return [
        _Searcher("gompfs grep", (*ours, "-e"), (gomp,), make=pack, stored=gomp, is_like_ripgrep=True),
        _Searcher("gompfs grep, any order", in_any_order, (gomp,)),
        _Searcher("gompfs grep, mount", in_any_order, (".",), place),
        _Searcher("gompfs grep --read-all", (*ours, "--read-all", "-e"), (gomp,), is_like_ripgrep=True),
        _Searcher(
            "rg --sort path, tree", (*ripgrep, "--sort=path", "-e"), (), tree, programs=("rg",), is_like_ripgrep=True
        ),
        _Searcher("rg, tree", (*ripgrep, "-e"), (), tree, programs=("rg",)),
        _Searcher("rg, mount", (*ripgrep, "-e"), (), place, programs=("rg",)),
        _Searcher("grep -rP, mount", ("grep", "-rnP", "-e"), (".",), place),
        _Searcher(
            "rg -z, tar.gz", (*ripgrep, "-z", "-a", "-e"), (tar,), make=tuple(pipeline(tar_of(tree), ["gzip", "-6"])),
            stored=tar, programs=("rg", "gzip"),
        ),
        _Searcher("ugrep, tree", ("ugrep", "-rn", "--hidden", "-e"), (".",), tree, programs=("ugrep",)),
        _Searcher(
            "csearch", ("csearch", "-n"), (), tree, make=("cindex", tree), stored=index, programs=("cindex", "csearch"),
            variables=csearch,
        ),
    ]  # fmt: skip


def _make(searcher: _Searcher, made: Report) -> None:
    if searcher.stored is None:
        return
    started = time.perf_counter()
    if searcher.make:
        to_file = searcher.stored if searcher.stored.suffix == ".gz" else os.devnull
        with open(to_file, "wb") as output:
            subprocess.run(
                searcher.make, check=True, stdout=output, stderr=subprocess.DEVNULL,
                env={**environment(), **searcher.variables},
            )  # fmt: skip
    seconds = time.perf_counter() - started if searcher.make else None
    made.add(searcher.name, searcher.stored.stat().st_size / 1e6, seconds)


def _measure(searchers: list[_Searcher], patterns: tuple[str, ...], rounds: int, times: Report) -> None:
    seconds: dict[str, list[float | None]] = {searcher.name: [] for searcher in searchers}
    for pattern in patterns:
        runs: dict[str, list[float]] = {searcher.name: [] for searcher in searchers}
        outputs = {}
        for number in range(rounds + 1):
            for searcher in searchers:
                waited, digest = _search(searcher, pattern)
                if number:  # the first run warms the caches
                    runs[searcher.name].append(waited)
                if searcher.is_like_ripgrep:
                    outputs[searcher.name] = digest
        if len(set(outputs.values())) > 1:
            times.notes.append(f"THE RESULTS DISAGREE for {pattern}: {outputs}")
        for name, waits in runs.items():
            seconds[name].append(statistics.median(waits))
    for name, medians in seconds.items():
        times.add(name, *medians)


def _search(searcher: _Searcher, pattern: str) -> tuple[float, str]:
    """Returns the seconds of one search, and a digest of its output."""
    command = [*searcher.command, pattern, *searcher.paths]
    started = time.perf_counter()
    done = subprocess.run(
        command, cwd=searcher.directory, stdin=subprocess.DEVNULL, capture_output=True, check=False,
        env={**environment(), **searcher.variables},
    )  # fmt: skip
    waited = time.perf_counter() - started
    if done.returncode > _NO_MATCH:
        raise RuntimeError(f"{searcher.name}: {done.stderr.decode(errors='replace').strip()[:500]}")
    return waited, hashlib.sha256(done.stdout).hexdigest()
