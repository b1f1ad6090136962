"""What the commands that pack have in common: options, progress, and the summary."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gompfs.cli.application import print_error
from gompfs.cli.command_line import Choice, IntegerRange, option
from gompfs.cli.output import human_size, print_json, print_line, ratio
from gompfs.cli.parameters import parse_size_option
from gompfs.cli.progress import progress_bar
from gompfs.errors import display_path

if TYPE_CHECKING:
    from gompfs.cli.command_line import Decorated
    from gompfs.pack import PackReport
    from gompfs.pack.packer import ProgressCallback

Options = list[Callable[[Any], Any]]


def parse_dictionary_size(value: str | None) -> int | None:
    """Callback of the option --dictionary: a number of bytes, or `none`."""
    return 0 if value == "none" else parse_size_option(value)


CODEC_OPTIONS: Options = [
    option(
        "--codec",
        type=Choice(["gompresso-tadoc", "gompresso-bit", "gompresso-byte", "stored"]),
        default="gompresso-tadoc",
        show_default=True,
        help="gompresso-tadoc stores text as grammars, which statistics read, and other files as gompresso-bit does. "
        "gompresso-bit compresses all files as bytes. gompresso-byte decodes faster, and compresses less. stored does "
        "not compress.",
    ),
    option(
        "-l",
        "--level",
        type=IntegerRange(1, 8),
        default=6,
        show_default=True,
        help="Compression level: 1 is fastest, 8 is smallest.",
    ),
    option(
        "--dependency-elimination/--no-dependency-elimination",
        default=False,
        help="Choose matches that do not depend on each other: 1 to 5% faster to decode on a GPU, up to 2% larger, and "
        "up to 6% at level 8, and 6 and 7 of gompresso-byte. The CPU encodes then, also with the engine gpu. Default: "
        "off.",
    ),
]
DICTIONARY_OPTIONS: Options = [
    option(
        "--dictionary",
        "dictionary_size",
        metavar="SIZE|none",
        parse=parse_dictionary_size,
        help="Size of the dictionary of gompresso-bit: bytes from which all its blocks may copy, up to 1M. Default: "
        "1M; 256K for less than 16 MiB that no grammar has; none for less than 4 MiB, if it would not save space, or "
        "with the engine gpu, which cannot encode with one.",
    ),
]
CHECK_OPTIONS: Options = [
    option(
        "--no-check",
        is_flag=True,
        help="Do not read the archive back: by default, everything that was written is decoded and compared with "
        "checksums before the archive appears.",
    ),
]
COMMENT_OPTIONS: Options = [
    option(
        "--comment",
        metavar="TEXT",
        default="",
        help="Note TEXT, of at most 4096 bytes, with the time and the command; gompfs info shows it.",
    ),
]
WORDS_HELP = (
    "Definition of a word for statistics: text between whitespace; a run of letters, digits and apostrophes; or a run "
    "of ASCII letters and digits, _ and bytes from 0x80 on."
)
QUIET_OPTIONS: Options = [
    option("-q", "--quiet", is_flag=True, help="Do not print progress or a summary."),
]


def with_options(options: Options) -> Callable[[Decorated], Decorated]:
    """Returns a decorator that gives a command these options, in this order."""

    def decorate(function: Decorated) -> Decorated:
        for add_option in reversed(options):
            function = add_option(function)
        return function

    return decorate


def codec_options(values: dict[str, Any]) -> dict[str, Any]:
    """Returns what CODEC_OPTIONS and DICTIONARY_OPTIONS say, as fields of PackOptions."""
    from gompfs.codec import Codec

    same_names = ("level", "dependency_elimination", "dictionary_size")
    return {"codec": Codec.from_label(values["codec"]), **{name: values[name] for name in same_names if name in values}}


def run_packing(
    target: Path,
    total_size: Callable[[], int | None],
    run: Callable[[ProgressCallback | None], PackReport],
    *,
    quiet: bool,
    as_json: bool,
    notes: Sequence[str] = (),
) -> None:
    """Call `run`, which packs, show its progress, and print its report, with `notes`.

    `total_size` is called if progress is shown.
    """
    with progress_bar(target.name, total_size, quiet=quiet) as bar:
        report = run((lambda state: bar.update(state.size)) if bar is not None else None)
    for warning in report.warnings:
        print_error(f"warning: {warning}")
    if as_json:
        print_json({**dataclasses.asdict(report), "ratio": round(ratio(report.size, report.added_size), 4)})
    elif not quiet:
        _print_summary(target, report, notes)


def _print_summary(target: Path, report: PackReport, notes: Sequence[str]) -> None:
    """Print what was packed, in a few lines."""
    rate = report.size / report.seconds if report.seconds else 0.0
    sizes = f"{human_size(report.size)} -> {human_size(report.added_size)}"
    speed = f"{report.seconds:.1f} s, {human_size(rate)}/s"
    factor = f"ratio {ratio(report.size, report.added_size):.2f}"
    entries = _counted(report.num_entries, "entry", "entries")
    lines = [f"{display_path(target)}: {entries}, {sizes}, {factor}, {speed}"]
    if report.added_size != report.archive_size:
        lines.append(f"  the archive now has {human_size(report.archive_size)}")
    if report.num_duplicates:
        lines.append(f"  {_counted(report.num_duplicates, 'duplicate file', 'duplicate files')}, stored once")
    if report.num_unchanged:
        lines.append(f"  {_counted(report.num_unchanged, 'unchanged file', 'unchanged files')}, not read")
    if report.num_archived:
        files = _counted(report.num_archived, "file", "files")
        lines.append(f"  {files} with content that the archive had, not stored again")
    lines += [f"  {note}" for note in notes]
    for line in lines:
        print_line(line.encode())


def _counted(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"
