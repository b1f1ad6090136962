"""`gompfs mount` and `gompfs umount`."""

from __future__ import annotations

import dataclasses
import inspect
import logging
import os
import sys
import textwrap
from typing import TYPE_CHECKING

import click

from gompfs.cli.application import EXIT_FAILURE, print_error
from gompfs.cli.parameters import MountPoint, SeveralBeforeLast, check_engine_option, complete_engine
from gompfs.errors import GompfsError, display_path
from gompfs.options import MOUNT_OPTIONS, MountOption, MountOptions

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_OPTION_COLUMNS, _HELP_COLUMNS = 25, 84  # of the list of mount options


def _complete_options(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The mount options that may follow the last comma, with their values if these are few."""
    from click.shell_completion import CompletionItem

    before, comma, begun = incomplete.rpartition(",")
    names = []
    for option in MOUNT_OPTIONS:
        names += [f"{option.name}={choice}" for choice in option.choices or ("",)] if option.kind is not bool else []
        names += [option.name] if option.kind is bool else []
    return [CompletionItem(before + comma + name) for name in names if name.startswith(begun)]


@click.command("mount")
@click.argument("archives", metavar="ARCHIVE...", cls=SeveralBeforeLast, nargs=-1, required=True, type=click.Path())
@click.argument("mountpoint", type=MountPoint())
@click.option("-f", "--foreground", is_flag=True, help="Stay in the foreground and log to stderr; Ctrl-C unmounts.")
@click.option(
    "-o",
    "mount_options",
    metavar="OPTION,...",
    multiple=True,
    shell_complete=_complete_options,
    help="Mount options, listed above.",
)
@click.option(
    "--engine",
    metavar="[auto|cpu|gpu|gpu:N,...]",
    callback=check_engine_option,
    shell_complete=complete_engine,
    help="The same as -o engine=. gpu:0,1: these GPUs share the work.",
)
@click.option("--union", "several", flag_value="union", help="Merge several archives into one tree; later ones win.")
@click.option("--subdir-per-archive", "several", flag_value="subdirs", help="Give each archive a directory of its own.")
def mount_command(
    archives: tuple[str, ...],
    mountpoint: str,
    *,
    foreground: bool,
    mount_options: tuple[str, ...],
    engine: str | None,
    several: str | None,
) -> None:
    """Mount ARCHIVE as a read-only directory at MOUNTPOINT.

    Several archives need --union or --subdir-per-archive. --union merges directories that have the same path; of other
    entries that have the same path, the one in the last archive is shown. --subdir-per-archive shows each archive in a
    directory named after its file, without .gomp. In both cases stats/NAME holds the statistics of the archive NAME.
    For mount(8) and /etc/fstab, separate the archives with colons and write \\: for a colon in a name: mount -t gompfs
    -o union old.gomp:new.gomp MOUNTPOINT.

    ARCHIVE may be a URL, as for all commands that read. The command returns when the mount is ready; a daemon serves
    the mount until it is unmounted. If MOUNTPOINT does not exist, it is created, and removed after unmounting. If it is
    not empty, its files are hidden until it is unmounted, as with mount(8). If the daemon of an earlier mount at
    MOUNTPOINT has died, that is unmounted first.
    """
    from gompfs.mount.service import mount_archives
    from gompfs.mount.system.umount import clear_dead_mounts, hides_entries

    options = MountOptions.parse(",".join(mount_options))
    if several is not None:
        options = dataclasses.replace(options, several=several)
    if len(archives) > 1 and options.several is None:
        raise click.UsageError("Several archives need --union or --subdir-per-archive.")
    if engine is not None:
        options = dataclasses.replace(options, engine=engine)
    if clear_dead_mounts(mountpoint):
        print_error(f"{display_path(mountpoint)}: the daemon of an earlier mount had died; unmounted it")
    if sys.stderr.isatty() and hides_entries(mountpoint):  # scripts get what mount(8) says: nothing
        print_error(f"{display_path(mountpoint)}: is not empty; its files are hidden until it is unmounted")
    mount_archives(archives, mountpoint, options, foreground=foreground)
    if foreground:
        # C++ threads may still compute a statistic. Returning to an interpreter that shuts down, they would abort.
        logging.shutdown()
        os._exit(0)


def _describe_option(option: MountOption) -> str:
    indented = textwrap.indent(textwrap.fill(option.help, _HELP_COLUMNS), " " * _OPTION_COLUMNS)
    return f"  {option.usage}".ljust(_OPTION_COLUMNS) + indented[_OPTION_COLUMNS:]


# Click does not wrap the lines of a paragraph that begins with \b.
mount_command.help = "\n".join(
    [f"{inspect.cleandoc(mount_command.help or '')}\n\n\b\nMount options:", *map(_describe_option, MOUNT_OPTIONS)]
)


@click.command("umount")
@click.argument("mountpoints", metavar="MOUNTPOINT...", nargs=-1, required=True, type=MountPoint())
@click.option("-l", "--lazy", is_flag=True, help="Detach the mount even if it is in use.")
@click.option("--force", is_flag=True, help="Detach the mount and abort all requests that a hung daemon left open.")
@click.pass_context
def umount_command(ctx: click.Context, mountpoints: tuple[str, ...], *, lazy: bool, force: bool) -> None:
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
    if failed:
        ctx.exit(EXIT_FAILURE)
