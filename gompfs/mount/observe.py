"""Looks at gompfs mounts from outside: what each says of itself in `stats/metrics`."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

from gompfs.mount.mount_table import MountEntry, read_mount_table
from gompfs.mount.prometheus import Samples, parse_metrics

_STATISTICS = ".gompfs/stats"
_METRICS = "metrics"
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
_MAX_SIZE = 1 << 20  # a mount may be anybody's
_TIMEOUT_SECONDS = 3.0
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

    Without any where `state` says why: dead, stats=off, not permitted, no answer, no metrics (an older release).
    """

    mount: MountEntry
    state: str
    samples: Samples = field(default_factory=dict)

    def value(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels; 0.0 for none."""
        wanted = labels.items()
        return sum(value for having, value in self.samples.get(name, ()) if wanted <= having.items())

    def label(self, name: str) -> str | None:
        """What `gompfs_info` says, by its label; None where the archives of a mount differ in that."""
        values = {labels.get(name) for labels, _ in self.samples.get("gompfs_info", ())}
        return values.pop() if len(values) == 1 else None


def observe_mounts(mountpoints: Sequence[str] = ()) -> list[MountState]:
    """The state of all gompfs mounts, or of those at `mountpoints`; of each place the topmost one.

    Waits three seconds at most for one that does not answer.
    """
    topmost = {entry.mountpoint: entry for entry in read_mount_table()}
    chosen = [
        entry for place, entry in topmost.items() if entry.is_gompfs and (not mountpoints or place in mountpoints)
    ]
    answers: SimpleQueue[tuple[int, MountState]] = SimpleQueue()

    def ask(number: int, entry: MountEntry) -> None:
        answers.put((number, _observe(entry)))

    for number, entry in enumerate(chosen):
        # One that hangs must not keep the command from ending: so no pool, whose threads would be waited for.
        threading.Thread(target=ask, args=(number, entry), daemon=True).start()
    states = [MountState(entry, "no answer") for entry in chosen]
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    try:
        for _ in chosen:
            number, state = answers.get(timeout=max(deadline - time.monotonic(), 0))
            states[number] = state
    except Empty:
        pass
    return states


def _observe(entry: MountEntry) -> MountState:
    place = Path(entry.mountpoint, _STATISTICS)
    try:
        samples = _read_metrics(place)
    except FileNotFoundError:
        return MountState(entry, "no metrics" if os.path.isdir(place) else "stats=off")
    except OSError as error:
        return MountState(entry, _STATES.get(error.errno or 0, error.strerror or str(error)))
    return MountState(entry, SERVING, samples) if "gompfs_info" in samples else MountState(entry, "no metrics")


def _read_metrics(place: Path) -> Samples:
    """The metrics of a mount, or those of all archives that it shows, one after the other."""
    try:
        return _read_file(place / _METRICS)
    except FileNotFoundError:
        found = [*_read_files(place)]
        if not found:
            raise
    samples = dict(found[0])
    for others in found[1:]:
        for name in others.keys() - _OF_THE_DAEMON:
            samples[name] = samples.get(name, []) + others[name]
    return samples


def _read_files(place: Path) -> Iterator[Samples]:
    for name in sorted(os.listdir(place))[:_MAX_ARCHIVES]:
        try:
            yield _read_file(place / name / _METRICS)
        except (FileNotFoundError, NotADirectoryError):
            continue  # an older release has other files there


def _read_file(path: Path) -> Samples:
    with open(path, "rb") as file:
        return parse_metrics(file.read(_MAX_SIZE).decode("utf-8", "replace"))
