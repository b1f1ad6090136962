"""The mount options that are passed to libfuse and fusermount3."""

from __future__ import annotations

from gompfs.options import MountOptions

SUBTYPE = "gompfs"
NO_ACLS = (
    "this kernel cannot apply ACLs, which files of the archive have or may come to have: mount without allow_other, "
    "or use Linux 4.9 or later"
)


def fuse_options(source: str, options: MountOptions) -> dict[str, str | bool]:
    """Returns the options as in `-o NAME=VALUE,NAME`, for a mount of `source`. True means an option without a value."""
    escaped = (options.fsname or source).replace("\\", "\\\\").replace(",", "\\,")
    values: dict[str, str | bool] = {
        "ro": True,
        "noexec": options.noexec,
        "subtype": SUBTYPE,
        "fsname": escaped,
        "allow_other": options.allow_other,
        # Other users' permissions must be checked. The kernel does that only with this option.
        "default_permissions": options.allow_other,
    }
    return {name: value for name, value in values.items() if value}
