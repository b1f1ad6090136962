"""Ratio and speed of triples by file, beside LZ4 and the figures of the thesis (its tables 12 to 20)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import cupy
import numpy as np

from gompfs.gpu.device.arrays import Array
from gompfs.gpu.device.cupy_arrays import GpuArrays
from tools.bench.device import Sample, check, time_on_device, time_on_host
from tools.bench.report import Cell, Report

from . import decoder, encoder, graphs, made_data, serial

_MAX_SIZE = 32 << 20  # bytes of a file that are measured
_SERIAL_ROUNDS = 3
_GRID_SIDE, _NODES_LOG2, _PICTURE_SIDE, _GENOME_SIZE = 1024, 18, 1024, 4 << 20
_IN_THESIS: tuple[Cell, ...] = (None, 1.39, 14.94, 733.95, None, 49.0, None, 120.45, 12_757.0, None, 106.0, None)
_THESIS_NOTES = (
    "The thesis (RTX 3090, geometric means over other files): the row at the end, and for its peers, in MB/s: PLZ 3.21 "
    "at ratio 8.54; CULZSS 68.7 and 134.8 at 1.32; LZ4 -1 418 and 716 at 1.87."
)
_COLUMNS = [
    "MB", "ratio", "encode: serial", "chains", "maps", "chains / serial", "maps / serial",
    "decode: serial", "jumping", "tiles", "jumping / serial", "tiles / serial",
]  # fmt: skip


@dataclass(frozen=True)
class Speeds:
    """MB/s of text of each way on one file."""

    size: int
    ratio: float
    serial_encode: float
    chains: float
    maps: float
    serial_decode: float
    jumping: float
    tiles: float

    def cells(self) -> list[Cell]:
        """Returns the cells of the table."""
        encoded = (self.serial_encode, self.chains, self.maps)
        factors = (self.chains / self.serial_encode, self.maps / self.serial_encode)
        decoded = (self.serial_decode, self.jumping, self.tiles)
        gains = (self.jumping / self.serial_decode, self.tiles / self.serial_decode)
        return [self.size / 1e6, self.ratio, *encoded, *factors, *decoded, *gains]


def measure_wesley(samples: Sequence[Sample], rounds: int) -> Iterator[Report]:
    """Yields a table of triples, and one of LZ4, for the samples and generated data."""
    contents = {sample.name: sample.content[:_MAX_SIZE] for sample in samples} | {
        "genome (generated)": made_data.genome(_GENOME_SIZE),
        "bitmap (generated)": made_data.bitmap(_PICTURE_SIDE),
        "2d grid (generated)": graphs.grid_graph(_GRID_SIDE),
        "rgg (generated)": graphs.random_geometric_graph(_NODES_LOG2),
    }
    title = f"MB/s of text; serial on one thread of the CPU, parallel in device memory, medians of {rounds}"
    report = Report(f"triples, {title}", list(_COLUMNS))
    device = GpuArrays()
    measured = [_measure(name, content, device, rounds) for name, content in contents.items()]
    for name, speeds in zip(contents, measured, strict=True):
        report.add(name, *speeds.cells())
    report.add("geometric mean", *_geometric_means([speeds.cells() for speeds in measured]))
    report.add("geometric mean in the thesis", *_IN_THESIS)
    report.notes += ["All encoders gave the same bytes, and all decoders the text.", _THESIS_NOTES]
    yield report
    yield _measure_lz4(contents, rounds)


def _measure(name: str, content: bytes, device: GpuArrays, rounds: int) -> Speeds:
    size = len(content)
    encoded = serial.encode(content)
    check(f"{name}, serial", serial.decode(encoded) == content)
    with device:
        text = device.upload(np.frombuffer(content, np.uint8))
        triples = device.upload(serial.split(encoded)[1])

        def time_encoder(marks: encoder.Marks) -> float:
            check(f"{name}, {marks.__name__}", bool((encoder.encode(device, text, marks) == triples).all()))
            return time_on_device(lambda: _drop(encoder.encode(device, text, marks)), rounds)

        def time_decoder(roots: decoder.Roots) -> float:
            check(f"{name}, {roots.__name__}", bool((decoder.decode(device, triples, size, roots) == text).all()))
            return time_on_device(lambda: _drop(decoder.decode(device, triples, size, roots)), rounds)

        encoders = time_encoder(encoder.mark_by_chains), time_encoder(encoder.mark_by_maps)
        decoders = time_decoder(decoder.find_by_jumping), time_decoder(decoder.find_by_tiles)
    serial_encode = time_on_host(lambda: serial.encode(content), _SERIAL_ROUNDS)
    serial_decode = time_on_host(lambda: serial.decode(encoded), _SERIAL_ROUNDS)
    speeds = [size / 1e6 / seconds for seconds in (serial_encode, *encoders, serial_decode, *decoders)]
    return Speeds(size, size / len(encoded), *speeds)


def _drop(array: Array) -> None:
    assert isinstance(array, cupy.ndarray)


def _geometric_means(rows: Sequence[Sequence[Cell]]) -> list[Cell]:
    columns = [[float(cell) for cell in column if cell is not None] for column in zip(*rows, strict=True)]
    return [math.exp(sum(map(math.log, column)) / len(column)) for column in columns]


def _measure_lz4(contents: dict[str, bytes], rounds: int) -> Report:
    columns = [f"-{level}: {name}" for level in (1, 9) for name in ("ratio", "compress", "decompress")]
    report = Report("LZ4 on one thread of the CPU, MB/s of text", columns)
    try:
        lz4: Any = import_module("lz4.frame")
    except ImportError:
        report.add_missing("lz4", ["lz4"])
        return report
    rows = []
    for name, content in contents.items():
        row: list[Cell] = []
        for level in (1, 9):
            row += _time_peer(content, lambda text, level=level: lz4.compress(text, level), lz4.decompress, rounds)
        report.add(name, *row)
        rows.append(row)
    report.add("geometric mean", *_geometric_means(rows))
    return report


def _time_peer(
    content: bytes, compress: Callable[[bytes], bytes], decompress: Callable[[bytes], bytes], rounds: int
) -> list[Cell]:
    compressed = compress(content)
    check("lz4", decompress(compressed) == content)
    times = (time_on_host(lambda: compress(content), rounds), time_on_host(lambda: decompress(compressed), rounds))
    return [len(content) / len(compressed), *(len(content) / 1e6 / seconds for seconds in times)]
