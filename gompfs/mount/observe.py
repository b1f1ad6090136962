"""Looks at gompfs mounts from outside: what each says of itself in `stats/metrics`."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

from gompfs.mount.mount_table import MountEntry, read_mount_table
from gompfs.mount.prometheus import Samples, parse_metrics

_METRICS = ".gompfs/stats/metrics"
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
        """What `gompfs_info` says, by its label."""
        for labels, _ in self.samples.get("gompfs_info", ()):
            return labels.get(name)
        return None


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
    place = Path(entry.mountpoint, _METRICS)
    try:
        with open(place, "rb") as file:
            samples = parse_metrics(file.read(_MAX_SIZE).decode("utf-8", "replace"))
    except FileNotFoundError:
        return MountState(entry, "no metrics" if os.path.isdir(place.parent) else "stats=off")
    except OSError as error:
        return MountState(entry, _STATES.get(error.errno or 0, error.strerror or str(error)))
    return MountState(entry, SERVING, samples) if "gompfs_info" in samples else MountState(entry, "no metrics")
