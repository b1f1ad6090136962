"""`gompfs mount` and `gompfs umount`."""

from __future__ import annotations

import os
import sys

from gompfs.cli.application import EXIT_FAILURE, print_error
from gompfs.cli.command_line import PATH, UsageError, argument, command, option
from gompfs.cli.parameters import check_engine_option, complete_engine
from gompfs.errors import GompfsError, display_path
from gompfs.light_types import TYPE_CHECKING, replaced
from gompfs.log import shut_down
from gompfs.options import MOUNT_OPTIONS, MountOption, MountOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_HELP = """Mount ARCHIVE as a read-only directory at MOUNTPOINT.

Several archives need --union or --subdir-per-archive. --union merges directories that have the same path; of other
entries that have the same path, the one in the last archive is shown. --subdir-per-archive shows each archive in a
directory named after its file, without .gomp. In both cases stats/NAME holds the statistics of the archive NAME.
For mount(8) and /etc/fstab, separate the archives with colons and write \\: for a colon in a name: mount -t gompfs
-o union old.gomp:new.gomp MOUNTPOINT.

ARCHIVE may be a URL, as for all commands that read. The command returns when the mount is ready; a daemon serves the
mount until it is unmounted. If MOUNTPOINT does not exist, it is created, and removed after unmounting. If it is not
empty, its files are hidden until it is unmounted, as with mount(8). If the daemon of an earlier mount at MOUNTPOINT has
died, that is unmounted first.
"""

_OPTION_COLUMNS, _HELP_COLUMNS = 25, 84  # of the list of mount options


def _complete_options(_given: Mapping[str, Any], incomplete: str) -> Iterator[str]:
    """The mount options that may follow the last comma, with their values if these are few."""
    before, comma, begun = incomplete.rpartition(",")
    names = []
    for row in MOUNT_OPTIONS:
        names += [row.name] if row.kind is bool else [f"{row.name}={choice}" for choice in row.choices or ("",)]
    return (before + comma + name for name in names if name.startswith(begun))


def _help() -> str:
    """Returns the help of the command, with a line or more for each mount option."""
    import textwrap  # here, since only help needs it

    def described(row: MountOption) -> str:
        indented = textwrap.indent(textwrap.fill(row.help, _HELP_COLUMNS), " " * _OPTION_COLUMNS)
        return f"  {row.usage}".ljust(_OPTION_COLUMNS) + indented[_OPTION_COLUMNS:]

    return "\n".join([_HELP, "\b", "Mount options:", *map(described, MOUNT_OPTIONS)])


@command("mount", help=_help)
@argument("archives", metavar="ARCHIVE...", several=True, type=PATH)
@argument("mountpoint", type=PATH)
@option("-f", "--foreground", is_flag=True, help="Stay in the foreground and log to stderr; Ctrl-C unmounts.")
@option(
    "-o",
    "mount_options",
    metavar="OPTION,...",
    multiple=True,
    complete=_complete_options,
    help="Mount options, listed above.",
)
@option(
    "--engine",
    metavar="[auto|cpu|gpu|gpu:N,...]",
    parse=check_engine_option,
    complete=complete_engine,
    help="The same as -o engine=. gpu:0,1: these GPUs share the work.",
)
@option("--union", "several", flag_value="union", help="Merge several archives into one tree; later ones win.")
@option("--subdir-per-archive", "several", flag_value="subdirs", help="Give each archive a directory of its own.")
def mount_command(
    archives: tuple[str, ...],
    mountpoint: str,
    *,
    foreground: bool,
    mount_options: tuple[str, ...],
    engine: str | None,
    several: str | None,
) -> None:
    """Mount the archives."""
    from gompfs.mount.service import mount_archives
    from gompfs.mount.system.umount import clear_dead_mounts, hides_entries

    options = MountOptions.parse(",".join(mount_options))
    if several is not None:
        options = replaced(options, several=several)
    if len(archives) > 1 and options.several is None:
        raise UsageError("Several archives need --union or --subdir-per-archive.")
    if engine is not None:
        options = replaced(options, engine=engine)
    if clear_dead_mounts(mountpoint):
        print_error(f"{display_path(mountpoint)}: the daemon of an earlier mount had died; unmounted it")
    if sys.stderr.isatty() and hides_entries(mountpoint):  # scripts get what mount(8) says: nothing
        print_error(f"{display_path(mountpoint)}: is not empty; its files are hidden until it is unmounted")
    mount_archives(archives, mountpoint, options, foreground=foreground)
    if foreground:
        # C++ threads may still compute a statistic. Returning to an interpreter that shuts down, they would abort.
        shut_down()
        os._exit(0)


@command("umount")
@argument("mountpoints", metavar="MOUNTPOINT...", several=True, type=PATH)
@option("-l", "--lazy", is_flag=True, help="Detach the mount even if it is in use.")
@option("--force", is_flag=True, help="Detach the mount and abort all requests that a hung daemon left open.")
def umount_command(mountpoints: tuple[str, ...], *, lazy: bool, force: bool) -> int:
    """Unmount each MOUNTPOINT, even if its daemon has died or hangs.

    What is not a mount of gompfs is refused; umount(8) unmounts that.
    """
    from gompfs.mount.system.umount import unmount

    failed = False
    for mountpoint in mountpoints:
        try:
            unmount(mountpoint, lazy=lazy, force=force)
        except GompfsError as error:
            print_error(str(error))
            failed = True
    return EXIT_FAILURE if failed else 0
