"""`gompfs repair`: repairs the end of an archive that is damaged or was not completely written."""

from __future__ import annotations

from pathlib import Path

from gompfs.cli.application import leave_on_sigterm
from gompfs.cli.command_line import command, option
from gompfs.cli.output import print_line
from gompfs.cli.parameters import archive_argument
from gompfs.errors import display_path


@command("repair")
@archive_argument
@option("-n", "--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
@option("--discard", is_flag=True, help="Do not save the bytes that are cut off.")
@option("-q", "--quiet", is_flag=True, help="Print only errors.")
def repair_command(archive: str, *, dry_run: bool, discard: bool, quiet: bool) -> None:
    """Repair the end of ARCHIVE after damage or an interrupted add.

    Every pack and add ends with two copies of an index; together with the blocks before them they are a generation.
    Repair writes a damaged copy again from the other one, or both again if different bytes of them are damaged. If one
    or two bytes of the header of a generation are damaged, repair writes the header again. Then repair cuts off all
    bytes after the newest intact generation and saves them in ARCHIVE.cut; `cat ARCHIVE.cut >> ARCHIVE` puts them back.
    So if the newest index is lost, ARCHIVE goes back to its state before the last add. An archive whose end is intact
    is not changed.

    Blocks are neither checked nor repaired: `gompfs verify` lists damaged blocks.
    """
    from gompfs.pack.repair import repair_archive

    leave_on_sigterm()
    name = display_path(archive)
    num_steps = 0
    for num_steps, step in enumerate(repair_archive(Path(archive), dry_run=dry_run, discard=discard), 1):  # noqa: B007
        if not quiet:
            print_line(f"{name}: {step}".encode())
    if not num_steps and not quiet:
        print_line(f"{name}: nothing to repair: the newest generation is intact, and nothing follows it".encode())
