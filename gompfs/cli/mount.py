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
@click.option("-f", "--foreground", is_flag=True, help="Stay in the foreground and log to stderr; Ctrl-C unmounts.")
@click.option("-o", "mount_options", metavar="OPTION,...", multiple=True, help="Mount options, listed above.")
@click.option(
    "--engine",
    metavar="[auto|cpu|gpu|gpu:N,...|reference]",
    callback=check_engine_option,
    shell_complete=complete_engine,
    help="Decoder to use; the same as -o engine=.",
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

    The command returns when the mount is ready; a daemon serves the mount until it is unmounted. If MOUNTPOINT does
    not exist, it is created, and removed after unmounting. If the daemon of an earlier mount at MOUNTPOINT has died,
    that mount is unmounted first.

    \b
    Mount options:
      engine=auto|cpu|gpu    engine that decodes blocks and computes statistics
      subdir=PATH            show this directory of the archive as the root; statistics still cover all of it
      cache_size=256M        memory for decoded blocks
      passthrough_size=SIZE  memory for files of 1M and more that are decoded whole when they are opened, so
                             that the kernel reads them without the daemon; needs root and Linux 6.9, and
                             slows down mounts of many small files (default 0: off)
      decode_ahead=SIZE      how far to decode ahead of a sequential reader (default 8M, with a GPU 32M)
      readahead=4M           how far the kernel reads ahead; takes effect only if root mounts
      gpu_memory=SIZE        maximum memory to use on each GPU (default: half of the free memory)
      gpu_resident=auto      keep compressed blocks in GPU memory: as many as fit (auto), all (on), none (off)
      verify                 also compare decoded bytes with their checksums
      stats=hidden           hidden: the directory stats can be opened but is not listed in the root;
                             visible: it is listed; off: it does not exist
      stats=public           let all users read all statistics, even of files that they may not read; may be
                             combined with stats=visible
      union                  the same as --union, for mount(8) and /etc/fstab
      subdir_per_archive     the same as --subdir-per-archive
      allow_other            let other users access the mount; file permissions are enforced
      follow                 show the new content when the archive is replaced or added to
      uid=N, gid=N, umask=N  override the stored owners and restrict the stored modes
      api=low                low: talk to /dev/fuse directly; high: go through libfuse 3; slower, for systems
                             where low fails
      auto_unmount           unmount when the daemon is killed
      fsname=NAME            source name to show in /proc/mounts
    """
    from gompfs.mount.service import mount_archives
    from gompfs.mount.system.umount import clear_dead_mounts
    from gompfs.options import MountOptions

    options = MountOptions.parse(",".join(mount_options))
    if several is not None:
        options = dataclasses.replace(options, several=several)
    if len(archives) > 1 and options.several is None:
        raise click.UsageError("Several archives need --union or --subdir-per-archive.")
    if engine is not None:
        options = dataclasses.replace(options, engine=engine)
    if clear_dead_mounts(mountpoint):
        print_error(f"{display_path(mountpoint)}: the daemon of an earlier mount had died; unmounted it")
    mount_archives(archives, mountpoint, options, foreground=foreground)
    if foreground:
        # C++ threads may still compute a statistic. Returning to an interpreter that shuts down, they would abort.
        logging.shutdown()
        os._exit(0)


@click.command("umount")
@click.argument("mountpoints", metavar="MOUNTPOINT...", nargs=-1, required=True, type=MountPoint())
@click.option("-l", "--lazy", is_flag=True, help="Detach the mount even if it is in use.")
@click.option("--force", is_flag=True, help="Detach the mount and abort all requests that a hung daemon left open.")
@click.pass_context
def umount_command(ctx: click.Context, mountpoints: tuple[str, ...], *, lazy: bool, force: bool) -> None:
    """Unmount each MOUNTPOINT, even if the daemon of the mount has died or hangs."""
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
