"""Observes gompfs mounts from outside, through the file `stats/metrics.json` of each mount."""

from __future__ import annotations

import errno
import marshal
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from gompfs.mount.metric_set import Samples, samples_of
from gompfs.mount.system.mount_table import MountEntry, read_mount_table
from gompfs.mount.system.questions import ask

_STATISTICS = ".gompfs/stats"
_METRICS = "metrics.json"
_OF_THE_DAEMON = frozenset(
    {
        "gompfs_decoded_blocks_total",
        "gompfs_decoded_bytes_total",
        "gompfs_decode_seconds_total",
        "gompfs_uptime_seconds",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
    }
)
_MAX_ARCHIVES = 1000
_MAX_SIZE = 1 << 20  # a limit, since the mount may belong to another user
_TIMEOUT_SECONDS = 1.5
SERVING = "serving"
_STATES = {
    errno.ENOTCONN: "dead",
    errno.ECONNABORTED: "dead",
    errno.EACCES: "not permitted",
    errno.EPERM: "not permitted",
}


@dataclass(frozen=True)
class MountState:
    """A mount and its metrics.

    `state` is SERVING, or says why there are no metrics: dead, stats=off, not permitted, no answer, no metrics (of
    another release).
    """

    mount: MountEntry
    state: str
    samples: Samples = field(default_factory=dict)

    def value(self, name: str, **labels: str) -> float:
        """Returns the sum of a metric's samples that have these labels, or 0 if there are none."""
        wanted = labels.items()
        return sum(value for having, value in self.samples.get(name, ()) if wanted <= having.items())

    def label(self, name: str) -> str | None:
        """Returns a label of `gompfs_info`, or None if the archives of the mount differ in it."""
        values = {labels.get(name) for labels, _ in self.samples.get("gompfs_info", ())}
        return values.pop() if len(values) == 1 else None


def observe_mounts(mountpoints: Sequence[str] = ()) -> list[MountState]:
    """Returns the states of all gompfs mounts, or of those at `mountpoints`: the topmost mount at each path.

    Waits at most 1.5 seconds for mounts that do not answer.
    """
    topmost = {entry.mountpoint: entry for entry in read_mount_table()}
    chosen = [entry for path, entry in topmost.items() if entry.is_gompfs and (not mountpoints or path in mountpoints)]
    answers = ask({entry: partial(_observe, entry) for entry in chosen}, _TIMEOUT_SECONDS)
    return [
        MountState(entry, *marshal.loads(answers[entry])) if entry in answers else MountState(entry, "no answer")
        for entry in chosen
    ]


def _observe(entry: MountEntry) -> bytes:
    """Returns the fields `state` and `samples` of a MountState, marshalled."""
    folder = Path(entry.mountpoint, _STATISTICS)
    state = "no metrics"
    samples: Samples = {}
    try:
        samples = _read_metrics(folder)
        if "gompfs_info" in samples:
            state = SERVING
    except FileNotFoundError:
        if not os.path.isdir(folder):
            state = "stats=off"
    except ValueError:
        pass  # another user's mount can have any content
    except OSError as error:
        state = _STATES.get(error.errno or 0, error.strerror or str(error))
    return marshal.dumps((state, samples if state == SERVING else {}))


def _read_metrics(folder: Path) -> Samples:
    """Returns the metrics of a mount. If it shows several archives, their samples are concatenated.

    A metric in _OF_THE_DAEMON describes the whole daemon, so only the sample of the first archive is returned.
    """
    try:
        return _read_file(folder / _METRICS)
    except FileNotFoundError:
        found = [*_read_files(folder)]
        if not found:
            raise
    samples = dict(found[0])
    for others in found[1:]:
        for name in others.keys() - _OF_THE_DAEMON:
            samples[name] = samples.get(name, []) + others[name]
    return samples


def _read_files(folder: Path) -> Iterator[Samples]:
    for name in sorted(os.listdir(folder))[:_MAX_ARCHIVES]:
        try:
            yield _read_file(folder / name / _METRICS)
        except (FileNotFoundError, NotADirectoryError):
            continue  # in another release, the directory holds other files


def _read_file(path: Path) -> Samples:
    with open(path, "rb") as file:
        return samples_of(file.read(_MAX_SIZE))
