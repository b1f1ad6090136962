"""`gompfs pack` and `gompfs add`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gompfs.cli.application import leave_on_sigterm
from gompfs.cli.command_line import PATH, Choice, argument, command, option
from gompfs.cli.grep_targets import is_archive
from gompfs.cli.metadata_values import parse_group, parse_mtime, parse_owner
from gompfs.cli.packing import (
    CHECK_OPTIONS,
    CODEC_OPTIONS,
    COMMENT_OPTIONS,
    DICTIONARY_OPTIONS,
    QUIET_OPTIONS,
    WORDS_HELP,
    Options,
    codec_options,
    run_packing,
    with_options,
)
from gompfs.cli.parameters import engine_option, jobs_option, json_option, parse_size_option
from gompfs.errors import OptionError, display_path
from gompfs.model import WORD_RULES
from gompfs.options import PURPOSES

if TYPE_CHECKING:
    from gompfs.options import PackOptions
    from gompfs.pack import PackReport
    from gompfs.pack.packer import ProgressCallback
    from gompfs.pack.sources import Source

_SHARED_OPTIONS: Options = [
    *CODEC_OPTIONS,
    option(
        "--exclude",
        metavar="PATTERN",
        multiple=True,
        help="Leave out entries that match PATTERN (.gitignore syntax); may be repeated.",
    ),
    option("--exclude-from", metavar="FILE", multiple=True, help="Read exclude patterns from FILE, one per line."),
    option(
        "--prefix",
        metavar="DIR",
        help="Put all entries below the directory DIR of the archive, a relative path; what would be the root becomes "
        "DIR. --exclude does not see DIR.",
    ),
    option(
        "-x", "--one-file-system", is_flag=True, help="Store mount points of other file systems as empty directories."
    ),
    option(
        "--skip-unreadable", is_flag=True, help="Leave out files that cannot be read, with a warning, and continue."
    ),
    jobs_option,
    *CHECK_OPTIONS,
    option(
        "--sort",
        type=Choice(["source", "name"]),
        default="source",
        show_default=True,
        help="Order of the SOURCEs: as given, or by name. name is refused for tar and zip, which keep their own order.",
    ),
    option(
        "--mtime",
        "mtime_ns",
        metavar="TIME",
        parse=parse_mtime,
        help="Store TIME as the modification time of all entries: @SECONDS or an ISO 8601 date.",
    ),
    option(
        "--owner",
        metavar="USER",
        parse=parse_owner,
        help="Store USER as the owner of all entries, by name or number.",
    ),
    option(
        "--group",
        metavar="GROUP",
        parse=parse_group,
        help="Store GROUP as the group of all entries, by name or number.",
    ),
    *COMMENT_OPTIONS,
    *QUIET_OPTIONS,
]


@command("pack", passes_given=True)
@argument("sources", metavar="SOURCE...", several=True, type=PATH)
@argument("archive", type=PATH)
@option("-f", "--force", is_flag=True, help="Replace ARCHIVE if it exists and is an archive.")
@option(
    "-b",
    "--block-size",
    metavar="SIZE",
    parse=parse_size_option,
    default="64K",
    show_default=True,
    help="Size of the units that decompress independently: a power of two from 16K to 1M.",
)
@option(
    "--words",
    type=Choice(WORD_RULES),
    default="identifiers",
    show_default=True,
    help=WORDS_HELP,
)
@option(
    "--for",
    "purpose",
    type=Choice(list(PURPOSES)),
    help="What matters most. size: the smallest archive with statistics (level 8, blocks of 1M, parts of 4M). speed: "
    "packing takes least (gompresso-byte, level 1). training: small files that are read whole, in random order "
    "(gompresso-byte, blocks of 32K). Other options given win. Default: a balance.",
)
@with_options([*DICTIONARY_OPTIONS, *_SHARED_OPTIONS])
@engine_option
@json_option
def pack_command(sources: tuple[str, ...], archive: str, *, force: bool, as_json: bool, **values: Any) -> None:
    """Pack SOURCEs into a new ARCHIVE, the last argument.

    A SOURCE is a directory, a file, a .tar (plain, .gz, .bz2, .xz or .zst), a .zip, or - for a tar on
    standard input. If the only SOURCE is a directory, it becomes the root of the archive. With several SOURCEs,
    each is stored under its own name. `--prefix DIR` gives one directory a name too.

    With --force, an existing archive is replaced once the new one is complete, and keeps its mode and owner. If
    ARCHIVE is a symbolic link, the file that the link points to is replaced.
    """
    _run(sources, Path(archive), {**values, "force": force}, adds=False, as_json=as_json)


@command("add")
@argument("sources", metavar="SOURCE...", several=True, type=PATH)
@argument("archive", type=PATH)
@option(
    "--checksum",
    is_flag=True,
    help="Read every file. By default, a local file is taken as unchanged, and not read, if ARCHIVE has a file with "
    "its path, size and modification time.",
)
@with_options(_SHARED_OPTIONS)
@engine_option
@json_option
def add_command(sources: tuple[str, ...], archive: str, *, as_json: bool, **values: Any) -> None:
    """Add SOURCEs to ARCHIVE, the last argument.

    A new entry replaces an existing entry with the same path. If the only SOURCE is a directory, what is in it is
    added to the root of the archive. With several SOURCEs, each is added under its own name. `--prefix DIR` adds to
    the directory DIR instead of the root, and makes it if necessary.

    Content that ARCHIVE has, under any path, is not stored again. A local file with the path, size and modification
    time of a file in ARCHIVE is not read: only its mode, owner and extended attributes are stored. With --checksum, it
    is read. Members of tar and zip archives are always read.

    ARCHIVE stays readable the whole time. If add is interrupted, readers ignore the unfinished part; run `gompfs
    repair` before the next add.
    """
    _run(sources, Path(archive), values, adds=True, as_json=as_json)


def _run(specs: Sequence[str], target: Path, values: dict[str, Any], *, adds: bool, as_json: bool) -> None:
    """Pack the sources, or add them to the archive at `target`, and print the report."""
    from gompfs.engine import select_engine
    from gompfs.pack import add_to_archive, check_target, pack_archive

    leave_on_sigterm()
    _check_order(specs, target)
    check_target(specs, target)
    options = _pack_options(values)
    sources = _open_sources(specs, values)
    engine = select_engine(values["engine"], values["jobs"])

    def total_size() -> int | None:
        sizes = [source.total_size for source in sources]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def pack(progress: ProgressCallback | None) -> PackReport:
        if adds:
            return add_to_archive(target, sources, options, engine=engine, progress=progress)
        return pack_archive(sources, target, options, engine=engine, progress=progress)

    notes = [note] if adds and (note := _note_on_root(specs, values)) else []
    run_packing(target, total_size, pack, quiet=values["quiet"], as_json=as_json, notes=notes)


def _check_order(specs: Sequence[str], target: Path) -> None:
    """Raises OptionError if the archive was named first, and not last."""
    if not is_archive(str(target)) and (target.is_dir() or (target.is_file() and is_archive(specs[0]))):
        what = "is a directory" if target.is_dir() else "is not an archive"
        raise OptionError(f"{what}; ARCHIVE is the last argument, after the SOURCEs", path=target)


def _note_on_root(specs: Sequence[str], values: dict[str, Any]) -> str:
    """Returns a line about where a directory went that was added alone; an empty one if that needs no words."""
    if len(specs) > 1 or values["prefix"] is not None or not os.path.isdir(specs[0]):
        return ""
    name = display_path(os.path.basename(os.path.realpath(specs[0])))
    return f"what is in {display_path(specs[0])} is now in the root of the archive; --prefix {name} makes a directory"


def _pack_options(values: dict[str, Any]) -> PackOptions:
    from gompfs.options import PackOptions

    same_names = ("jobs", "mtime_ns", "owner", "group", "block_size", "words", "force", "checksum", "comment")
    fields = {name: values[name] for name in same_names if name in values} | codec_options(values)
    fields["check"] = not values["no_check"]
    purpose = values.get("purpose")
    for name in PURPOSES.get(purpose or "", ()):
        if name not in values["given"]:
            fields.pop(name, None)
    return PackOptions.for_purpose(purpose, **fields)


def _open_sources(specs: Sequence[str], values: dict[str, Any]) -> list[Source]:
    from gompfs.pack import open_sources

    how = ("sort", "exclude", "exclude_from", "one_file_system", "skip_unreadable", "prefix")
    return open_sources(specs, **{name: values[name] for name in how})
