"""Command line of the tables: `python -m tools.bench COMMAND`.

`python -m tools.bench --help` lists the commands. Each has a module that measures.
"""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path

import click

from gompfs.engine import select_engine
from gompfs.errors import EngineUnavailableError
from gompfs.options import GpuOptions
from tools.experiments import EXPERIMENTS, WITHOUT_GPU
from tools.experiments.run import Settings, run_experiments

from .arrays import ARCHIVES, measure_arrays
from .compress import DEVICES, measure_compress
from .decode import measure_decode
from .engine_mounts import measure_engine_mounts
from .epoch import measure_epoch
from .many_files import measure_files
from .many_versions import measure_versions
from .mounting import DEFAULT_PATTERN, Conditions, measure_mount
from .options import (
    archive_option,
    block_options,
    json_option,
    keep_caches_option,
    paths_argument,
    plots_option,
    rounds_option,
    tree_argument,
    trees_argument,
)
from .packing import measure_pack
from .plots import caption_of, require_matplotlib, save_plots
from .ratio import measure_ratio
from .report import Report
from .results import finish, finish_one_by_one
from .searching import DEFAULT_PATTERNS, measure_search
from .size import SizeOptions, measure_size
from .size_modes import PROGRAMS
from .start import measure_start
from .stats import TASKS, measure_stats

TASKS_OF_CLUSTERS = ("wordcount", "sort", "sequence_count", "inverted_index", "ranked_inverted_index", "term_vector")


def require_gpu() -> None:
    """Raise a click error if the GPU engine cannot be used."""
    try:
        select_engine("gpu")
    except EngineUnavailableError as error:
        raise click.ClickException(str(error)) from None


def conditions_of(rounds: int, *, keep_caches: bool) -> Conditions:
    """Returns the conditions; only root can drop the kernel's caches."""
    return Conditions(rounds, cold=not keep_caches and os.geteuid() == 0)


@click.group()
def bench() -> None:
    """Measure gompfs beside its peers. A peer that is not installed is listed as such."""


@bench.command()
@block_options
def ratio(paths: tuple[Path, ...], block_size: int, every: int, json_path: Path | None) -> None:
    """Compression ratio on independent blocks; the files of a directory are concatenated."""
    finish([measure_ratio(paths, block_size, every)], json_path)


@bench.command()
@block_options
@rounds_option(3)
@click.option("--only", multiple=True, metavar="TEXT", help="Only rows with TEXT in their names; may be repeated.")
@click.option(
    "--device", "devices", multiple=True, default=DEVICES, type=click.Choice(DEVICES), help="Only the tables of this."
)
def compress(
    paths: tuple[Path, ...],
    block_size: int,
    every: int,
    rounds: int,
    only: tuple[str, ...],
    devices: tuple[str, ...],
    json_path: Path | None,
) -> None:
    """Ratio and speed of all levels beside peers: blocks on one thread and on all, and whole files; and on a GPU.

    Each table is printed and written as soon as it is measured.
    """
    finish_one_by_one(measure_compress(paths, block_size, every, rounds, only, devices), json_path)


@bench.command()
@block_options
@rounds_option(5)
def decode(paths: tuple[Path, ...], block_size: int, every: int, rounds: int, json_path: Path | None) -> None:
    """Decoding speed on one thread and on all threads, in GB/s of output."""
    finish(measure_decode(paths, block_size, every, rounds), json_path)


@bench.command()
@block_options
@rounds_option(7)
def gpu(paths: tuple[Path, ...], block_size: int, every: int, rounds: int, json_path: Path | None) -> None:
    """Decoding speed on a GPU, beside nvCOMP's codecs and including transfers; needs CuPy."""
    require_gpu()
    from .gpu import measure_gpu  # imports CuPy, which may not be installed

    finish(measure_gpu(paths, block_size, every, rounds), json_path)


@bench.command()
@paths_argument
@click.option("--block-size", default=1 << 16, show_default=True, type=click.IntRange(1 << 14, 1 << 20))
@click.option("--part-size", type=click.IntRange(1 << 14), help="Size of parts in bytes.  [default: that of pack]")
@click.option(
    "--max-size",
    default=256 << 20,
    show_default=True,
    type=click.IntRange(1),
    help="Decode about as many bytes of each path at most.",
)
@rounds_option(7)
@click.option("--only", "what", type=click.Choice(["blocks", "statistics"]), help="Measure only this.")
@json_option
def tadoc(
    paths: tuple[Path, ...],
    block_size: int,
    part_size: int | None,
    max_size: int,
    rounds: int,
    what: str | None,
    json_path: Path | None,
) -> None:
    """Text stored as grammars on a GPU: archives, or files to pack; needs CuPy.

    Blocks: decoding speed. Statistics: with words that stay on the GPU, beside words that are brought for each
    statistic, and the CPU.
    """
    require_gpu()
    from .tadoc import measure_tadoc  # imports CuPy, which may not be installed

    finish(measure_tadoc(paths, block_size, part_size, max_size, rounds, what), json_path)


@bench.command()
@block_options
@rounds_option(7)
@click.option("--only", "names", multiple=True, type=click.Choice(EXPERIMENTS), help="Run only this; may be repeated.")
@click.option(
    "--seconds",
    default=2.0,
    show_default=True,
    type=click.FloatRange(1.0),
    help="How long each codec runs to measure its energy.",
)
@click.option(
    "--output-size",
    default=4 << 30,
    show_default=True,
    type=click.IntRange(1),
    help="Repeat the data up to this many bytes.",
)
@plots_option
def experiments(
    paths: tuple[Path, ...],
    block_size: int,
    every: int,
    json_path: Path | None,
    rounds: int,
    names: tuple[str, ...],
    seconds: float,
    output_size: int,
    plots: Path | None,
) -> None:
    """The experiments of the Gompresso paper on a GPU: strategies, nesting, block sizes, transfers, energy; needs CuPy.

    And `wesley`: a system of LZ77 triples for GPUs, by files. Two need no GPU: `sweeps` computes sizes, the cost of
    shorter codewords and of more sub-blocks; `tadoc` measures Sequitur and sequential TADOC.

    Each table is printed and written as soon as it is measured.
    """
    names = names or EXPERIMENTS
    if plots is not None:
        require_matplotlib()
    settings = Settings(block_size, every, output_size, rounds, seconds)
    device = {}
    if not set(names) <= set(WITHOUT_GPU):
        require_gpu()
        from .device import describe_device  # imports CuPy, which may not be installed

        device = {"gpu": describe_device()}
    finish_one_by_one(run_experiments(names, paths, settings), json_path, plots, more_facts=device)


@bench.command()
@click.argument("result", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def plot(result: Path, folder: Path) -> None:
    """Draw plots from the JSON that `experiments` or `size` wrote, as `--plots` does; needs matplotlib."""
    require_matplotlib()
    written = json.loads(result.read_text())
    for table in written["tables"]:
        save_plots(Report.from_json(table), folder, caption_of(written["origin"]))


@bench.command()
@trees_argument
@rounds_option(3)
@click.option("--only", "tasks", multiple=True, type=click.Choice(list(TASKS)), help="Only this; may be repeated.")
@click.option("--archive", type=click.Path(exists=True, path_type=Path), help="An existing archive, for a single TREE.")
@click.option("--scripts/--no-scripts", default=True, help="Also run what a user would run instead; slow.")
@json_option
def stats(
    trees: tuple[Path, ...],
    rounds: int,
    tasks: tuple[str, ...],
    archive: Path | None,
    json_path: Path | None,
    *,
    scripts: bool,
) -> None:
    """Statistics of directories: the CPU, a GPU, without a grammar, coreutils and data frames.

    All of them must give the same bytes.
    """
    if archive is not None and len(trees) > 1:
        raise click.UsageError("--archive is allowed for a single TREE only")
    finish(measure_stats(trees, tasks or tuple(TASKS), rounds, archive, with_scripts=scripts), json_path, ["awk"])


@bench.command()
@tree_argument
@click.option("--archives", "num_archives", default=100, show_default=True, type=click.IntRange(1, 1000))
@click.option("--workers", multiple=True, type=click.IntRange(1), default=(1, 2, 4, 8), show_default=True)
@click.option("--only", "tasks", multiple=True, type=click.Choice(TASKS_OF_CLUSTERS), default=TASKS_OF_CLUSTERS)
@rounds_option(3)
@json_option
def dask(
    tree: Path, num_archives: int, workers: tuple[int, ...], tasks: tuple[str, ...], rounds: int, json_path: Path | None
) -> None:
    """Statistics of many archives on clusters of Dask; needs the extra dask. All must give the same bytes."""
    from .cluster import measure_cluster  # imports Dask, which may not be installed

    finish([measure_cluster(tree, num_archives, workers, tasks, rounds)], json_path)


@bench.command()
@tree_argument
@rounds_option(1)
@json_option
def pack(tree: Path, rounds: int, json_path: Path | None) -> None:
    """Time, size and peak memory of packing a tree that is in the page cache."""
    finish([measure_pack(tree, rounds)], json_path, ["tar", "gzip", "zstd", "mksquashfs"])


@bench.command()
@tree_argument
@archive_option
@click.option("--pattern", default=DEFAULT_PATTERN, show_default=True, help="The pattern for grep.")
@click.option(
    "--big",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A large file, which is packed alone and read.",
)
@keep_caches_option
@rounds_option(3)
@json_option
def mount(
    tree: Path,
    archive: Path | None,
    pattern: str,
    big: Path | None,
    keep_caches: bool,
    rounds: int,
    json_path: Path | None,
) -> None:
    """Time to walk, read and search a mounted tree, each with cold caches (which only root can drop)."""
    conditions = conditions_of(rounds, keep_caches=keep_caches)
    programs = ["tar", "pzstd", "ratarmount", "mksquashfs", "squashfuse_ll", "squashfuse"]
    finish(measure_mount(tree, archive, pattern, big, conditions), json_path, programs)


@bench.command()
@trees_argument
@click.option("--only", multiple=True, metavar="TEXT", help="Only rows with TEXT in their names; may be repeated.")
@click.option("--reads", "num_reads", default=100, show_default=True, type=click.IntRange(1), help="Random reads.")
@click.option("--fuse", is_flag=True, help="Mount squashfs and erofs by FUSE even if the kernel can.")
@keep_caches_option
@plots_option
@rounds_option(1)
@json_option
def size(
    trees: tuple[Path, ...],
    only: tuple[str, ...],
    num_reads: int,
    plots: Path | None,
    rounds: int,
    json_path: Path | None,
    *,
    fuse: bool,
    keep_caches: bool,
) -> None:
    """Size, packing and reading of directories stored by gompfs, as tar, squashfs, erofs and DwarFS, in one table.

    Each table is printed and written as soon as it is measured.
    """
    if plots is not None:
        require_matplotlib()
    options = SizeOptions(num_reads, fuse, only)
    conditions = conditions_of(rounds, keep_caches=keep_caches)
    finish_one_by_one((measure_size(tree, conditions, options) for tree in trees), json_path, plots, PROGRAMS)


@bench.command()
@tree_argument
@click.option("--files", "num_files", default=4096, type=click.IntRange(1), show_default=True, help="Files to read.")
@click.option("--workers", "num_workers", default=16, type=click.IntRange(1), show_default=True, help="Processes.")
@click.option("--only", multiple=True, help=f"Only archives whose names have this text: {', '.join(ARCHIVES)}.")
@rounds_option(7)
@json_option
def arrays(
    tree: Path, num_files: int, num_workers: int, only: tuple[str, ...], rounds: int, json_path: Path | None
) -> None:
    """Speed of reading many files of TREE into one array, on the CPU and on a GPU, beside PyTorch's DataLoader."""
    finish([measure_arrays(tree, num_files, num_workers, only, rounds)], json_path)


@bench.command()
@tree_argument
@click.option("--workers", "num_workers", default=8, type=click.IntRange(1), show_default=True, help="Processes.")
@click.option("--batch", "batch_size", default=256, type=click.IntRange(1), show_default=True, help="Files of a batch.")
@click.option("--only", multiple=True, help=f"Only archives whose names have this text: {', '.join(ARCHIVES)}.")
@rounds_option(3)
@json_option
def epoch(
    tree: Path, num_workers: int, batch_size: int, only: tuple[str, ...], rounds: int, json_path: Path | None
) -> None:
    """Speed of an epoch over TREE's files in random order by PyTorch's DataLoader, beside WebDataset and mounts."""
    if find_spec("torch") is None:
        raise click.ClickException("needs PyTorch: pip install torch")
    finish([measure_epoch(tree.resolve(), num_workers, batch_size, only, rounds)], json_path)


@bench.command()
@tree_argument
@archive_option
@click.option("--pattern", "patterns", multiple=True, default=DEFAULT_PATTERNS, help="Pattern; may be repeated.")
@rounds_option(5)
@json_option
def grep(tree: Path, archive: Path | None, patterns: tuple[str, ...], rounds: int, json_path: Path | None) -> None:
    """Time to search for patterns, beside programs that search a tree, an archive or an index, with warm caches."""
    finish(measure_search(tree, archive, patterns, rounds), json_path, ["rg", "ugrep"])


@bench.command()
@click.argument("archive", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@rounds_option(5)
@json_option
def scan(archive: Path, rounds: int, json_path: Path | None) -> None:
    """Time to search the files of an archive on a GPU, beside the CPU; needs CuPy.

    Compressed blocks stay in the memory of the GPU, as in a mount.
    """
    require_gpu()
    from .scanning import measure_scan  # imports NumPy, and modules that are for devices only

    engine = select_engine("gpu", gpu=GpuOptions(archive_size=archive.stat().st_size))
    finish([measure_scan(archive, engine, rounds)], json_path)


@bench.command("engine-mounts")
@click.argument("archive", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--cores", multiple=True, default=(1, 2, 16), show_default=True, type=click.IntRange(1), help="Cores.")
@rounds_option(3)
@json_option
def engine_mounts(archive: Path, cores: tuple[int, ...], rounds: int, json_path: Path | None) -> None:
    """Speed of reads through a mount of ARCHIVE with the CPU, a GPU and `auto`, on some numbers of cores."""
    require_gpu()
    finish([measure_engine_mounts(archive.resolve(), cores, rounds)], json_path)


@bench.command()
@tree_argument
@archive_option
@rounds_option(11)
@json_option
def start(tree: Path, archive: Path | None, rounds: int, json_path: Path | None) -> None:
    """Time to start commands, and to mount a tree until its first listing, with warm caches."""
    finish(measure_start(tree, archive, rounds), json_path, ["ratarmount", "squashfuse_ll", "squashfuse"])


@bench.command()
@click.option("--count", "counts", multiple=True, default=(100_000,), show_default=True, type=click.IntRange(1))
@json_option
def files(counts: tuple[int, ...], json_path: Path | None) -> None:
    """Time and memory of packing and mounting archives of many small files; --count may be repeated."""
    finish([measure_files(counts)], json_path)


@bench.command()
@click.argument("directories", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def versions(directories: tuple[Path, ...], json_path: Path | None) -> None:
    """Size of archives of many versions of a directory, stored together and one by one; the last is the newest."""
    finish([measure_versions(directories)], json_path, ["mksquashfs", "zstd", "borg", "restic"])


if __name__ == "__main__":
    bench(prog_name="python -m tools.bench")
