"""`gompfs top`: shows the activity of mounts, refreshed at an interval."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from gompfs.cli.command_line import PATH, IntegerRange, NumberRange, argument, command, option
from gompfs.cli.output import human_duration, human_size, make_table, print_table
from gompfs.errors import display_path

if TYPE_CHECKING:
    from gompfs.mount.system.observe import MountState

_HEADINGS = (
    *("mountpoint", "engine", "reads/s", "read/s", "hits"),
    *("decoded/s", "on gpu", "cpu/s", "gpu/s"),
    *("p50", "p99", "memory"),
)
_UNKNOWN = "-"
_DECODERS = ("cpu", "gpu")


@command("top")
@argument("mountpoints", metavar="[MOUNTPOINT...]", several=True, required=False, type=PATH)
@option(
    "--interval",
    type=NumberRange(1),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between refreshes.",
)
@option("--count", type=IntegerRange(1), metavar="N", help="Exit after N refreshes.")
def top_command(mountpoints: tuple[str, ...], *, interval: float, count: int | None) -> None:
    """Show the activity of mounts until interrupted.

    All mounts are shown, or only those at each MOUNTPOINT.

    \b
    reads/s, read/s      read requests per second, and bytes read per second
    hits                 share of requested blocks that were in the cache
    decoded/s            decompressed bytes per second, for reads and for statistics
    on gpu               share of decompressed bytes that a GPU decoded
    cpu/s, gpu/s         decompressed bytes per second of decoding time, on the CPU and on the GPU
    p50, p99             median and 99th percentile of the read latency (upper limit of the histogram bucket)
    memory               resident memory of the daemon

    The first figures cover the time since the mount started; later figures cover the time since the last refresh.
    """
    from gompfs.mount.system.mount_table import resolve_mountpoint

    paths = [resolve_mountpoint(path) for path in mountpoints]
    if not sys.stdout.isatty():
        for rows in _looks(paths, interval, count):
            print_table(_HEADINGS, rows, num_left=2)
            sys.stdout.flush()
        return
    from rich.live import Live

    with Live(screen=count is None, auto_refresh=False) as live:
        try:
            for rows in _looks(paths, interval, count):
                live.update(make_table(_HEADINGS, rows, num_left=2), refresh=True)
        except KeyboardInterrupt:
            pass  # Ctrl-C ends the display


def _looks(paths: Sequence[str], interval: float, count: int | None) -> Iterator[list[tuple[str, ...]]]:
    """Yields the rows of each refresh."""
    from gompfs.mount.system.observe import observe_mounts

    before: dict[tuple[str, str | None], MountState] = {}
    done = 0
    while True:
        now = {(state.mount.device, state.label("pid")): state for state in observe_mounts(paths)}
        yield [_row(state, before.get(key)) for key, state in now.items()]
        before = now
        done += 1
        if done == count:
            return
        time.sleep(interval)


def _row(now: MountState, before: MountState | None) -> tuple[str, ...]:
    from gompfs.mount.system.observe import SERVING

    mountpoint = display_path(now.mount.mountpoint)
    if now.state != SERVING:
        return (mountpoint, now.state, *(_UNKNOWN,) * (len(_HEADINGS) - 2))

    def since(name: str, **labels: str) -> float:
        return now.value(name, **labels) - (before.value(name, **labels) if before is not None else 0.0)

    seconds = since("gompfs_uptime_seconds")
    hits, misses = since("gompfs_cache_hits_total"), since("gompfs_cache_misses_total")
    decoded = since("gompfs_decoded_bytes_total")
    decoded_by = {engine: since("gompfs_decoded_bytes_total", engine=engine) for engine in _DECODERS}
    busy = {engine: since("gompfs_decode_seconds_total", engine=engine) for engine in _DECODERS}
    counts = {limit: since("gompfs_request_seconds_bucket", request="read", le=limit) for limit in _limits(now)}
    return (
        mountpoint,
        now.label("engine") or _UNKNOWN,
        _rate(since("gompfs_request_seconds_count", request="read"), seconds, "{:.0f}".format),
        _rate(since("gompfs_read_bytes_total"), seconds, human_size),
        _rate(100 * hits, hits + misses, "{:.1f}%".format),
        _rate(decoded, seconds, human_size),
        _rate(100 * decoded_by["gpu"], decoded, "{:.1f}%".format),
        *(_rate(decoded_by[engine], busy[engine], human_size) for engine in _DECODERS),
        _percentile(counts, 0.5),
        _percentile(counts, 0.99),
        human_size(now.value("process_resident_memory_bytes")),
    )


def _rate(amount: float, per: float, show: Callable[[float], str]) -> str:
    return show(amount / per) if per > 0 else _UNKNOWN


def _limits(state: MountState) -> list[str]:
    """The upper limits of the histogram buckets, in ascending order."""
    limits = {labels.get("le", "") for labels, _ in state.samples.get("gompfs_request_seconds_bucket", ())}
    return sorted(limits - {""}, key=float)


def _percentile(counts: dict[str, float], share: float) -> str:
    """The upper limit of the bucket that contains the percentile; `counts` are cumulative, by limit."""
    total = counts.get("+Inf", 0.0)
    if total <= 0:
        return _UNKNOWN
    limit = next(limit for limit, count in counts.items() if count >= share * total)
    return f"< {human_duration(float(limit))}" if limit != "+Inf" else "longer"
