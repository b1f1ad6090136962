"""Measures energy per GB of output: our kernels and nvCOMP's on the GPU, our codecs and others on the CPU (Fig. 14)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import cupy

from gompfs.codec import CodecOptions
from gompfs.engine.cpu import CpuEngine
from gompfs.engine.gpu import GpuEngine
from tools.bench import nvcomp, nvml
from tools.bench.blocks import peer
from tools.bench.decode import PEERS, add_ours, add_peer
from tools.bench.device import Sample, check
from tools.bench.report import NOT_INSTALLED, Plot, Report
from tools.bench.resident import ResidentBlocks

from .meters import ENERGY_COLUMNS, Meter, add_load, cpu_meter
from .strategies import CODECS, LEVEL

_CPU_BYTES = 64 << 20  # bytes of data for jobs on the CPU
_SECONDS_OF_REST = 0.05


def measure_energy(sample: Sample, engine: GpuEngine, seconds: float) -> list[Report]:
    """Returns a table with a row for each codec, first on the GPU; each runs for `seconds`."""
    meters = {"GPU": nvml.energy_meter(cupy.cuda.runtime.deviceGetPCIBusId(0)), "CPU": cpu_meter()}
    report = Report(
        f"{sample.name}, blocks of {sample.block_size}, each codec for {seconds:g} s: watts, and joules for each GB "
        "of output",
        list(ENERGY_COLUMNS),
    )
    readable = {name: meter for name, meter in meters.items() if meter is not None}
    add_load(report, "nothing", 0, lambda: time.sleep(_SECONDS_OF_REST), readable, seconds)
    _add_gpu_codecs(report, sample, engine, readable, seconds)
    _add_cpu_codecs(report, sample, readable, seconds)
    report.notes += [
        "A row has the energy of GPU and CPU, including the one that waits, and including the power at rest.",
        "GPU: from device memory to device memory; NVML's counter for the whole card, including its memory.",
        "CPU: all threads, memory to memory; RAPL's counters for the packages only, without memory.",
    ]
    if nvcomp.load_library() is not None:
        report.notes.append(f"nvCOMP {nvcomp.version()}.")
    report.plots.append(Plot(f"energy-{sample.name}", "bars", ("GPU J/GB", "CPU J/GB"), "codec", "energy, J/GB"))
    return [report]


def _add_gpu_codecs(
    report: Report, sample: Sample, engine: GpuEngine, meters: Mapping[str, Meter], seconds: float
) -> None:
    for codec in CODECS:
        label = f"GPU: {codec.label} -{LEVEL}"
        encoded = sample.encode(CodecOptions(codec, LEVEL))
        if encoded is None:
            report.add(label, "has blocks that do not shrink", *[None] * 4)
            continue
        resident = ResidentBlocks(engine, encoded * sample.repeats)
        add_load(report, label, sample.size, _waiting(resident.decode), meters, seconds)
        check(label, resident.all_decoded() and sample.is_repeated_in(resident.output))
        del resident
    library = nvcomp.load_library()
    for name, level in nvcomp.PEERS:
        label = f"GPU: {nvcomp.label(name, level)}"
        if library is None:
            report.add(label, NOT_INSTALLED, *[None] * 4)
            continue
        batch = nvcomp.NvcompBatch(library, name, level, sample.blocks, sample.repeats)
        add_load(report, label, sample.size, _waiting(batch.decode), meters, seconds)
        check(label, batch.is_right())
        del batch
        cupy.get_default_memory_pool().free_all_blocks()


def _waiting(decode: Callable[[], None]) -> Callable[[], None]:
    def job() -> None:
        decode()
        cupy.cuda.get_current_stream().synchronize()

    return job


def _add_cpu_codecs(report: Report, sample: Sample, meters: Mapping[str, Meter], seconds: float) -> None:
    blocks = sample.blocks[: _CPU_BYTES // sample.block_size]
    size = len(blocks) * sample.block_size
    num_threads = CpuEngine().num_threads
    jobs: dict[tuple[str, int], Callable[[], object]] = {}
    with ThreadPoolExecutor(num_threads) as executor:
        for codec in CODECS:
            add_ours(jobs, codec, blocks, sample.block_size, num_threads)
        for other in map(peer, PEERS):
            if other.compress is None:
                report.add(f"CPU: {other.name}", NOT_INSTALLED, *[None] * 4)
            else:
                add_peer(jobs, other, blocks, executor, num_threads)
        for (name, count), job in jobs.items():
            if count == num_threads:
                add_load(report, f"CPU: {name}", size, job, meters, seconds)
