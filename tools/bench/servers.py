"""The file systems that are compared: how each makes its archive, mounts and unmounts it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .programs import GOMPFS, environment, lacking, pipeline, tar_of

BARE = "bare FUSE, from memory"
_READY_SECONDS = 300
_UNMOUNT_TRIES = 50


@dataclass(frozen=True)
class Server:
    """Commands that make an archive of a source and mount it; without a mount command, the source itself is read."""

    name: str
    programs: tuple[str, ...] = ()
    make: tuple[str | Path, ...] = ()
    mount: tuple[str | Path, ...] = ()
    archive: Path | None = None

    def missing(self) -> list[str]:
        """Returns the required programs that are not installed."""
        return lacking(self.programs)

    @property
    def archive_size(self) -> float | None:
        """The size of the archive in MB, after it was made; None for a server without an archive."""
        return self.archive.stat().st_size / 1e6 if self.archive else None


def servers_of(source: Path, scratch: Path, place: Path, archive: Path | None) -> list[Server]:
    """Returns all servers for a directory or a file; gompfs serves `archive` if given."""
    gomp, tar, squash = archive or scratch / "it.gomp", scratch / "it.tar.zst", scratch / "it.squashfs"
    pack = () if archive else (*GOMPFS, "pack", "-q", source, gomp)
    # pzstd writes frames that decompress independently; ratarmount cannot seek in a single frame.
    make_tar = pipeline(tar_of(source), ["pzstd", "-q", "-3", "-o", tar])
    squashed = ("mksquashfs", source, squash, "-comp", "zstd", "-no-progress", "-quiet")
    squashfuse = "squashfuse" if lacking(["squashfuse_ll"]) and not lacking(["squashfuse"]) else "squashfuse_ll"
    return [
        Server("gompfs", (), pack, (*GOMPFS, "mount", gomp, place), gomp),
        Server(
            "ratarmount tar.zst",
            ("bash", "tar", "pzstd", "ratarmount"),
            tuple(make_tar),
            ("ratarmount", tar, place),
            tar,
        ),
        Server(f"{squashfuse} zstd", ("mksquashfs", squashfuse), squashed, (squashfuse, squash, place), squash),
        Server("not packed"),
    ]


def run(command: tuple[str | Path, ...], *, directory: Path | None = None) -> str:
    """Returns the output of a command that starts no daemon; raises CalledProcessError if it fails."""
    done = subprocess.run(
        command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, env=environment()
    )
    return done.stdout.strip()


def drop_caches() -> None:
    """Empties the kernel's caches of files, names and inodes; needs root."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3\n")


def bare_server(big: Path, place: Path) -> Server:
    """Returns a server of a file of the same size from memory: an upper bound for every FUSE file system."""
    command = (*GOMPFS[:-1], "tools.bench.bare_fuse", big.name, str(big.stat().st_size), place)
    return Server(BARE, (), (), command)


@contextmanager
def mounted(server: Server, source: Path, place: Path, *, cold: bool) -> Iterator[tuple[Path, float]]:
    """Mounts; yields the directory of the content, and the seconds from the mount command to the first listing."""
    if cold:
        drop_caches()
    started = time.perf_counter()
    if not server.mount:
        directory = source if source.is_dir() else source.parent
        os.listdir(directory)
        yield directory, time.perf_counter() - started
        return
    place.mkdir(exist_ok=True)
    try:
        # No pipes, because the daemon would keep them open.
        subprocess.run(
            server.mount,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=environment(),
            timeout=_READY_SECONDS,
        )
        while not _is_mounted(place):
            if time.perf_counter() - started > _READY_SECONDS:
                raise TimeoutError(f"{server.name} does not answer")
            time.sleep(0.002)
        os.listdir(place)
        yield place, time.perf_counter() - started
    finally:
        unmount(place)


def unmount(place: Path) -> None:
    """Unmounts and makes sure that nothing stays mounted: cleaning the scratch directory would delete its files."""
    command: list[str | Path] = ["umount", place] if os.geteuid() == 0 else ["fusermount3", "-u", place]
    for _ in range(_UNMOUNT_TRIES):
        if not _is_mounted(place):
            return
        subprocess.run(command, capture_output=True, check=False)
        time.sleep(0.02)
    raise RuntimeError(f"{place} could not be unmounted")


def _is_mounted(place: Path) -> bool:
    """Returns whether `place` is a mount point, unlike os.path.ismount also if its server has died."""
    return any(line.split()[4] == str(place) for line in Path("/proc/self/mountinfo").read_text().splitlines())
