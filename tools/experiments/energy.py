"""Measures energy per GB of output: our kernels and nvCOMP's on the GPU, our codecs and others on the CPU (Fig. 14)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import cupy

from gompfs.codec import CodecOptions
from gompfs.engine.cpu import CpuEngine
from gompfs.engine.gpu import GpuEngine
from tools.bench import nvcomp, nvml
from tools.bench.c_libraries import CompressedBlocks, library_codecs
from tools.bench.device import Sample, check
from tools.bench.report import NOT_INSTALLED, Plot, Report
from tools.bench.resident import ResidentBlocks

from .meters import ENERGY_COLUMNS, Meter, add_load, add_rest, cpu_meter, measure_load, measure_rest
from .strategies import CODECS, LEVEL
from .transfers import PEER_BLOCK, PEERS

_CPU_BYTES = 64 << 20  # bytes of data for jobs on the CPU
_NO_CELLS = [None] * (len(ENERGY_COLUMNS) - 1)


@dataclass
class _Table:
    """The table that is being measured."""

    report: Report
    meters: Mapping[str, Meter]
    rest: dict[str, float]
    seconds: float

    def add_on_gpu(self, label: str, ratio: float, size: int, decode: Callable[[], None]) -> None:
        """Adds a row of a codec on the GPU; the CPU waits for it, which takes energy too."""

        def job() -> None:
            decode()
            cupy.cuda.get_current_stream().synchronize()

        add_load(self.report, label, ratio, size, measure_load(job, self.meters, self.seconds), self.rest)

    def add_on_cpu(self, label: str, ratio: float, size: int, job: Callable[[], object]) -> None:
        """Adds a row of a codec on the CPU; the GPU does nothing."""
        meters = {name: meter for name, meter in self.meters.items() if name == "CPU"}
        add_load(self.report, label, ratio, size, measure_load(job, meters, self.seconds), self.rest)


def measure_energy(sample: Sample, engine: GpuEngine, seconds: float) -> list[Report]:
    """Returns a table with a row for each codec, first on the GPU; each runs for `seconds`."""
    found = {"GPU": nvml.energy_meter(cupy.cuda.runtime.deviceGetPCIBusId(0)), "CPU": cpu_meter()}
    meters = {name: meter for name, meter in found.items() if meter is not None}
    rest = measure_rest(meters, seconds)
    report = Report(
        f"{sample.name}, blocks of {sample.block_size}, each codec for {seconds:g} s: watts, and joules above rest for "
        "each GB of output",
        list(ENERGY_COLUMNS),
    )
    add_rest(report, rest)
    table = _Table(report, meters, rest, seconds)
    _add_gpu_codecs(table, sample, engine)
    _add_cpu_codecs(table, sample)
    report.notes += [
        (
            "Watts are those of a device that works, joules those above its rest. A GPU's row also has the "
            "CPU, which waits for it."
        ),
        "GPU: from device memory to device memory; NVML's counter for the whole card, including its memory.",
        (
            "CPU: all threads, memory to memory; RAPL's counters for the packages only, without memory. C libraries "
            f"decode blocks of {PEER_BLOCK} bytes."
        ),
    ]
    if nvcomp.load_library() is not None:
        report.notes.append(f"nvCOMP {nvcomp.version()}.")
    unknown = [name for name in found if name not in rest]
    y_label = "J/GB above rest" + (f" ({', '.join(unknown)}: not readable)" if unknown else "")
    bars = tuple(f"{name} J/GB" for name in found if name in rest)
    if bars:
        report.plots.append(Plot(f"energy-{sample.name}", "bars", bars, "codec", y_label))
    report.plots += [
        Plot(f"energy-ratio-{bar.partition(' ')[0]}-{sample.name}", "points", ("ratio", bar), "ratio", y_label)
        for bar in bars
    ]
    return [report]


def _add_gpu_codecs(table: _Table, sample: Sample, engine: GpuEngine) -> None:
    for codec in CODECS:
        label = f"GPU: {codec.label} -{LEVEL}"
        encoded = sample.encode(CodecOptions(codec, LEVEL, dependency_elimination=True))
        if encoded is None:
            table.report.add(label, "has blocks that do not shrink", *_NO_CELLS)
            continue
        resident = ResidentBlocks(engine, encoded * sample.repeats)
        table.add_on_gpu(label, len(sample.content) / sum(map(len, encoded)), sample.size, resident.decode)
        check(label, resident.all_decoded() and sample.is_repeated_in(resident.output))
        del resident
    library = nvcomp.load_library()
    for name, level in nvcomp.PEERS:
        label = f"GPU: {nvcomp.label(name, level)}"
        if library is None:
            table.report.add(label, NOT_INSTALLED, *_NO_CELLS)
            continue
        batch = nvcomp.NvcompBatch(library, name, level, sample.blocks, sample.repeats)
        table.add_on_gpu(label, len(sample.content) / batch.compressed_size, sample.size, batch.decode)
        check(label, batch.is_right())
        del batch
        cupy.get_default_memory_pool().free_all_blocks()


def _add_cpu_codecs(table: _Table, sample: Sample) -> None:
    content = sample.content[: max(_CPU_BYTES // sample.block_size, 1) * sample.block_size]
    cpu = CpuEngine()
    for codec in CODECS:
        encoded = [
            block.data
            for block in cpu.encode_blocks(
                content, sample.block_size, CodecOptions(codec, LEVEL, dependency_elimination=True)
            )
        ]
        out = memoryview(bytearray(len(content)))
        ratio = len(content) / sum(map(len, encoded))
        decode = partial(cpu.decode_blocks, encoded, out)
        table.add_on_cpu(f"CPU: {codec.label} -{LEVEL}", ratio, len(content), decode)
        check(codec.label, out == content)
    with ThreadPoolExecutor(cpu.num_threads) as executor:
        for name, library_codec in library_codecs(PEERS).items():
            if library_codec is None:
                table.report.add(f"CPU: {name}", NOT_INSTALLED, *_NO_CELLS)
                continue
            blocks = CompressedBlocks(library_codec, content, PEER_BLOCK, executor)
            table.add_on_cpu(f"CPU: {name}", len(content) / blocks.compressed_size, len(content), blocks.decode)
            check(name, blocks.is_right())
