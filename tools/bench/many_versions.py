"""Measures archives of many versions of a directory, stored together and one by one."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .packing import read_all
from .programs import GOMPFS, environment, lacking, pipeline
from .report import Report
from .timing import cpu_of_children

_Command = Sequence[str | Path]
_COLUMNS = ["MB", "ratio", "CPU s", "MB of the last"]
_NOTE = (
    "Together: one command stores all directories. One by one: a command for each, in the order given; MB of the last "
    "is what the last one added. patch-from: a tar of the last directory, as the difference from a tar of the one "
    "before; both have times of 0. gompfs stores all statistics as well."
)
# borg and restic ask for a password without these.
_SETTINGS = {"RESTIC_PASSWORD": "bench", "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"}


@dataclass(frozen=True)
class _Way:
    """Commands that store versions in `target`, a file or a directory; `program` must be installed."""

    name: str
    program: str
    target: Path
    commands: Sequence[_Command]

    def run(self) -> tuple[float, list[int]]:
        """Returns seconds of CPU time, and the size of the target after each command."""
        before, sizes = cpu_of_children(), []
        for command in self.commands:
            subprocess.run(command, env=environment() | _SETTINGS, stdout=subprocess.DEVNULL, check=True)
            sizes.append(_size_of(self.target))
        return cpu_of_children() - before, sizes


def measure_versions(versions: Sequence[Path]) -> Report:
    """Returns a table with a row for each way to store directories, the last of which is the newest version."""
    size = sum(read_all(version) for version in versions)
    report = Report(f"{len(versions)} versions, {size / 1e6:,.1f} MB of files", _COLUMNS)
    report.notes.append(_NOTE)
    with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch:
        for way in _ways([version.resolve() for version in versions], Path(scratch)):
            if missing := lacking([way.program]):
                report.add_missing(way.name, missing)
                continue
            seconds, sizes = way.run()
            last = (sizes[-1] - sizes[-2]) / 1e6 if len(sizes) > 1 else None
            report.add(way.name, sizes[-1] / 1e6, size / sizes[-1], seconds, last)
    return report


def _ways(versions: Sequence[Path], scratch: Path) -> list[_Way]:
    return [*_together(versions, scratch), *_one_by_one(versions, scratch), _patch(versions[-2:], scratch)]


def _together(versions: Sequence[Path], scratch: Path) -> list[_Way]:
    tar = ["tar", "-cf", "-", *(part for version in versions for part in ("-C", version.parent, version.name))]

    def pack(name: str, *options: str) -> _Way:
        target = scratch / f"{name}.gomp"
        return _Way(f"{name}, together", str(GOMPFS[0]), target, [[*GOMPFS, "pack", "-q", *options, *versions, target]])

    def zstd(level: str) -> _Way:
        target = scratch / f"tar{level}.zst"
        command = pipeline(tar, ["zstd", "-q", level, "--long=27", "-o", target])
        return _Way(f"tar | zstd {level} --long=27, together", "zstd", target, [command])

    squashfs = scratch / "squashfs"
    make = ["mksquashfs", *versions, squashfs, "-quiet", "-no-progress", "-comp", "zstd", "-b", "1M"]
    return [
        pack("gompfs"),
        pack("gompfs --for size", "--for", "size"),
        _Way("mksquashfs zstd 1 MiB, together", "mksquashfs", squashfs, [make]),
        zstd("-3"),
        zstd("-19"),
    ]


def _one_by_one(versions: Sequence[Path], scratch: Path) -> list[_Way]:
    archive, borg, restic = scratch / "added.gomp", scratch / "borg", scratch / "restic"
    pack = [[*GOMPFS, "pack", "-q", versions[0], archive, "--prefix", versions[0].name]]
    adds = [[*GOMPFS, "add", "-q", version, archive, "--prefix", version.name] for version in versions[1:]]
    # borg is a program in Python, and must not find the packages beside gompfs.
    alone = ["env", "-u", "PYTHONPATH", "borg"]
    creates = [[*alone, "create", "-C", "zstd", f"{borg}::{version.name}", version] for version in versions]
    backups = [["restic", "-q", "-r", restic, "backup", version] for version in versions]
    return [
        _Way("gompfs, one by one", str(GOMPFS[0]), archive, [*pack, *adds]),
        _Way("borg zstd, one by one", "borg", borg, [[*alone, "init", "-e", "none", borg], *creates]),
        _Way("restic, one by one", "restic", restic, [["restic", "-q", "-r", restic, "init"], *backups]),
    ]


def _patch(versions: Sequence[Path], scratch: Path) -> _Way:
    """Returns the way that stores the last of two versions only."""
    tars = [scratch / f"{version.name}.tar" for version in versions]
    make = [
        ["tar", "--sort=name", "--mtime=@0", "-cf", tar, "-C", version, "."]
        for version, tar in zip(versions, tars, strict=True)
    ]
    target = scratch / "patch.zst"
    # The window has to hold a whole tar; zstd sets it, if the difference is asked for with --long.
    command = ["zstd", "-q", "-19", "--long=31", f"--patch-from={tars[0]}", tars[1], "-o", target]
    return _Way("zstd -19 --patch-from, the last", "zstd", target, [*make, command])


def _size_of(target: Path) -> int:
    """Returns the bytes of a file, or of all files of a directory; 0 if it is not there."""
    files = target.rglob("*") if target.is_dir() else [target]
    return sum(file.stat().st_size for file in files if file.is_file())
