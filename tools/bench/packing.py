"""Measures packing a tree, by gompfs and by other packers."""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from .blocks import regular_files
from .programs import GOMPFS, environment, lacking, pipeline, tar_of
from .report import Report
from .timing import run_measured


@dataclass
class Packer:
    """One way to pack the tree, and its measurements; it needs `programs`."""

    name: str
    command: list[str | Path]
    target: Path
    programs: tuple[str, ...] = ()
    seconds: list[float] = field(default_factory=list)
    peak_memory: int = 0

    def run(self) -> None:
        """Packs once more, to a new archive."""
        self.target.unlink(missing_ok=True)
        seconds, peak_memory = run_measured(self.command, environment())
        self.seconds.append(seconds)
        self.peak_memory = max(self.peak_memory, peak_memory)


def measure_pack(tree: Path, rounds: int) -> Report:
    """Returns a table with a row for each packer. The tree is read once first, so that it is in the page cache."""
    columns = ["seconds", "MB/s", "archive MB", "ratio", "peak memory MB"]
    size = read_all(tree)
    report = Report(f"packing {tree.name}, {size / 1e6:.1f} MB of files, medians of {rounds}", columns)
    with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch:
        packers = _packers(tree, Path(scratch))
        missing = {packer.name: lacking(packer.programs) for packer in packers}
        for _ in range(rounds):
            for packer in packers:
                if not missing[packer.name]:
                    packer.run()
        for packer in packers:
            if missing[packer.name]:
                report.add_missing(packer.name, missing[packer.name])
                continue
            seconds, archive = statistics.median(packer.seconds), packer.target.stat().st_size
            figures = (size / 1e6 / seconds, archive / 1e6, size / archive, packer.peak_memory / 1e6)
            report.add(packer.name, seconds, *figures)
    report.notes.append(
        "MB/s counts the bytes in regular files. Peak memory is that of the largest process of a pipeline; values "
        "below about 10 MB cannot be seen. gzip uses one core; gompfs, zstd -T0 and mksquashfs use all."
    )
    return report


def read_all(tree: Path) -> int:
    """Reads a tree's regular files once; returns the sum of their sizes."""
    size = 0
    for file in regular_files(tree):
        with file.open("rb") as opened:
            while piece := opened.read(1 << 20):
                size += len(piece)
    return size


def _packers(tree: Path, scratch: Path) -> list[Packer]:
    parts, blocks = scratch / "parts.gomp", scratch / "blocks.gomp"
    squash = scratch / "tree.squashfs"
    gzip, zstd = scratch / "tree.tar.gz", scratch / "tree.tar.zst"
    to_gzip = pipeline(tar_of(tree), ["sh", "-c", 'exec gzip -6 > "$0"', gzip])
    to_zstd = pipeline(tar_of(tree), ["zstd", "-q", "-3", "-T0", "-f", "-o", zstd])
    squashed: list[str | Path] = ["mksquashfs", tree, squash, "-comp", "zstd", "-no-progress", "-quiet"]
    return [
        Packer("gompfs", [*GOMPFS, "pack", "-q", tree, parts], parts),
        Packer(
            "gompfs --codec gompresso-bit", [*GOMPFS, "pack", "-q", "--codec", "gompresso-bit", tree, blocks], blocks
        ),
        Packer("tar | gzip -6", to_gzip, gzip, ("bash", "tar", "gzip")),
        Packer("tar | zstd -3 -T0", to_zstd, zstd, ("bash", "tar", "zstd")),
        Packer("mksquashfs zstd", squashed, squash, ("mksquashfs",)),
    ]
