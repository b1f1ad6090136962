"""`gompfs mount` and `gompfs umount`."""

from __future__ import annotations

import dataclasses
import logging
import os

import click

from gompfs.cli.application import EXIT_FAILURE, print_error
from gompfs.cli.parameters import MountPoint, check_engine_option, complete_engine
from gompfs.errors import GompfsError, display_path


@click.command("mount")
@click.argument("archives", metavar="ARCHIVE...", nargs=-1, required=True, type=click.Path())
@click.argument("mountpoint", type=MountPoint())
@click.option("-f", "--foreground", is_flag=True, help="Stay in the foreground, log to stderr; ^C unmounts.")
@click.option("-o", "mount_options", metavar="OPTION,...", multiple=True, help="Mount options, see above.")
@click.option(
    "--engine",
    metavar="[auto|cpu|gpu|gpu:N,...|reference]",
    callback=check_engine_option,
    shell_complete=complete_engine,
    help="Who decodes; auto is the default.",
)
@click.option("--union", "several", flag_value="union", help="Show several archives as one tree; later ones win.")
@click.option("--subdir-per-archive", "several", flag_value="subdirs", help="Show each archive in a directory.")
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

    Several archives are shown as a union, in which directories are merged, and of other entries that have the same path
    that of the latest archive is there; or each in a directory with the name of its file without .gomp. The statistics
    of each are then in stats/NAME. mount(8) and /etc/fstab have options for that, and a colon between the archives, \\:
    for one in a name: mount -t gompfs -o union old.gomp:new.gomp MOUNTPOINT.

    Returns as soon as the mount answers; a daemon serves it until it is unmounted. If MOUNTPOINT does not exist, it is
    made, and removed again after unmounting. A mount there whose daemon has died is unmounted first.

    \b
    Mount options:
      engine=auto|cpu|gpu    who decodes and traverses grammars
      subdir=PATH            show this directory of the archive; statistics are of all of it
      cache_size=256M        memory for decoded blocks
      passthrough_size=SIZE  memory for whole files, of 1M or more, that are decoded when they are opened,
                             for the kernel to read by itself: needs root and Linux 6.9, and makes
                             many small files slower (0: off, the default)
      decode_ahead=SIZE      how much is decoded ahead of who goes through a file (8M, on a GPU 32M)
      readahead=4M           how far the kernel reads ahead, where root mounts
      gpu_memory=SIZE        how much a GPU engine may take (half of what is free)
      gpu_resident=auto      keep compressed blocks in GPU memory as long as it lasts; also: on, off
      verify                 check decoded bytes against their checksums too
      stats=visible          list the directory stats in the root; also: hidden (the default), off
      stats=public           let all users read all statistics, also those of files that they may not read;
                             may be given beside stats=visible
      union                  the same as --union, for mount(8) and /etc/fstab
      subdir_per_archive     the same as --subdir-per-archive
      allow_other            let other users in, with the permissions of the files
      follow                 show what the archive's file holds when it is replaced or added to
      uid=N, gid=N, umask=N  show other owners and modes than those stored
      api=low                talk to the kernel directly; high: go through libfuse 3, which is slower,
                             on systems where low fails
      auto_unmount           unmount when the daemon is killed
      fsname=NAME            the name of the source in /proc/mounts
    """
    from gompfs.mount.service import mount_archives
    from gompfs.mount.umount import clear_dead_mounts
    from gompfs.options import MountOptions

    options = MountOptions.parse(",".join(mount_options))
    if several is not None:
        options = dataclasses.replace(options, several=several)
    if len(archives) > 1 and options.several is None:
        raise click.UsageError("Several archives need --union or --subdir-per-archive.")
    if engine is not None:
        options = dataclasses.replace(options, engine=engine)
    if clear_dead_mounts(mountpoint):
        print_error(f"{display_path(mountpoint)}: the daemon of an earlier mount here had died; that is cleared up")
    mount_archives(archives, mountpoint, options, foreground=foreground)
    if foreground:
        # A statistic may still be computed, in C++: when that came back to an interpreter that ends, it would abort.
        logging.shutdown()
        os._exit(0)


@click.command("umount")
@click.argument("mountpoints", metavar="MOUNTPOINT...", nargs=-1, required=True, type=MountPoint())
@click.option("-l", "--lazy", is_flag=True, help="Detach a mount that is still in use.")
@click.option("--force", is_flag=True, help="Detach it, and end all requests that a hanging daemon has not answered.")
@click.pass_context
def umount_command(ctx: click.Context, mountpoints: tuple[str, ...], *, lazy: bool, force: bool) -> None:
    """Unmount what is mounted at each MOUNTPOINT, also where the daemon has died or hangs."""
    from gompfs.mount.umount import unmount

    failed = False
    for mountpoint in mountpoints:
        try:
            unmount(mountpoint, lazy=lazy, force=force)
        except GompfsError as error:
            print_error(str(error))
            failed = True
    if failed:
        ctx.exit(EXIT_FAILURE)
