"""Times interleaved rounds in this process, and measures time and memory of commands."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

_SECONDS_OF_A_TURN = 0.1
_SECONDS_OF_A_SLOW_JOB = 1.0

Key = TypeVar("Key", bound=Hashable)

# A process inherits the peak memory of its parent as its own. So a small process must start each command, instead of
# the benchmark itself, which has loaded NumPy and more. Peaks below the memory of the small process, about 10 MB, are
# not seen.
_LAUNCHER = """
import json, os, sys, time
null = os.open(os.devnull, os.O_WRONLY)
started = time.perf_counter()
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
_, status, usage = os.wait4(child, 0)
seconds = time.perf_counter() - started
print(json.dumps([os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss * 1024]))
"""


def interleave(jobs: Mapping[Key, Callable[[], object]], rounds: int) -> dict[Key, float]:
    """Returns the median seconds of each job over `rounds` rounds, after one warm-up round.

    Each round runs every job, so that other load on the machine affects all jobs alike. A job runs repeatedly for 0.1 s
    in each round; otherwise the time for small data would depend on the caches that the previous job left. A job that
    took more than a second in the warm-up round is measured by that round alone.
    """
    seconds = {key: [_time(job)] for key, job in jobs.items()}
    repeated = {key: job for key, job in jobs.items() if seconds[key][0] <= _SECONDS_OF_A_SLOW_JOB}
    for key in repeated:
        seconds[key].clear()
    for _ in range(rounds):
        for key, job in repeated.items():
            seconds[key].append(_time(job))
    return {key: statistics.median(values) for key, values in seconds.items()}


def _time(job: Callable[[], object]) -> float:
    """Returns the seconds of a job that runs repeatedly for a turn."""
    started = time.perf_counter()
    runs = 0
    while time.perf_counter() - started < _SECONDS_OF_A_TURN:
        job()
        runs += 1
    return (time.perf_counter() - started) / runs


def cpu_of_children() -> float:
    """Returns the seconds of CPU time, user and system, of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_measured(command: Sequence[str | Path], environment: Mapping[str, str]) -> tuple[float, int]:
    """Returns seconds, and the peak memory in bytes of the largest process; raises CalledProcessError on failure."""
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, *map(str, command)]
    done = subprocess.run(launcher, stdout=subprocess.PIPE, check=True, env=dict(environment))
    exit_code, seconds, peak_memory = json.loads(done.stdout)
    if exit_code != 0:
        raise subprocess.CalledProcessError(exit_code, list(map(str, command)))
    return seconds, peak_memory
