"""Packing a tree, by gompfs and by others."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import NOT_INSTALLED, Report

from gompfs import open as open_archive


def measure_pack(tree: Path) -> Report:
    """A row for each tool, in the order in which they run, with the tree in the page cache."""
    report = Report(f"packing {tree.name}", ["seconds", "MB/s", "archive MB", "ratio", "peak memory MB", "grammar MB"])
    size = sum(file.stat().st_size for file in tree.rglob("*") if file.is_file() and not file.is_symlink())
    quoted = shlex.quote(str(tree))
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch, "archive.gomp")
        gompfs = [sys.executable, "-P", "-m", "gompfs", "pack", "-q", "-f"]
        commands = {
            "gompfs, no stats": [*gompfs, "--no-stats", tree, target],
            "gompfs": [*gompfs, tree, target],
            "tar | gzip -6": ["sh", "-c", f"tar -C {quoted} -cf - . | gzip -6 > {target}"],
            "tar | zstd -3 -T0": ["sh", "-c", f"tar -C {quoted} -cf - . | zstd -q -3 -T0 -f -o {target}"],
            "mksquashfs zstd": ["mksquashfs", tree, target, "-comp", "zstd", "-no-progress", "-quiet"],
        }
        subprocess.run(["sh", "-c", f"tar -C {quoted} -cf - . | cat > /dev/null"], check=True)
        for name, command in commands.items():
            program = name.partition("| ")[2].split()[0] if "|" in name else str(command[0])
            if shutil.which(program) is None:
                report.add(name, NOT_INSTALLED, *[None] * 5)
                continue
            target.unlink(missing_ok=True)
            seconds, memory = run_measured(command)
            grammar = _grammar_size(target) if name.startswith("gompfs") else None
            archive = target.stat().st_size
            report.add(name, seconds, size / 1e6 / seconds, archive / 1e6, size / archive, memory / 1e6, grammar)
    return report


def run_measured(command: list[str | Path]) -> tuple[float, int]:
    """Seconds, and the peak memory in bytes of the largest process; raises where the command fails."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return seconds, usage.ru_maxrss * 1024


def _grammar_size(archive: Path) -> float:
    with open_archive(archive) as opened:
        return sum(int(section.places.compressed_sizes.sum()) for section in opened.sections) / 1e6
