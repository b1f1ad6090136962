"""`gompfs bench`: measures how fast this machine decodes the blocks of an archive."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from gompfs.cli.command_line import NumberRange, command, option
from gompfs.cli.output import human_size, print_json, print_line
from gompfs.cli.parameters import archive_argument, engine_option, json_option, opened, parse_size_option
from gompfs.codec import BlockStatus
from gompfs.errors import CorruptBlockError

if TYPE_CHECKING:
    from gompfs.archive import Archive
    from gompfs.engine import Engine
    from gompfs.engine.base import PartSymbols

_BATCH_BYTES = 16 << 20


@dataclass(frozen=True)
class Batch:
    """Compressed blocks in memory that one call decodes, with the symbols of their parts; sizes in bytes."""

    first_block: int
    blocks: list[bytes]
    symbols: Sequence[PartSymbols | None]
    uncompressed_size: int


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
    help="Decode the first SIZE bytes of content at most; their compressed blocks are held in memory, and the heads "
    "of their parts.",
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
    """Measure how fast the blocks of ARCHIVE are decoded.

    Decodes blocks that are in memory, on one thread and on all cores, and prints the throughput of both.
    """
    from gompfs.engine import select_engine

    single, full = select_engine(engine, 1), select_engine(engine)
    engines = [single, full] if full.num_threads > 1 else [single]
    with opened(archive, engine=engine) as opened_archive:
        batches = list(_load(opened_archive, max_size))
        measurements = [_measure(opened_archive, candidate, batches, seconds) for candidate in engines]
    if as_json:
        print_json([asdict(measurement) for measurement in measurements])
    elif sys.stdout.isatty():
        _print_table(measurements)
    else:
        for row in (_HEADINGS, *map(_row, measurements)):
            print_line("\t".join(row).encode())


def _load(archive: Archive, max_size: int) -> Iterator[Batch]:
    """Load blocks from the start of the stream until they hold `max_size` uncompressed bytes."""
    per_batch = max(_BATCH_BYTES // archive.block_size, 1)
    left = max_size
    for segment in archive.segments:
        end = segment.first_block + len(segment.blocks)
        for first in range(segment.first_block, end, per_batch):
            if left <= 0:
                return
            count = min(max(min(per_batch, left // archive.block_size), 1), end - first)
            blocks, sizes = archive.stored.read_stream(first, count)
            symbols, statuses = archive.stored.heads.open(range(first, first + count))
            _check(archive, first, statuses)
            yield Batch(first, list(map(bytes, blocks)), symbols, sum(sizes))
            left -= sum(sizes)


def _measure(archive: Archive, engine: Engine, batches: list[Batch], seconds: float) -> Measurement:
    """Decode all batches repeatedly for `seconds`, at least once; raises CorruptBlockError."""
    out = engine.allocate(max((batch.uncompressed_size for batch in batches), default=0))
    best = float("inf")
    end = time.monotonic() + seconds
    while True:
        started = time.perf_counter()
        for batch in batches:
            content = out[: batch.uncompressed_size]
            _check(archive, batch.first_block, engine.decode_blocks(batch.blocks, content, symbols=batch.symbols))
        best = min(best, time.perf_counter() - started)
        if time.monotonic() >= end:
            break
    uncompressed_size = sum(batch.uncompressed_size for batch in batches)
    compressed_size = sum(len(block) for batch in batches for block in batch.blocks)
    rate = uncompressed_size / best
    return Measurement(engine.name, engine.num_threads, uncompressed_size, compressed_size, best, rate)


def _check(archive: Archive, first_block: int, statuses: Sequence[int]) -> None:
    """Raise CorruptBlockError for the first block that is damaged, or the head of whose part is."""
    for block, status in enumerate(statuses, first_block):
        if status:
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
