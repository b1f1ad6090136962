"""Arguments and options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gompfs.cli.application import print_error
from gompfs.errors import GompfsError, OptionError, display_path, is_disk_error

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from gompfs.archive import Archive

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_MAX_SUGGESTIONS = 500


_ENGINES = ("auto", "cpu", "gpu")


def check_engine_option(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Callback of an option that takes the name of an engine; gpu may carry device numbers, as in gpu:0,1."""
    kind, separator, devices = (value or "auto").partition(":")
    is_numbered = kind == "gpu" and all(number.isdecimal() for number in devices.split(","))
    if kind not in _ENGINES or (separator and not is_numbered):
        raise click.BadParameter(f"{value!r} is not one of {', '.join(_ENGINES)}, gpu:N or gpu:N,M")
    return value


def complete_engine(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The engines whose names begin with `incomplete`."""
    return [name for name in _ENGINES if name.startswith(incomplete)]


def parse_size_option(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    """Callback of an option that takes a number of bytes with an optional unit: 65536, 64K, 1M."""
    from gompfs.options import parse_size

    if value is None:
        return None
    try:
        return parse_size(value)
    except OptionError as error:
        raise click.BadParameter(error.message) from None


def complete_entry(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Paths inside the archive named on the command line that begin with `incomplete`."""
    import stat

    from click.shell_completion import CompletionItem

    from gompfs.archive import Archive

    directory, _, start = incomplete.rpartition("/")
    prefix = f"{directory}/" if directory or incomplete.startswith("/") else ""
    try:
        with Archive(ctx.params["archive"]) as archive:
            entries = archive.index.directory(archive.resolve(directory, follow=True).ino)
            names = [
                os.fsdecode(entry.name) + ("/" if stat.S_ISDIR(entry.inode.mode) else "")
                for entry in entries
                if entry.name.startswith(os.fsencode(start))
            ]
    except (GompfsError, OSError, KeyError):
        return []  # no suggestions; the command itself reports the error
    # "./" in front of a leading dash, so that the name is not read as an option.
    return [
        CompletionItem((prefix or "./" * name.startswith("-")) + name, type="entry")
        for name in names[:_MAX_SUGGESTIONS]
    ]


def archive_argument(function: Decorated) -> Decorated:
    """The argument ARCHIVE."""
    return click.argument("archive", type=click.Path(), callback=_check_archive)(function)


def _check_archive(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if value == "-":
        raise click.BadParameter(
            "an archive cannot be read from standard input, because reading starts at its end; "
            "for a file named -, write ./-"
        )
    return value


class SeveralBeforeLast(click.Argument):
    """An argument of several values, before the last argument: if there is one value, the last argument is missing."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """See click. Raises MissingParameter."""
        last = ctx.command.params[[isinstance(param, click.Argument) for param in ctx.command.params].index(True) + 1]
        values, value = opts.get(self.name or ""), opts.get(last.name or "")
        if isinstance(value, str) and not (isinstance(values, (tuple, list)) and values) and not ctx.resilient_parsing:
            raise click.MissingParameter(ctx=ctx, param=last)
        return super().handle_parse_result(ctx, opts, args)


class MountPoint(click.Path):
    """A path that click completes but does not check: a check would block on a mount whose daemon hangs."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, unchanged."""
        return value


class IntegerRange(click.IntRange):
    """A whole number with limits; the error message states the limits in words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not {_range_in_words('a whole number', self.min, self.max)}", param, ctx)


class NumberRange(click.FloatRange):
    """A number with limits; the error message states the limits in words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not {_range_in_words('a number', self.min, self.max)}", param, ctx)


def _range_in_words(kind: str, least: float | None, most: float | None) -> str:
    if least is None:
        return kind
    return f"{kind} of at least {least:g}" if most is None else f"{kind} from {least:g} to {most:g}"


def paths_argument(*, required: bool) -> Callable[[Decorated], Decorated]:
    """The argument PATH...: entries inside the archive."""
    metavar = "PATH..." if required else "[PATH...]"
    return click.argument("paths", metavar=metavar, nargs=-1, required=required, shell_complete=complete_entry)


def jobs_option(function: Decorated) -> Decorated:
    """The option --jobs."""
    return click.option(
        "-j",
        "--jobs",
        metavar="N",
        type=IntegerRange(0, 1024),
        default=0,
        help="Number of threads. [default: one per core]",
    )(function)


def engine_option(function: Decorated) -> Decorated:
    """The option --engine."""
    return click.option(
        "--engine",
        metavar="[auto|cpu|gpu|gpu:N,...]",
        callback=check_engine_option,
        shell_complete=complete_engine,
        default="auto",
        show_default=True,
        help="Engine that decodes, and that also encodes in pack, add and repack, and counts in stats. auto: the "
        "fastest that works on this machine, but the CPU encodes; gpu: a GPU, except for batches of less than 8 MiB; "
        "gpu:0,1: these GPUs share the work.",
    )(function)


def json_option(function: Decorated) -> Decorated:
    """The option --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


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
