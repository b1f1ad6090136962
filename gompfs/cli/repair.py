"""`gompfs repair`: makes an archive whole whose end is damaged or was never finished."""

from __future__ import annotations

from pathlib import Path

import click

from gompfs.cli.application import leave_on_sigterm
from gompfs.cli.output import print_line
from gompfs.cli.parameters import archive_argument
from gompfs.errors import display_path


@click.command("repair")
@archive_argument
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@click.option("--discard", is_flag=True, help="Do not keep what is cut off.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def repair_command(archive: str, *, dry_run: bool, discard: bool, quiet: bool) -> None:
    """Mend the end of ARCHIVE after an interrupted add, or after damage.

    A generation whose index is whole, and whose footer is damaged or was not written, gets its footer. What then
    follows the newest whole generation is moved to the file ARCHIVE.cut and cut off; `cat ARCHIVE.cut >> ARCHIVE`
    takes that back. So if the index of the newest generation is damaged, ARCHIVE is what it was before the last add.
    An archive in which nothing of that kind is wrong stays as it is.

    Blocks are neither checked nor mended: `gompfs verify` lists those that are damaged.
    """
    from gompfs.pack.repair import repair_archive

    leave_on_sigterm()
    name = display_path(archive)
    num_steps = 0
    for num_steps, step in enumerate(repair_archive(Path(archive), dry_run=dry_run, discard=discard), 1):  # noqa: B007
        if not quiet:
            print_line(f"{name}: {step}".encode())
    if not num_steps and not quiet:
        print_line(f"{name}: nothing to repair: its newest generation is whole, and nothing follows it".encode())
