"""Callbacks that parse the values of --mtime, --owner and --group."""

from __future__ import annotations

from datetime import UTC, datetime

from gompfs.cli.command_line import BadValueError
from gompfs.model import MAX_TIME_NS

_SECOND_NS = 1_000_000_000
_MAX_ID = (1 << 32) - 2


def parse_mtime(value: str | None) -> int | None:
    """Nanoseconds since the epoch, from `@SECONDS` or an ISO 8601 date (UTC if it names no time zone)."""
    if value is None:
        return None
    try:
        time_ns = _time_ns(value)
    except ValueError:
        raise BadValueError(f"{value!r} is neither @SECONDS nor a date like 2026-01-31T12:00:00.") from None
    if abs(time_ns) > MAX_TIME_NS:
        raise BadValueError(f"{value!r} is not between the years 1678 and 2261.")
    return time_ns


def _time_ns(value: str) -> int:
    if value.startswith("@"):
        seconds, _, fraction = value[1:].partition(".")
        return int(seconds) * _SECOND_NS + int(fraction[:9].ljust(9, "0"))
    time = datetime.fromisoformat(value)
    time = time.replace(tzinfo=time.tzinfo or UTC)
    return int(time.replace(microsecond=0).timestamp()) * _SECOND_NS + time.microsecond * 1000


def parse_owner(value: str | None) -> int | None:
    """The number of a user, given by number or by its name on this machine."""
    import pwd

    if value is None or _is_number(value):
        return _id_number(value)
    try:
        return pwd.getpwnam(value).pw_uid
    except KeyError:
        raise BadValueError(f"there is no user {value!r} on this machine; give a number instead.") from None


def parse_group(value: str | None) -> int | None:
    """The number of a group, given by number or by its name on this machine."""
    import grp

    if value is None or _is_number(value):
        return _id_number(value)
    try:
        return grp.getgrnam(value).gr_gid
    except KeyError:
        raise BadValueError(f"there is no group {value!r} on this machine; give a number instead.") from None


def _is_number(value: str) -> bool:
    return value.isascii() and value.isdigit()


def _id_number(value: str | None) -> int | None:
    if value is None:
        return None
    if int(value) > _MAX_ID:
        raise BadValueError(f"{value} is too large.")
    return int(value)
