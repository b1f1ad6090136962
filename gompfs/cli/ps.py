"""`gompfs ps`: lists mounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gompfs.cli.command_line import command
from gompfs.cli.output import human_duration, human_size, print_json, print_table
from gompfs.cli.parameters import json_option
from gompfs.errors import display_path

if TYPE_CHECKING:
    from gompfs.mount.system.observe import MountState

_HEADINGS = ("archive", "mountpoint", "pid", "engine", "cache", "hits", "uptime", "state")
_UNKNOWN = "-"
_MAX_DIGITS = 20


@command("ps")
@json_option
def ps_command(*, as_json: bool) -> None:
    """List all gompfs mounts.

    Each mount is shown with its archive, mount point, daemon, engine, cache, hit rate and uptime. The figures come from
    the file stats/metrics.json of each mount. Where they are missing, the state says why: stats=off (mounted with this
    option), dead or no answer (the daemon died or hangs), or not permitted (another user's mount without allow_other).
    """
    from gompfs.mount.system.observe import observe_mounts

    states = observe_mounts()
    if as_json:
        print_json([mount_facts(state) for state in states])
    else:
        print_table(_HEADINGS, [_row(mount_facts(state)) for state in states], num_left=2)


def mount_facts(state: MountState) -> dict[str, Any]:
    """The facts of one mount by JSON key; sizes in bytes, uptime in seconds, None for unknown values."""
    from gompfs.mount.system.observe import SERVING

    facts: dict[str, Any] = {
        "archive": state.label("archive") or state.mount.source,
        "mountpoint": state.mount.mountpoint,
        "state": state.state,
    }
    names = ("cache_bytes", "cache_capacity_bytes", "cache_hits_total", "cache_misses_total", "uptime_seconds")
    values = {name.removesuffix("_total"): round(state.value(f"gompfs_{name}")) for name in names}
    return {
        **facts,
        "pid": _number(state.label("pid")),
        "engine": state.label("engine"),
        "generation": _number(state.label("generation")),
        **(values if state.state == SERVING else dict.fromkeys(values)),
    }


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) <= _MAX_DIGITS else None


def _row(facts: dict[str, Any]) -> tuple[str, ...]:
    start = (display_path(facts["archive"]), display_path(facts["mountpoint"]))
    if facts["cache_bytes"] is None:
        return (*start, *(_UNKNOWN,) * 5, facts["state"])
    hits, misses = facts["cache_hits"], facts["cache_misses"]
    return (
        *start,
        _UNKNOWN if facts["pid"] is None else str(facts["pid"]),
        facts["engine"] or _UNKNOWN,
        f"{human_size(facts['cache_bytes'])} of {human_size(facts['cache_capacity_bytes'])}",
        f"{100 * hits / (hits + misses):.1f}%" if hits + misses else _UNKNOWN,
        human_duration(facts["uptime_seconds"]),
        facts["state"],
    )
