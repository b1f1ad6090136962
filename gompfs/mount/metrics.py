"""The virtual files `stats/metrics` and `stats/metrics.json`: the counters of a mount, for Prometheus and as JSON.

Reading it is cheap: the mount keeps these counters anyway, those of requests in C++ (native/fuse).
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Mapping

from gompfs import __version__
from gompfs._native.fuse import FIRST_TIME_LOG2, ServedArchive
from gompfs.archive import Archive
from gompfs.errors import display_path
from gompfs.mount.failures import failures
from gompfs.mount.metric_set import MetricSet
from gompfs.statistics.answering import Answering

# The daemon imports this module when it mounts.
_STARTED_AT = time.time()
_STARTED_MONOTONIC = time.monotonic()


def metrics(archive: Archive, served: ServedArchive, answering: Answering) -> MetricSet:
    """Returns all metrics of the mount that this process serves.

    `served` has counted the requests, and `answering` the statistics.
    """
    found = MetricSet()
    found.describe("gompfs_info", "gauge", "Archive, version, engine and process of the mount; the value is always 1.")
    facts = {
        "version": __version__,
        "archive": display_path(archive.path),
        "uuid": archive.superblock.uuid_text,
        "generation": str(archive.footer.generation),
        "engine": archive.engine.name,
        "pid": str(os.getpid()),
    }
    found.sample("gompfs_info", facts, 1)
    _describe_requests(found, served)
    _describe_failures(found)
    _describe_blocks(found, archive)
    _describe_decoding(found, archive)
    _describe_statistics(found, answering)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    found.single("process_start_time_seconds", "gauge", "Start time of the mount in seconds since 1970.", _STARTED_AT)
    uptime = time.monotonic() - _STARTED_MONOTONIC
    found.single("gompfs_uptime_seconds", "gauge", "Time since the mount started.", uptime)
    cpu_seconds = usage.ru_utime + usage.ru_stime
    found.single("process_cpu_seconds_total", "counter", "User and system CPU time of the daemon.", cpu_seconds)
    found.single("process_resident_memory_bytes", "gauge", "Resident memory of the daemon.", _resident_memory())
    return found


def _describe_requests(found: MetricSet, served: ServedArchive) -> None:
    name = "gompfs_request_seconds"
    found.describe(name, "histogram", "Time until a request was answered, or parked while a statistic is computed.")
    for (kind, path), (counts, total) in served.request_times().items():
        limits = [(1 << FIRST_TIME_LOG2 + number) * 1e-9 for number in range(len(counts) - 1)]
        found.histogram(name, {"request": kind, "path": path}, limits, counts, total)
    found.single("gompfs_read_bytes_total", "counter", "Bytes returned by reads.", served.num_read_bytes)


def _describe_failures(found: MetricSet) -> None:
    name = "gompfs_request_errors_total"
    found.describe(name, "counter", "Requests that failed because of damage, lack of memory or a defect, by errno.")
    for (request, number), count in failures.requests().items():
        found.sample(name, {"request": request, "errno": number}, count)
    meaning = "Different blocks that were found to be damaged since the mount started."
    found.single("gompfs_damaged_blocks", "gauge", meaning, failures.num_damaged_blocks)


def _describe_blocks(found: MetricSet, archive: Archive) -> None:
    blocks = archive.blocks
    found.single("gompfs_cache_hits_total", "counter", "Block requests that the cache answered.", blocks.hits)
    found.single("gompfs_cache_misses_total", "counter", "Block requests that the cache did not answer.", blocks.misses)
    found.single("gompfs_cache_bytes", "gauge", "Decoded bytes in the cache.", blocks.num_cached * archive.block_size)
    found.single("gompfs_cache_capacity_bytes", "gauge", "Capacity of the cache.", blocks.capacity * archive.block_size)


def _describe_decoding(found: MetricSet, archive: Archive) -> None:
    """Describe the work of the engines. All archives of a mount share one engine."""
    work = archive.engine.decode_work
    blocks = {engine: done.num_blocks for engine, done in work.items()}
    sizes = {engine: done.num_bytes for engine, done in work.items()}
    seconds = {engine: done.seconds for engine, done in work.items()}
    _describe_engines(found, "gompfs_decoded_blocks_total", "Blocks decoded for reads and statistics.", blocks)
    _describe_engines(found, "gompfs_decoded_bytes_total", "Decompressed size of the decoded blocks.", sizes)
    _describe_engines(found, "gompfs_decode_seconds_total", "Time during which blocks were being decoded.", seconds)


def _describe_statistics(found: MetricSet, answering: Answering) -> None:
    counts, seconds = "gompfs_statistics_total", "gompfs_statistics_seconds_total"
    times = [({"statistic": kind, "engine": engine}, times) for (kind, engine), times in answering.all_times().items()]
    found.describe(counts, "counter", "Statistics computed, by kind and engine.")
    for labels, done in times:
        found.sample(counts, labels, done.count)
    found.describe(seconds, "counter", "Time until the first bytes of these statistics were known.")
    for labels, done in times:
        found.sample(seconds, labels, done.seconds)


def _describe_engines(found: MetricSet, name: str, help_text: str, values: Mapping[str, float]) -> None:
    found.describe(name, "counter", help_text)
    for engine, value in values.items():
        found.sample(name, {"engine": engine}, value)


def _resident_memory() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
