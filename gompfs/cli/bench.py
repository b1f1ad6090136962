"""`gompfs bench`: measures how fast this machine decodes the blocks of an archive."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from gompfs.cli.command_line import NumberRange, command, option
from gompfs.cli.output import human_size, print_json, print_line
from gompfs.cli.parameters import archive_argument, engine_option, json_option, opened, parse_size_option
from gompfs.codec import BlockStatus
from gompfs.errors import CorruptBlockError

if TYPE_CHECKING:
    from gompfs.archive import Archive

_BATCH_BYTES = 256 << 20


@dataclass(frozen=True)
class Measurement:
    """The fastest round of one engine; `rate` in uncompressed bytes per second."""

    engine: str
    num_threads: int
    uncompressed_size: int
    compressed_size: int
    seconds: float
    rate: float


@command("bench")
@archive_argument
@option(
    "--max-size",
    metavar="SIZE",
    parse=parse_size_option,
    default="1G",
    show_default=True,
    help="Decode the first SIZE bytes of content at most.",
)
@option(
    "--seconds",
    type=NumberRange(0),
    default=1.0,
    show_default=True,
    help="Repeat each measurement for this long; the fastest round is printed.",
)
@engine_option
@json_option
def bench_command(archive: str, *, max_size: int, seconds: float, engine: str, as_json: bool) -> None:
    """Measure how fast the blocks of ARCHIVE are decoded to memory.

    Reads them from the file, which the system has in memory after the first round, on one thread and on all cores, and
    prints the throughput of both. A GPU keeps the heads of parts, and blocks that it has space for, between rounds.
    """
    from gompfs.threads import default_threads

    counts = [1] if default_threads() == 1 else [1, default_threads()]
    measurements = []
    for num_threads in counts:
        with opened(archive, engine=engine, num_threads=num_threads) as opened_archive:
            measurements.append(_measure(opened_archive, _blocks(opened_archive, max_size), seconds))
    if as_json:
        print_json([asdict(measurement) for measurement in measurements])
    elif sys.stdout.isatty():
        _print_table(measurements)
    else:
        for row in (_HEADINGS, *map(_row, measurements)):
            print_line("\t".join(row).encode())


def _blocks(archive: Archive, max_size: int) -> int:
    """Returns how many blocks from the start of the stream hold `max_size` bytes, at least one if there are any."""
    return min(max(max_size // archive.block_size, 1), archive.num_blocks)


def _measure(archive: Archive, num_blocks: int, seconds: float) -> Measurement:
    """Decodes blocks repeatedly for `seconds`, at least once. Raises CorruptBlockError."""
    engine, per_batch = archive.engine, max(_BATCH_BYTES // archive.block_size, 1)
    sizes = [size for segment in archive.segments for size in segment.blocks.uncompressed_sizes][:num_blocks]
    compressed = [size for segment in archive.segments for size in segment.blocks.compressed_sizes][:num_blocks]
    out = engine.allocate(min(per_batch, num_blocks) * archive.block_size)
    best = float("inf")
    end = time.monotonic() + seconds
    while True:
        started = time.perf_counter()
        for first in range(0, num_blocks, per_batch):
            _decode(archive, first, sizes[first : first + per_batch], out)
        best = min(best, time.perf_counter() - started)
        if time.monotonic() >= end:
            break
    return Measurement(engine.name, engine.num_threads, sum(sizes), sum(compressed), best, sum(sizes) / best)


def _decode(archive: Archive, first: int, sizes: list[int], out: memoryview) -> None:
    """Decodes blocks of the stream into `out`. Raises CorruptBlockError."""
    engine = archive.engine
    on_cpu = engine.decodes_on_cpu(sum(sizes))
    started = time.perf_counter()
    if on_cpu:
        failure = archive.blocks.reader.decode_blocks(first, sizes, out, engine.num_threads)
        damaged = [] if failure is None else [(failure.block, failure.status)]
    else:
        _, statuses = archive.stored.decode_for_reader(range(first, first + len(sizes)))
        damaged = [(block, status) for block, status in enumerate(statuses, first) if status]
    engine.note_batch(sum(sizes), time.perf_counter() - started, on_cpu=on_cpu)
    for block, status in damaged:
        raise CorruptBlockError(BlockStatus(status).reason, archive=archive.path, block=block)


_HEADINGS = ("engine", "threads", "content", "compressed", "seconds", "MB/s")


def _row(measurement: Measurement) -> tuple[str, ...]:
    return (
        measurement.engine,
        str(measurement.num_threads),
        human_size(measurement.uncompressed_size),
        human_size(measurement.compressed_size),
        f"{measurement.seconds:.4f}",
        f"{measurement.rate / 1e6:.0f}",
    )


def _print_table(measurements: list[Measurement]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading == "engine" else "right")
    for measurement in measurements:
        table.add_row(*_row(measurement))
    Console().print(table)
