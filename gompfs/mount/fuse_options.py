"""The options that libfuse and fusermount3 mount with."""

from __future__ import annotations

from gompfs.options import MountOptions

SUBTYPE = "gompfs"


def fuse_options(source: str, options: MountOptions) -> dict[str, str | bool]:
    """Names and values as in `-o NAME=VALUE,NAME`, for a mount of `source`; True is a name without a value."""
    escaped = (options.fsname or source).replace("\\", "\\\\").replace(",", "\\,")
    values: dict[str, str | bool] = {
        "ro": True,
        "subtype": SUBTYPE,
        "fsname": escaped,
        "allow_other": options.allow_other,
        # Permissions must be checked for others, and the kernel does that only when told to.
        "default_permissions": options.allow_other,
    }
    return {name: value for name, value in values.items() if value}
