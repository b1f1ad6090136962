"""Measures statistics of many archives on clusters of Dask with different numbers of workers, on this machine."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import chdir
from pathlib import Path

from distributed import Client, LocalCluster

from gompfs import pack_archive
from gompfs.dask import stats_output

from .programs import GOMPFS, environment
from .report import Report

_WHOLE = "whole.gomp"


def measure_cluster(tree: Path, num_archives: int, workers: Sequence[int], tasks: Sequence[str], rounds: int) -> Report:
    """Returns a table of seconds, and of speed-ups over the first number of workers.

    The files of the tree are spread over archives. Each worker is a process with one thread. The oracle is `gompfs
    stats` for one archive, which has the files of each archive in a directory of its name.
    """
    columns = [column for task in tasks for column in (task, "speed-up")]
    report = Report(f"{tree.name} in {num_archives} archives, seconds, medians of {rounds}", columns)
    with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch:
        names = _make_archives(tree.resolve(), num_archives, Path(scratch))
        with chdir(scratch):  # so that the paths in the texts begin with the names of the archives alone
            texts = {task: _whole(task) for task in tasks}
            alone = [_seconds(lambda task=task: _whole(task), rounds) for task in tasks]
            report.add("gompfs stats, one archive, all cores", *(cell for took in alone for cell in (took, None)))
            first: list[float] = []
            for number in workers:
                took = _of_workers(number, names, texts, rounds)
                first = first or took
                speed_ups = [before / now for before, now in zip(first, took, strict=True)]
                cells = [cell for pair in zip(took, speed_ups, strict=True) for cell in pair]
                report.add(f"Dask, {number} worker{'s' if number > 1 else ''}", *cells)
    report.notes.append("All texts are the same, byte for byte.")
    return report


def _make_archives(tree: Path, num_archives: int, scratch: Path) -> list[str]:
    """Spreads the files of a tree over archives, and packs all of them in one. Returns the names of the archives."""
    names = [f"{number:03}" for number in range(num_archives)]
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    for number, path in enumerate(files):
        target = scratch / "tree" / names[number % num_archives] / path.relative_to(tree)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    for source, target in [("tree", _WHOLE), *((f"tree/{name}", name) for name in names)]:
        pack_archive([scratch / source], scratch / target, engine="cpu")
    shutil.rmtree(scratch / "tree")
    return names


def _whole(task: str) -> bytes:
    return subprocess.run(
        [*GOMPFS, "stats", _WHOLE, task], env=environment(), stdout=subprocess.PIPE, check=True
    ).stdout


def _of_workers(number: int, names: Sequence[str], texts: dict[str, bytes], rounds: int) -> list[float]:
    """Returns the seconds of each task. Raises RuntimeError if a text is not the expected one."""
    with (
        LocalCluster(n_workers=number, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        for task, expected in texts.items():  # this also imports everything in the workers, and warms the caches
            if client.compute(stats_output(names, task)).result().text != expected:
                raise RuntimeError(f"{task} of {number} workers differs from that of one archive")
        return [
            _seconds(lambda task=task: client.compute(stats_output(names, task)).result(), rounds) for task in texts
        ]


def _seconds(job: Callable[[], object], rounds: int) -> float:
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        job()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)
