"""Arguments and options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from gompfs.cli.application import print_error
from gompfs.cli.command_line import PATH, BadValueError, IntegerRange, argument, option
from gompfs.errors import GompfsError, OptionError, display_path, is_disk_error
from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from gompfs.archive import Archive
    from gompfs.cli.command_line import Decorated
    from gompfs.cli.completions import Completion

_MAX_SUGGESTIONS = 500


_ENGINES = ("auto", "cpu", "gpu")


def check_engine_option(value: str | None) -> str | None:
    """Callback of an option that takes the name of an engine; gpu may carry device numbers, as in gpu:0,1."""
    kind, separator, devices = (value or "auto").partition(":")
    is_numbered = kind == "gpu" and all(number.isdecimal() for number in devices.split(","))
    if kind not in _ENGINES or (separator and not is_numbered):
        raise BadValueError(f"{value!r} is not one of {', '.join(_ENGINES)}, gpu:N or gpu:N,M")
    return value


def complete_engine(_given: Mapping[str, Any], incomplete: str) -> list[str]:
    """The engines whose names begin with `incomplete`."""
    return [name for name in _ENGINES if name.startswith(incomplete)]


def parse_size_option(value: str | None) -> int | None:
    """Callback of an option that takes a number of bytes with an optional unit: 65536, 64K, 1M."""
    from gompfs.options import parse_size

    if value is None:
        return None
    try:
        return parse_size(value)
    except OptionError as error:
        raise BadValueError(error.message) from None


def complete_entry(given: Mapping[str, Any], incomplete: str) -> list[Completion]:
    """Paths inside the archive named on the command line that begin with `incomplete`."""
    import stat

    from gompfs.archive import Archive
    from gompfs.cli.completions import Completion

    directory, _, start = incomplete.rpartition("/")
    prefix = f"{directory}/" if directory or incomplete.startswith("/") else ""
    try:
        with Archive(given["archive"]) as archive:
            entries = archive.index.directory(archive.resolve(directory, follow=True).ino)
            names = [
                os.fsdecode(entry.name) + ("/" if stat.S_ISDIR(entry.inode.mode) else "")
                for entry in entries
                if entry.name.startswith(os.fsencode(start))
            ]
    except (GompfsError, OSError, KeyError, TypeError):
        return []  # no suggestions; the command itself reports the error
    # "./" in front of a leading dash, so that the name is not read as an option.
    return [Completion((prefix or "./" * name.startswith("-")) + name, "entry") for name in names[:_MAX_SUGGESTIONS]]


def archive_argument(function: Decorated) -> Decorated:
    """The argument ARCHIVE."""
    return argument("archive", type=PATH, parse=_check_archive)(function)


def _check_archive(value: str) -> str:
    if value == "-":
        raise BadValueError(
            "an archive cannot be read from standard input, because reading starts at its end; "
            "for a file named -, write ./-"
        )
    return value


def paths_argument(*, required: bool) -> Callable[[Decorated], Decorated]:
    """The argument PATH...: entries inside the archive."""
    metavar = "PATH..." if required else "[PATH...]"
    return argument("paths", metavar=metavar, several=True, required=required, complete=complete_entry)


def jobs_option(function: Decorated) -> Decorated:
    """The option --jobs."""
    return option(
        "-j",
        "--jobs",
        metavar="N",
        type=IntegerRange(0, 1024),
        default=0,
        help="Number of threads. [default: one per core]",
    )(function)


def engine_option(function: Decorated) -> Decorated:
    """The option --engine."""
    return option(
        "--engine",
        metavar="[auto|cpu|gpu|gpu:N,...]",
        parse=check_engine_option,
        complete=complete_engine,
        default="auto",
        show_default=True,
        help="Engine that decodes, and that also encodes in pack, add and repack, and counts in stats. auto: the "
        "fastest that works on this machine, but the CPU encodes; gpu: a GPU, except for batches of less than 8 MiB; "
        "gpu:0,1: these GPUs share the work.",
    )(function)


def json_option(function: Decorated) -> Decorated:
    """The option --json."""
    return option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


@contextmanager
def opened(
    path: str,
    *,
    engine: str = "auto",
    num_threads: int = 0,
    verify: bool = False,
    with_warnings: bool = True,
    keeps_columns: bool = False,
    cache_size: int | None = None,
) -> Iterator[Archive]:
    """Open the archive at `path`; prints its warnings on stderr if `with_warnings` is set.

    Errors of its disk that do not name a file get its name: most bytes are read by the C++ core, from a descriptor.
    """
    from gompfs.archive import DEFAULT_CACHE_SIZE, Archive
    from gompfs.engine import select_engine

    selected = select_engine(engine, num_threads)
    size = DEFAULT_CACHE_SIZE if cache_size is None else cache_size
    try:
        with Archive(path, engine=selected, verify=verify, keeps_columns=keeps_columns, cache_size=size) as archive:
            for warning in archive.warnings if with_warnings else ():
                print_error(f"warning: {warning}")
            yield archive
    except OSError as error:
        if is_disk_error(error) and error.filename is None:
            error.filename = path
        raise


def resolve_all(archive: Archive, paths: tuple[str, ...]) -> list[str]:
    """The `paths` that exist in the archive; prints an error on stderr for each of the others."""
    found = []
    for path in paths:
        try:
            archive.resolve(path)
        except GompfsError as error:
            error.path = error.path or display_path(path)
            print_error(str(error))
        else:
            found.append(path)
    return found
