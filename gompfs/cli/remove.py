"""`gompfs remove`: removes entries from an archive."""

from __future__ import annotations

from pathlib import Path

from gompfs.cli.application import leave_on_sigterm
from gompfs.cli.command_line import command, option
from gompfs.cli.globs import expanded
from gompfs.cli.output import print_line
from gompfs.cli.packing import COMMENT_OPTIONS, with_options
from gompfs.cli.parameters import archive_argument, opened, paths_argument
from gompfs.errors import display_path


@command("remove")
@archive_argument
@paths_argument(required=True)
@with_options(COMMENT_OPTIONS)
@option("-q", "--quiet", is_flag=True, help="Print only errors.")
def remove_command(archive: str, paths: tuple[str, ...], *, comment: str, quiet: bool) -> None:
    """Remove each PATH from ARCHIVE.

    A directory is removed with all that is in it. A PATH may be a pattern, quoted, as for a shell: '*.txt' or
    'src/**/*.c'. ARCHIVE stays readable the whole time. It does not shrink: a generation is added that does not have
    the entries, and `gompfs repack` leaves their content out.
    """
    from gompfs.pack import remove_from_archive

    leave_on_sigterm()
    with opened(archive) as before:
        found = list(expanded(before, paths))
    num_removed = remove_from_archive(Path(archive), found, comment=comment)
    if not quiet:
        entries = "1 entry" if num_removed == 1 else f"{num_removed:,} entries"
        print_line(f"{display_path(archive)}: {entries} removed".encode())
