"""Using a tree through mounts: of gompfs, of ratarmount and squashfuse, and the tree itself."""

from __future__ import annotations

import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
from report import NOT_INSTALLED, Report

GOMPFS = [sys.executable, "-P", "-m", "gompfs"]
_READY_SECONDS = 120


@dataclass(frozen=True)
class Server:
    """How an archive of the tree is made once, and mounted; no mount command for the tree itself."""

    name: str
    program: str
    make: list[str | Path]
    mount: list[str | Path]


def measure_mount(tree: Path, pattern: str, big: Path | None, rounds: int) -> Report:
    """Medians in seconds; before each measurement the mount is made anew and the kernel's caches are dropped."""
    if os.geteuid() != 0:
        raise click.UsageError("only root can drop the kernel's caches")
    report = Report(f"{tree.name} mounted, seconds, medians of {rounds}", ["mount and ls", "find", "grep -r", "tar"])
    jobs = ["find . -type f | wc -l", f"grep -r {shlex.quote(pattern)} . | wc -l", "tar cf - . | wc -c"]
    with tempfile.TemporaryDirectory() as scratch:
        results: dict[str, list[float]] = {}
        answers: dict[str, list[str]] = {}
        for server in _servers(tree, Path(scratch)):
            if server.program and shutil.which(server.program) is None:
                report.add(server.name, NOT_INSTALLED, None, None, None)
                continue
            if server.make:
                subprocess.run(server.make, check=True, stdout=subprocess.DEVNULL)
            place = Path(scratch, "mount")
            results[server.name], answers[server.name] = _measure(server, tree, place, jobs, rounds)
            report.add(server.name, *results[server.name])
        if "ratarmount" in results:
            pairs = zip(results["ratarmount"], results["gompfs"], strict=True)
            report.add("ratarmount / gompfs", *(theirs / ours for theirs, ours in pairs))
        if any(answer[:2] != answers["gompfs"][:2] for answer in answers.values()):
            report.notes.append(f"the mounts disagree: {answers}")
        if big is not None:
            report.notes.append(_measure_big(big, Path(scratch), rounds))
    return report


def _servers(tree: Path, scratch: Path) -> list[Server]:
    gomp, tar, squash = scratch / "tree.gomp", scratch / "tree.tar.zst", scratch / "tree.squashfs"
    mount = scratch / "mount"
    make_tar = f"tar -C {shlex.quote(str(tree))} -cf - . | zstd -q -3 -T0 -o {tar}"
    # ratarmount indexes an archive when it first mounts it; that is part of making it here.
    index_tar = f"{make_tar} && mkdir -p {mount} && ratarmount {tar} {mount} >/dev/null && umount {mount}"
    squashed = ["mksquashfs", tree, squash, "-comp", "zstd", "-no-progress", "-quiet"]
    return [
        Server("gompfs", "", [*GOMPFS, "pack", "-q", "--no-stats", tree, gomp], [*GOMPFS, "mount", gomp, mount]),
        Server("ratarmount", "ratarmount", ["sh", "-c", index_tar], ["ratarmount", tar, mount]),
        Server("squashfuse_ll", "squashfuse_ll", squashed, ["squashfuse_ll", squash, mount]),
        Server("the tree itself", "", [], []),
    ]


def _measure(
    server: Server, tree: Path, place: Path, jobs: list[str], rounds: int
) -> tuple[list[float], list[str]]:
    seconds: list[list[float]] = [[] for _ in range(len(jobs) + 1)]
    answers = [""] * len(jobs)
    for _ in range(rounds):
        for number, job in enumerate(["", *jobs]):
            directory, started = _mount_cold(server, tree, place)
            if job:
                os.listdir(directory)
                started = time.perf_counter()
                answers[number - 1] = _output(job, directory)
            else:
                os.listdir(directory)
            seconds[number].append(time.perf_counter() - started)
            if server.mount:
                subprocess.run(["umount", place], check=True)
    return [statistics.median(values) for values in seconds], answers


def _mount_cold(server: Server, tree: Path, place: Path) -> tuple[Path, float]:
    """Where the tree is, and when its mounting began."""
    subprocess.run(["sync"], check=True)
    Path("/proc/sys/vm/drop_caches").write_text("3\n")
    started = time.perf_counter()
    if not server.mount:
        return tree, started
    place.mkdir(exist_ok=True)
    subprocess.run(server.mount, check=True, stdout=subprocess.DEVNULL)
    _wait(lambda: os.path.ismount(place), started)
    return place, started


def _wait(ready: Callable[[], bool], started: float) -> None:
    while not ready():
        if time.perf_counter() - started > _READY_SECONDS:
            raise TimeoutError("the mount does not answer")
        time.sleep(0.002)


def _output(job: str, directory: Path) -> str:
    return subprocess.run(["sh", "-c", job], cwd=directory, capture_output=True, text=True, check=True).stdout.strip()


def _measure_big(big: Path, scratch: Path, rounds: int) -> str:
    """Cold reading of a large file that is packed alone."""
    archive, place = scratch / "big.gomp", scratch / "big"
    place.mkdir()
    subprocess.run([*GOMPFS, "pack", "-q", "--no-stats", big, archive], check=True)
    speeds = []
    for _ in range(rounds):
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
        archive.read_bytes()  # the disk is not what is measured
        subprocess.run([*GOMPFS, "mount", archive, place], check=True)
        started = time.perf_counter()
        subprocess.run(["cat", place / big.name], check=True, stdout=subprocess.DEVNULL)
        speeds.append(big.stat().st_size / 1e9 / (time.perf_counter() - started))
        subprocess.run(["umount", place], check=True)
    return f"cat of {big.name} ({big.stat().st_size / 1e6:,.0f} MB), cold: {statistics.median(speeds):.2f} GB/s"
