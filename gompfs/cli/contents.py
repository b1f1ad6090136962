"""`gompfs cat` and `gompfs extract`: read files without a mount."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence

from gompfs.cli import OUTPUT_NAME
from gompfs.cli.application import EXIT_FAILURE, leave_on_sigterm, print_error
from gompfs.cli.command_line import DIRECTORY, BadValueError, command, option
from gompfs.cli.globs import expanded
from gompfs.cli.parameters import archive_argument, engine_option, jobs_option, opened, paths_argument, resolve_all
from gompfs.cli.progress import progress_bar
from gompfs.errors import EntryTypeError, GompfsError, display_path, is_disk_error
from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from gompfs.archive import Archive

_READ_SIZE = 8 << 20
_MAX_VECTORS = 512


@command("cat")
@archive_argument
@paths_argument(required=True)
@option("--verify", is_flag=True, help="Also compare decoded bytes with their checksums.")
@jobs_option
@engine_option
def cat_command(archive: str, paths: tuple[str, ...], *, verify: bool, jobs: int, engine: str) -> int:
    """Write each file PATH in ARCHIVE to standard output.

    A PATH may be a pattern, quoted, as for a shell: '*.txt' or 'src/**/*.c'.
    """
    failed = False
    with opened(archive, engine=engine, num_threads=jobs, verify=verify) as opened_archive:
        for path in expanded(opened_archive, paths):
            try:
                _write_content(opened_archive, path)
            except GompfsError as error:
                error.path = error.path or display_path(path)
                print_error(str(error))
                failed = True
            except OSError as error:
                if not is_disk_error(error) or error.filename == OUTPUT_NAME:
                    raise
                print_error(f"{display_path(archive)}: {display_path(path)}: {error.strerror}")
                failed = True
    return EXIT_FAILURE if failed else 0


def _write_content(archive: Archive, path: str) -> None:
    inode = archive.resolve(path, follow=True)
    if not stat.S_ISREG(inode.mode):
        kind = "a directory" if stat.S_ISDIR(inode.mode) else "not a regular file"
        raise EntryTypeError(f"is {kind}", archive=archive.path, path=path)
    sys.stdout.flush()
    output = sys.stdout.fileno()
    for file_offset in range(0, inode.size, _READ_SIZE):
        size = min(_READ_SIZE, inode.size - file_offset)
        write_all(output, archive.read_pieces(inode.ino, file_offset, size))


def write_all(descriptor: int, pieces: Sequence[memoryview]) -> None:
    """Write the pieces in order, up to 512 in one system call."""
    position = 0
    pieces = list(pieces)
    while position < len(pieces):
        try:
            written = os.writev(descriptor, pieces[position : position + _MAX_VECTORS])
        except OSError as error:
            error.filename = OUTPUT_NAME
            raise
        while position < len(pieces) and written >= len(pieces[position]):
            written -= len(pieces[position])
            position += 1
        if written:
            pieces[position] = pieces[position][written:]


def _check_directory(value: str) -> str:
    if value == "-":
        raise BadValueError(
            "extract writes files, not to standard output; use cat for files, or tar on a mount; "
            "for a directory named -, write ./-"
        )
    return value


@command("extract")
@archive_argument
@paths_argument(required=False)
@option(
    "-C",
    "--directory",
    default=".",
    show_default=True,
    type=DIRECTORY,
    parse=_check_directory,
    help="Directory to extract to; created if it does not exist.",
)
@option("-q", "--quiet", is_flag=True, help="Do not show progress.")
@option("--verify", is_flag=True, help="Also compare decoded bytes with their checksums.")
@jobs_option
@engine_option
def extract_command(
    archive: str,
    paths: tuple[str, ...],
    *,
    directory: str,
    quiet: bool,
    verify: bool,
    jobs: int,
    engine: str,
) -> int:
    """Extract all of ARCHIVE, or each PATH with everything below it.

    Files are written to the current directory, or to the one given with -C. A PATH may be a pattern, quoted, as for a
    shell: '*.txt' or 'src/**/*.c'.

    Modes, times, symlinks, hard links, holes and extended attributes are restored; for root, owners and setuid
    bits too. A file that is damaged or cannot be written is skipped with an error message, and the rest is
    extracted, unless the file system is full. Existing files are replaced, existing directories are merged.
    """
    from pathlib import Path

    from gompfs.archive.extract import Extractor

    leave_on_sigterm()
    with opened(archive, engine=engine, num_threads=jobs, verify=verify) as opened_archive:
        wanted = tuple(expanded(opened_archive, paths))
        found = resolve_all(opened_archive, wanted)
        if paths and not found:
            return EXIT_FAILURE

        def total_size() -> int | None:
            return None if paths else opened_archive.index.totals()[1]

        with progress_bar(os.path.basename(archive), total_size, quiet=quiet) as bar:
            extractor = Extractor(
                opened_archive,
                Path(directory),
                progress=bar.advance if bar else None,
                on_error=lambda error: print_error(str(error)),
                on_warning=lambda error: print_error(f"warning: {error}"),
            )
            extractor.extract([os.fsencode(path) for path in found])
    return EXIT_FAILURE if extractor.num_errors or len(found) < len(wanted) else 0
