"""Measures searches on a GPU: the kernels on text in device memory, and whole searches, beside the CPU."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gompfs.archive import Archive
from gompfs.engine import Engine, select_engine
from gompfs.gpu.device.arrays import TextDevice
from gompfs.model import ROOT_INO
from gompfs.search.gpu.block_scan import BlockScan, ScanTable
from gompfs.search.gpu.text_on_device import texts_on_devices
from gompfs.search.query import SearchQuery
from gompfs.search.search import ArchiveSearch, SearchTotals
from gompfs.search.search_memory import SearchMemory

from .report import Report

_LAUNCHES = 8  # of a kernel between two looks at the clock
_LONG_SECONDS = 3.0  # after which a search is not run again


def _literals(count: int) -> SearchQuery:
    """Returns a search for literals that are in no text, but begin as words do."""
    beginnings = (b"node", b"error-", b"/usr/lib/", b"id=", b"struct ")
    literals = tuple(b"%s%08d#" % (beginnings[number % 5], number * 7919) for number in range(count))
    return SearchQuery(literals, fixed_strings=True, read_all=True)


CASES = {
    "literal": SearchQuery((b"kernel panic",), read_all=True),
    "literal -i": SearchQuery((b"kernel panic",), ignore_case=True, read_all=True),
    "no match": SearchQuery((b"no such text anywhere",), read_all=True),
    "regex": SearchQuery((rb"ERROR.*timeout=\d{6}",), read_all=True),
    "regex, more states": SearchQuery((rb"(GET|POST) /\w+/v[0-9]+/\w+/[0-9]{8,12} 5[0-9]{2} .*slow",), read_all=True),
    "100 literals": _literals(100),
    "10,000 literals": _literals(10_000),
}


def measure_scan(path: Path, engine: Engine, rounds: int) -> Report:
    """Returns a table of speeds for an archive; payloads stay in the device's memory as far as `engine` lets them."""
    columns = ["table, KB", "GB/s of the kernel", "s", "s, CPU", "GB/s", "may match, %"]
    report = Report(
        f"{path.name}: searches on a GPU, medians of {rounds}, or of what took {_LONG_SECONDS:.0f} s", columns
    )
    with Archive(path, engine=engine) as archive, Archive(path, engine=select_engine("cpu")) as on_cpu:
        assert engine.accelerator is not None, "the engine searches on the CPU"
        device, *_ = engine.accelerator.search(archive.size)
        memory = SearchMemory(archive)
        for name, query in CASES.items():
            table = ScanTable(*(query.matcher().scan_table(device.shared_memory) or ()))
            kernel = _kernel_rate(archive, device, table, rounds)
            seconds, (output, totals) = _time(lambda query=query: _search(archive, query, memory), rounds)  # type: ignore[misc]
            cpu_seconds, (expected, _) = _time(lambda query=query: _search(on_cpu, query), rounds)  # type: ignore[misc]
            if output != expected:
                report.notes.append(f"THE RESULTS DISAGREE for {name}")
            share = 100 * totals.candidate_bytes / max(totals.scanned_bytes, 1)
            rates = (len(table.table) / 1e3, kernel, seconds, cpu_seconds, totals.bytes / seconds / 1e9, share)
            report.add(name, *rates)
    return report


def _search(archive: Archive, query: SearchQuery, memory: SearchMemory | None = None) -> tuple[bytes, SearchTotals]:
    search = ArchiveSearch(archive, query, [(b"", ROOT_INO)], memory=memory)
    return b"".join(search), search.totals


def _time(run: Callable[[], tuple[bytes, SearchTotals]], rounds: int) -> tuple[float, tuple[bytes, SearchTotals]]:
    """Returns the median seconds, and what was found. The first run, which fills caches, does not count.

    Then there are up to `rounds` runs, but no further run once they have taken _LONG_SECONDS together: for large
    archives, the CPU alone takes many seconds, and more for some patterns.
    """
    found = run()
    seconds: list[float] = []
    while len(seconds) < rounds and sum(seconds) < _LONG_SECONDS:
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds), found


def _kernel_rate(archive: Archive, device: TextDevice, table: ScanTable, rounds: int) -> float:
    """Returns the median GB/s of text of a kernel, in the first batch of the archive."""
    with device:
        (text,) = texts_on_devices(archive, [device])
        batch = next(text.batches(np.ones(archive.num_blocks, np.bool_)))
        scan = BlockScan(device, table)
        seconds = []
        for _ in range(rounds + 1):
            device.synchronize()
            started = time.perf_counter()
            for _ in range(_LAUNCHES):
                scan.find(batch.stream)
            device.synchronize()
            seconds.append((time.perf_counter() - started) / _LAUNCHES)
        num_bytes = int(text.sizes[batch.numbers].sum())
    return num_bytes / 1e9 / statistics.median(seconds[1:])
