"""Compares the request loop of gompfs with libfuse's low-level API: the same tree, from memory, through both.

Run it as root: `python -m tools.experiments.fuse_low_level FOLDER`. It needs libfuse3-dev and a C++ compiler,
and writes about 1 GB to FOLDER, which it creates. Rounds of the two servers alternate; the table has medians.
"""

from __future__ import annotations

import ctypes
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

from gompfs.mount.system.kernel_tuning import set_read_ahead

_SOURCE = Path(__file__).with_suffix(".cpp")
_DIRECTORIES, _FILES, _SMALL = 400, 100, 4096  # files in each directory, and their size
_LARGE = 512 << 20
_READ_AHEAD = 4 << 20
_RANDOM_READS = 20_000
_ROUNDS = 25
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT = 1, 2, 4, 32
_libc = ctypes.CDLL(None, use_errno=True)


def make_tree(tree: Path) -> None:
    """Create 40,000 small files in 400 directories, and a large file."""
    rng = random.Random(1)
    words = [rng.randbytes(6).hex().encode() for _ in range(4000)]
    for number in range(_DIRECTORIES):
        directory = tree / "small" / f"directory-{number:04}"
        directory.mkdir(parents=True)
        for each in range(_FILES):
            (directory / f"file-{each:03}.txt").write_bytes(b" ".join(rng.choices(words, k=400))[:_SMALL])
    with open(tree / "large", "wb") as file:
        file.writelines(b" ".join(rng.choices(words, k=90_000))[: 1 << 20] for _ in range(_LARGE >> 20))


def drop_caches(mountpoint: Path) -> None:
    """Make the kernel forget the names, attributes and pages of one mount: a remount drops them."""
    flags = _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV
    if _libc.mount(None, os.fsencode(mountpoint), None, flags, None) != 0:
        raise OSError(ctypes.get_errno(), "remount")
    time.sleep(0.3)  # until the server has taken the FORGET requests


def run(*command: str | Path) -> None:
    """Run a command, and discard its output."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def cpu_seconds(process: int) -> float:
    """Returns the CPU time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS


def measure(mountpoint: Path, server: int) -> dict[str, float]:
    """Returns the figures of one round: wall time, and CPU time of the process `server`."""
    figures: dict[str, float] = {}

    def measure_command(name: str, *command: str | Path) -> None:
        drop_caches(mountpoint)
        begin, cpu = time.perf_counter(), cpu_seconds(server)
        run(*command)
        figures[f"{name} (s)"] = time.perf_counter() - begin
        figures[f"{name}, CPU of the server (s)"] = cpu_seconds(server) - cpu

    measure_command("find with sizes", "find", mountpoint, "-printf", "%s")
    measure_command("tar of the small files", "sh", "-c", f"tar cf - -C {mountpoint} small | cat")
    measure_command("large file", "dd", f"if={mountpoint}/large", "of=/dev/null", "bs=1M", "status=none")
    drop_caches(mountpoint)
    rng = random.Random(2)
    times = []
    cpu = cpu_seconds(server)
    descriptor = os.open(mountpoint / "large", os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    for offset in rng.sample(range(0, _LARGE, 4096), _RANDOM_READS):
        begin = time.perf_counter()
        os.pread(descriptor, 4096, offset)
        times.append(time.perf_counter() - begin)
    os.close(descriptor)
    figures[f"{_RANDOM_READS:,} random reads, CPU of the server (s)"] = cpu_seconds(server) - cpu
    figures["random 4 KiB, p50 (us)"] = statistics.median(times) * 1e6
    figures["random 4 KiB, p99 (us)"] = statistics.quantiles(times, n=100)[98] * 1e6
    return figures


def wait_for(mountpoint: Path) -> None:
    """Wait until a mount answers."""
    deadline = time.monotonic() + 60
    while not (mountpoint / "large").exists():
        if time.monotonic() > deadline:
            sys.exit(f"{mountpoint} does not answer")
        time.sleep(0.05)


def main() -> None:
    """Measure, and print a table."""
    folder = Path(sys.argv[1])
    tree, archive, program = folder / "tree", folder / "tree.gomp", folder / "fuse_low_level"
    mounts = {"gompfs": folder / "gompfs", "libfuse": folder / "libfuse"}
    if not archive.exists():
        folder.mkdir(exist_ok=True)
        if not tree.exists():
            make_tree(tree)
        run("gompfs", "pack", "--codec", "gompresso-bit", "--level", "1", tree, archive)
    flags = subprocess.check_output(["pkg-config", "--cflags", "--libs", "fuse3"], text=True).split()
    run("g++", "-O3", "-std=c++20", _SOURCE, "-o", program, *flags)
    for mountpoint in mounts.values():
        mountpoint.mkdir(exist_ok=True)
    servers = {
        "gompfs": subprocess.Popen(
            ["gompfs", "mount", "-f", "-o", "cache_size=2G,stats=off", archive, mounts["gompfs"]]
        ),
        "libfuse": subprocess.Popen([program, tree, mounts["libfuse"], "-o", f"ro,max_read={1 << 20}"]),
    }
    try:
        found: dict[str, list[dict[str, float]]] = {name: [] for name in mounts}
        for mountpoint in mounts.values():
            wait_for(mountpoint)
            set_read_ahead(str(mountpoint), _READ_AHEAD)
            # gompfs decodes all blocks now, and caches them.
            run("sh", "-c", f"tar cf - -C {mountpoint} . | cat")
        for number in range(_ROUNDS):
            for name in mounts if number % 2 else reversed(mounts):
                found[name].append(measure(mounts[name], servers[name].pid))
        print(f"| median of {_ROUNDS} (smallest to largest) | " + " | ".join(found) + " |")
        print("|---" * (1 + len(found)) + "|")
        for figure in found["gompfs"][0]:
            values = ([each[figure] for each in rounds] for rounds in found.values())
            cells = (f"{statistics.median(v):.3g} ({min(v):.3g} to {max(v):.3g})" for v in values)
            print(f"| {figure} | " + " | ".join(cells) + " |")
        print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, Linux {os.uname().release}")
    finally:
        for mountpoint in mounts.values():
            subprocess.run(["umount", mountpoint], check=False)
        for server in servers.values():
            server.wait()


if __name__ == "__main__":
    main()
