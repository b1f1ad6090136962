"""The state of mounts as `gompfs ps` reads it, from their metrics."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from gompfs.mount.system.observe import MountState, observe_mounts


def observe(place: Path) -> MountState:
    """Returns the state of one mount. Its metrics may be up to a second old, since other observers renew them too."""
    (state,) = observe_mounts([os.path.realpath(place)])
    return state


def observe_anew(place: Path) -> MountState:
    """Returns the state of a serving mount, with metrics computed after this call began."""
    first = observe(place)
    for _ in range(100):
        time.sleep(0.1)
        state = observe(place)
        if state.value("gompfs_uptime_seconds") > first.value("gompfs_uptime_seconds"):
            return state
    raise AssertionError(f"{place}: the metrics stay as they were at {first.value('gompfs_uptime_seconds')} s")


def wait_until(is_true: Callable[[], bool]) -> None:
    """Waits until a mount shows what a test expects, at most 30 s."""
    deadline = time.monotonic() + 30
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
