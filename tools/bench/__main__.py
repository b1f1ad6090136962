"""Measures gompfs beside its peers, in the same run on the same data: `python tools/bench TABLE ...`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from decode import measure_decode
from mounting import measure_mount
from packing import measure_pack
from ratio import measure_ratio
from report import Report


def finish(report: Report, json_path: Path | None) -> None:
    """Print the report, and write it as JSON where that is asked for."""
    report.print()
    if json_path is not None:
        json_path.write_text(json.dumps(report.as_json(), indent=2) + "\n")


def data_options(function: Any) -> Any:
    """The data of the tables about blocks."""
    for option in (
        click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)),
        click.option("--block-size", default=1 << 16, show_default=True, help="Bytes of each independent block."),
        click.option("--every", default=1, show_default=True, help="Take one of so many runs of 16 blocks."),
        json_option,
    ):
        function = option(function)
    return function


json_option = click.option("--json", "json_path", type=click.Path(path_type=Path), help="Also write JSON to this file.")


@click.group()
def bench() -> None:
    """Tables of gompfs and its peers. A peer that is not installed is listed as such."""


@bench.command()
@data_options
def ratio(paths: tuple[Path, ...], block_size: int, every: int, json_path: Path | None) -> None:
    """Compression ratio on independent blocks; a directory counts as its files in a row."""
    finish(measure_ratio(paths, block_size, every), json_path)


@bench.command()
@data_options
@click.option("--rounds", default=5, show_default=True, help="Interleaved rounds; medians are printed.")
def decode(paths: tuple[Path, ...], block_size: int, every: int, rounds: int, json_path: Path | None) -> None:
    """Decoding speed on one thread and on all, in GB/s of output."""
    finish(measure_decode(paths, block_size, every, rounds), json_path)


@bench.command()
@click.argument("tree", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def pack(tree: Path, json_path: Path | None) -> None:
    """Packing a tree: seconds, size, peak memory."""
    finish(measure_pack(tree), json_path)


@bench.command()
@click.argument("tree", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--pattern", default="EXPORT_SYMBOL_GPL", show_default=True, help="What grep looks for.")
@click.option("--big", type=click.Path(exists=True, path_type=Path), help="A large file, to be packed alone and read.")
@click.option("--rounds", default=3, show_default=True)
@json_option
def mount(tree: Path, pattern: str, big: Path | None, rounds: int, json_path: Path | None) -> None:
    """Walking, reading and searching a mounted tree with nothing cached by the kernel. Needs root."""
    finish(measure_mount(tree, pattern, big, rounds), json_path)


if __name__ == "__main__":
    bench()
