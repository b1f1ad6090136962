"""Runs an archive through real processes: the commands as users run them, and a mount with the kernel."""

from __future__ import annotations

import itertools
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from examine import FORBIDDEN, files_below, remove

_MAX_FILES = 500
_MAX_FOLDERS = 2000  # a directory with several names is walked once per name
Tell = Callable[[str, str], None]


def run_as_processes(path: Path, scratch: Path, limit: float, tell: Tell) -> None:
    """Runs the main commands as separate processes, as users do. The kernel reports their peak memory."""
    target = scratch / "extracted-by-process"
    lines = [["ls", "-lR"], ["info"], ["verify"], ["extract", "-q", "-C", str(target)], ["stats", "wordcount"]]
    for name, *rest in lines:
        tell("command", f"process: {name}")
        command = [sys.executable, "-P", "-m", "gompfs", name, str(path), *rest]
        begun = time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, timeout=limit, check=False, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            tell("finding", f"time: process: {name}: more than {limit:.0f} s")
            continue
        err = done.stderr.decode("utf-8", "replace")
        if done.returncode < 0:
            tell("finding", f"signal: process: {name}: {-done.returncode}: {err[-400:]}")
        elif done.returncode not in (0, 1) or any(text in err for text in FORBIDDEN):
            tell("finding", f"internal error: process: {name}: status {done.returncode}: {err[-400:]}")
        tell("seconds", f"{time.monotonic() - begun:.3f}")
    remove(target)


def run_real_mount(path: Path, scratch: Path, limit: float, tell: Tell) -> None:
    """Mounts the archive, walks it, reads files, attributes and word counts, and unmounts it."""
    target = scratch / "mounted"
    target.mkdir(exist_ok=True)
    tell("command", "process: mount")
    command = [sys.executable, "-P", "-m", "gompfs", "mount", "-f", str(path), str(target)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + limit
    try:
        while not os.path.ismount(target):
            if process.poll() is not None or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        else:
            # Requests to a hanging mount end when its daemon is killed.
            killer = subprocess.Popen(["sh", "-c", f"sleep {limit} && kill -9 {process.pid}"], start_new_session=True)
            try:
                _use_tree(os.fsencode(target))
            except OSError:
                pass
            finally:
                os.killpg(killer.pid, 9)
                killer.wait()
            if time.monotonic() > deadline:
                tell("finding", f"time: process: mount: more than {limit:.0f} s")
            peak = _peak_memory(process.pid)
            if peak > 1 << 30:
                tell("finding", f"memory: process: mount: {peak >> 20} MiB")
        process.terminate()
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            tell("finding", "time: process: mount: SIGTERM does not end it")
            process.kill()
            status = process.wait()
        err = process.stderr.read().decode("utf-8", "replace") if process.stderr else ""
        if status not in (0, 1, -15, 143) or any(text in err for text in FORBIDDEN):
            tell("finding", f"internal error: process: mount: status {status}: {err[-400:]}")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        subprocess.run(["umount", "-l", target], capture_output=True, check=False)


def _use_tree(top: bytes) -> None:
    for full, status in itertools.islice(files_below(top, _MAX_FOLDERS), _MAX_FILES):
        try:
            os.listxattr(full, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and status.st_size <= 1 << 20:
                with open(full, "rb") as file:
                    file.read()
        except OSError:
            pass
    try:
        with open(os.path.join(top, b".gompfs/stats/wordcount"), "rb") as file:
            file.read()
    except OSError:
        pass


def _peak_memory(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0
