"""The arguments and options that several commands of the tables have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

paths_argument = click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
trees_argument = click.argument(
    "trees", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
tree_argument = click.argument("tree", type=click.Path(exists=True, file_okay=False, path_type=Path))
archive_option = click.option(
    "--archive",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An existing gompfs archive of TREE; otherwise TREE is packed first.",
)
json_option = click.option("--json", "json_path", type=click.Path(path_type=Path), help="Also write JSON to this file.")
keep_caches_option = click.option(
    "--keep-caches", is_flag=True, help="Do not drop caches; this machine has other work."
)
plots_option = click.option(
    "--plots",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also draw plots into this folder; needs matplotlib.",
)


def block_options(function: Command) -> Command:
    """Add the options that choose the data of the tables about blocks."""
    for option in (
        paths_argument,
        click.option(
            "--block-size",
            default=1 << 16,
            show_default=True,
            type=click.IntRange(1 << 14, 1 << 20),
            help="Size of each independent block, in bytes.",
        ),
        click.option(
            "--every",
            default=1,
            show_default=True,
            type=click.IntRange(1),
            help="Measure one of this many runs of 16 blocks, to save time.",
        ),
        json_option,
    ):
        function = option(function)
    return function


def rounds_option(default: int) -> Callable[[Command], Command]:
    """The option for the number of measurements."""
    return click.option(
        "--rounds",
        default=default,
        show_default=True,
        type=click.IntRange(1),
        help="Number of interleaved rounds; medians are printed.",
    )
