"""`gompfs pack` and `gompfs add`."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gompfs.cli.application import leave_on_sigterm, print_error
from gompfs.cli.metadata_values import parse_group, parse_mtime, parse_owner
from gompfs.cli.output import human_size, print_json, print_line, ratio
from gompfs.cli.parameters import Decorated, IntegerRange, engine_option, json_option, parse_size_option
from gompfs.cli.progress import progress_bar
from gompfs.errors import OptionError, display_path

if TYPE_CHECKING:
    from gompfs.options import PackOptions
    from gompfs.pack import PackProgress, PackReport
    from gompfs.pack.sources import Source

_SHARED_OPTIONS: list[Callable[[Any], Any]] = [
    click.option(
        "--codec",
        type=click.Choice(["gompresso-bit", "gompresso-byte", "stored"]),
        default="gompresso-bit",
        show_default=True,
        help="gompresso-bit compresses better, gompresso-byte decodes faster, stored does not compress.",
    ),
    click.option(
        "-l",
        "--level",
        type=IntegerRange(1, 9),
        default=6,
        show_default=True,
        help="Compression level: 1 is fastest, 9 is smallest.",
    ),
    click.option(
        "--no-dependency-elimination",
        is_flag=True,
        help="Let matches depend on each other: slightly smaller, slower to decode on a GPU.",
    ),
    click.option(
        "--exclude",
        metavar="PATTERN",
        multiple=True,
        help="Leave out entries that match PATTERN (.gitignore syntax); may be repeated.",
    ),
    click.option(
        "--exclude-from", metavar="FILE", multiple=True, help="Read exclude patterns from FILE, one per line."
    ),
    click.option(
        "-x", "--one-file-system", is_flag=True, help="Store mount points of other file systems as empty directories."
    ),
    click.option(
        "--skip-unreadable", is_flag=True, help="Leave out files that cannot be read, with a warning, and continue."
    ),
    click.option(
        "-j", "--jobs", type=IntegerRange(0), default=0, help="Number of threads; 0, the default, is one per core."
    ),
    click.option("--no-stats", is_flag=True, help="Do not store the grammar that the statistics are computed from."),
    click.option(
        "--grammar",
        "grammar_builder",
        type=click.Choice(["repair", "sequitur"]),
        default="repair",
        show_default=True,
        help="Algorithm that builds the grammar for the statistics.",
    ),
    click.option(
        "--sort",
        type=click.Choice(["source", "name"]),
        default="source",
        show_default=True,
        help="Order of the SOURCEs: as given, or by name. name is refused for tar and zip, which keep their own order.",
    ),
    click.option(
        "--mtime",
        "mtime_ns",
        metavar="TIME",
        callback=parse_mtime,
        help="Store TIME as the modification time of all entries: @SECONDS or an ISO 8601 date.",
    ),
    click.option(
        "--owner",
        metavar="USER",
        callback=parse_owner,
        help="Store USER as the owner of all entries, by name or number.",
    ),
    click.option(
        "--group",
        metavar="GROUP",
        callback=parse_group,
        help="Store GROUP as the group of all entries, by name or number.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Do not print progress or a summary."),
]


def _shared_options(function: Decorated) -> Decorated:
    for option in reversed(_SHARED_OPTIONS):
        function = option(function)
    return function


@click.command("pack")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=click.Path())
@click.argument("archive", type=click.Path())
@click.option("-f", "--force", is_flag=True, help="Replace ARCHIVE if it exists and is an archive.")
@click.option(
    "-b",
    "--block-size",
    metavar="SIZE",
    callback=parse_size_option,
    default="64K",
    show_default=True,
    help="Size of the units that decompress independently: a power of two from 16K to 1M.",
)
@click.option(
    "--words",
    type=click.Choice(["whitespace", "letters", "identifiers"]),
    default="whitespace",
    show_default=True,
    help="Definition of a word for statistics: text between whitespace; a run of letters, digits and apostrophes; or a "
    "run of ASCII letters and digits, _ and bytes from 0x80 on (only in format version 2).",
)
@_shared_options
@engine_option
@json_option
def pack_command(
    sources: tuple[str, ...], archive: str, *, force: bool, as_json: bool, **values: Any
) -> None:
    """Pack SOURCEs into a new ARCHIVE.

    A SOURCE is a directory, a file, a .tar (plain, .gz, .bz2, .xz or .zst), a .zip, or - for a tar on
    standard input. If the only SOURCE is a directory, it becomes the root of the archive. With several SOURCEs,
    each is stored under its own name.

    With --force, an existing archive is replaced once the new one is complete, and keeps its mode and owner. If
    ARCHIVE is a symbolic link, the file that the link points to is replaced.
    """
    _run(sources, Path(archive), {**values, "force": force}, adds=False, as_json=as_json)


@click.command("add")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=click.Path())
@click.argument("archive", type=click.Path())
@_shared_options
@engine_option
@json_option
def add_command(sources: tuple[str, ...], archive: str, *, as_json: bool, **values: Any) -> None:
    """Add SOURCEs to ARCHIVE. A new entry replaces an existing entry with the same path.

    ARCHIVE stays readable the whole time. If add is interrupted, readers ignore the unfinished part; run `gompfs
    repair` before the next add.
    """
    _run(sources, Path(archive), values, adds=True, as_json=as_json)


def _run(specs: Sequence[str], target: Path, values: dict[str, Any], *, adds: bool, as_json: bool) -> None:
    """Pack the sources, or add them to the archive at `target`, and print the report."""
    from gompfs.engine import select_engine
    from gompfs.pack import add_to_archive, check_target, pack_archive

    leave_on_sigterm()
    check_target(specs, target)
    options = _pack_options(values)
    sources = _open_sources(specs, values)
    engine = select_engine(values["engine"], values["jobs"])

    def total_size() -> int | None:
        sizes = [source.total_size for source in sources]
        return None if None in sizes else sum(size or 0 for size in sizes)

    with progress_bar(target.name, total_size, quiet=values["quiet"]) as bar:

        def advance(state: PackProgress) -> None:
            if bar is not None:
                bar.update(state.size)

        progress = advance if bar else None
        if adds:
            report = add_to_archive(target, sources, options, engine=engine, progress=progress)
        else:
            report = pack_archive(sources, target, options, engine=engine, progress=progress)
    for warning in report.warnings:
        print_error(f"warning: {warning}")
    if as_json:
        print_json({**dataclasses.asdict(report), "ratio": round(ratio(report.size, report.added_size), 4)})
    elif not values["quiet"]:
        _print_summary(target, report)


def _pack_options(values: dict[str, Any]) -> PackOptions:
    from gompfs.codec import Codec, CodecOptions
    from gompfs.options import PackOptions

    codec = CodecOptions(
        Codec.from_label(values["codec"]), values["level"], not values["no_dependency_elimination"]
    )
    same_names = ("jobs", "grammar_builder", "mtime_ns", "owner", "group", "block_size", "words", "force")
    same = {name: values[name] for name in same_names if name in values}
    return PackOptions(codec=codec, stats=not values["no_stats"], **same)


def _open_sources(specs: Sequence[str], values: dict[str, Any]) -> list[Source]:
    from gompfs.pack import open_source

    if values["sort"] == "name":
        specs = sorted(specs, key=lambda spec: os.path.basename(os.path.abspath(os.fsencode(spec))))
    sources = [
        open_source(
            spec,
            alone=len(specs) == 1,
            exclude=values["exclude"],
            exclude_from=values["exclude_from"],
            one_file_system=values["one_file_system"],
            skip_unreadable=values["skip_unreadable"],
        )
        for spec in specs
    ]
    for source in sources:
        if values["sort"] == "name" and not source.sorted:
            raise OptionError(
                "--sort name is not possible: the entries of this source keep their own order", path=source.name
            )
    return sources


def _print_summary(target: Path, report: PackReport) -> None:
    """Print what was packed, in one to three lines."""
    rate = report.size / report.seconds if report.seconds else 0.0
    sizes = f"{human_size(report.size)} -> {human_size(report.added_size)}"
    speed = f"{report.seconds:.1f} s, {human_size(rate)}/s"
    factor = f"ratio {ratio(report.size, report.added_size):.2f}"
    lines = [f"{display_path(target)}: {report.num_entries:,} entries, {sizes}, {factor}, {speed}"]
    if report.added_size != report.archive_size:
        lines.append(f"  the archive now has {human_size(report.archive_size)}")
    if report.grammar_size:
        lines.append(f"  of which grammar for statistics: {human_size(report.grammar_size)}")
    if report.num_duplicates:
        lines.append(f"  {report.num_duplicates:,} duplicate files, stored once")
    for line in lines:
        print_line(line.encode())
