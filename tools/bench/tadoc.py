"""Measures gompresso-tadoc on a GPU: text in device memory that is stored as grammars of parts."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import cupy
import numpy as np

from gompfs._native.parts import SymbolTable
from gompfs.archive import Archive
from gompfs.codec import Codec, CodecOptions
from gompfs.engine import select_engine
from gompfs.engine.gpu import GpuEngine
from gompfs.format import SUPERBLOCK_MAGIC
from gompfs.gpu.batch import OUTPUT_ALIGNMENT
from gompfs.gpu.heads import pack_head
from gompfs.options import GpuOptions, PackOptions
from gompfs.pack import open_source, pack_archive

from .device import OUTPUT_BYTES, check, describe_device, time_copy_to_host, time_on_device, time_on_host
from .report import Report
from .resident import ResidentBlocks


@dataclass(frozen=True)
class TextBlocks:
    """Blocks of parts, and what they decode to. All blocks but the last of a part have the same size."""

    name: str
    blocks: list[bytes]
    sizes: list[int]
    symbols: list[SymbolTable]
    content: memoryview

    @property
    def tables(self) -> list[SymbolTable]:
        """The symbols of the parts, each once, in the order of the blocks."""
        return list({table.number: table for table in self.symbols}.values())

    @property
    def repeats(self) -> int:
        """How often the blocks are decoded at once, to keep a device busy."""
        return max(OUTPUT_BYTES // len(self.content), 1)


def measure_tadoc(
    paths: Sequence[Path], block_size: int, part_size: int | None, max_size: int, rounds: int
) -> list[Report]:
    """Returns a table for each archive of format version 2, and for each other file or directory, which is packed."""
    engine = GpuEngine()
    reports = []
    for path in paths:
        with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch:
            text = _read(_archive_of(path, Path(scratch), block_size, part_size), path.name, max_size)
        reports.append(_measure(text, engine, rounds))
    return reports


def _archive_of(path: Path, scratch: Path, block_size: int, part_size: int | None) -> Path:
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(SUPERBLOCK_MAGIC)) == SUPERBLOCK_MAGIC:
                return path
    target = scratch / "archive"
    options = PackOptions(
        CodecOptions(Codec.GOMPRESSO_TADOC), block_size, words="identifiers", version=2, part_size=part_size
    )
    pack_archive([open_source(path)], target, options, engine=select_engine("cpu"))
    return target


def _read(archive_path: Path, name: str, max_size: int) -> TextBlocks:
    """Reads blocks of parts from the start of an archive, and decodes them on the CPU."""
    blocks: list[bytes] = []
    sizes: list[int] = []
    symbols: list[SymbolTable] = []
    with Archive(archive_path, engine=select_engine("cpu")) as archive:
        for segment in archive.segments:
            numbers = range(segment.first_block, segment.first_block + len(segment.places))
            opened, statuses = archive.stored.heads.open(numbers)
            check(name, not any(statuses))
            for number, table in zip(numbers, opened, strict=True):
                if table is None or sum(sizes) >= max_size:
                    continue
                (block,), (size,) = archive.stored.read_stream(number, 1)
                blocks.append(bytes(block))
                sizes.append(size)
                symbols.append(table)
    if not blocks:
        raise click.ClickException(f"{name} has no text that is stored as grammars of parts")
    content = memoryview(bytearray(sum(sizes)))
    statuses = select_engine("cpu").decode_blocks(blocks, content, sizes=sizes, symbols=symbols, verify=True)
    check(name, not any(statuses))
    return TextBlocks(name, blocks, sizes, symbols, content)


def _measure(text: TextBlocks, engine: GpuEngine, rounds: int) -> Report:
    size = len(text.content) * text.repeats
    tables = text.tables
    heads = sum(pack_head(table).nbytes for table in tables)
    report = Report(
        f"{text.name}, {len(text.content) / 1e6:.1f} MB of text {text.repeats} times, {len(tables)} parts: GB/s of "
        f"output, medians of {rounds}",
        ["GB/s"],
    )
    report.add("in device memory, each time with heads of its own", size / 1e9 / _resident(text, engine, rounds, True))
    report.add("in device memory, with the same heads", size / 1e9 / _resident(text, engine, rounds, False))
    for label, seconds in _transfers(text, engine, rounds):
        report.add(label, size / 1e9 / seconds)
    ratio = len(text.content) / sum(map(len, text.blocks))
    num_symbols = sum(int.from_bytes(block[32:36], "little") for block in text.blocks)
    report.notes.append(f"{describe_device()}. The blocks have a ratio of {ratio:.2f} without heads.")
    report.notes.append(
        f"A symbol of a block has {len(text.content) / num_symbols:.1f} bytes. Heads take "
        f"{heads / len(text.content):.2f} bytes of device memory per byte of text. All outputs were compared with "
        "those of the CPU."
    )
    return report


def _resident(text: TextBlocks, engine: GpuEngine, rounds: int, own_heads: bool) -> float:
    """Returns the median seconds to decode all blocks, whose payloads and heads are in device memory."""
    packed = {table.number: pack_head(table) for table in text.tables}
    copies: list[dict[int, cupy.ndarray]] = [
        {number: cupy.asarray(head) for number, head in packed.items()}
        for _ in range(text.repeats if own_heads else 1)
    ]
    addresses = [
        np.array([heads[table.number].data.ptr for table in text.symbols], np.uint64)
        for heads in copies
    ]
    of_blocks = np.concatenate(addresses) if own_heads else np.tile(addresses[0], text.repeats)
    resident = ResidentBlocks(engine, text.blocks * text.repeats, text.symbols * text.repeats, of_blocks)
    seconds = time_on_device(resident.decode, rounds)
    resident.output.fill(0xAA)
    resident.decode()
    check(text.name, resident.all_decoded() and _is_output(text, resident.output))
    return seconds


def _is_output(text: TextBlocks, output: cupy.ndarray) -> bool:
    """Returns whether the output has the content of each block at the next multiple of OUTPUT_ALIGNMENT."""
    padded = [-(-size // OUTPUT_ALIGNMENT) * OUTPUT_ALIGNMENT for size in text.sizes]
    total = sum(padded)
    expected, is_content = np.zeros(total, np.uint8), np.zeros(total, np.bool_)
    content = np.frombuffer(text.content, np.uint8)
    start = position = 0
    for size, step in zip(text.sizes, padded, strict=True):
        expected[start : start + size] = content[position : position + size]
        is_content[start : start + size] = True
        start += step
        position += size
    on_device, mask = cupy.asarray(expected), cupy.asarray(is_content)
    rows = output[: total * text.repeats].reshape(-1, total)
    return all(bool(((row == on_device) | ~mask).all()) for row in rows)


def _transfers(text: TextBlocks, engine: GpuEngine, rounds: int) -> list[tuple[str, float]]:
    """Returns labels and median seconds of ways from host memory to host memory."""
    blocks, sizes, symbols = (column * text.repeats for column in (text.blocks, text.sizes, text.symbols))
    out = engine.allocate(sum(sizes))
    results = [("copy to the host alone", time_copy_to_host(out, rounds))]
    keeping = GpuEngine(options=GpuOptions())
    for label, way in (("through the engine", engine), ("through the engine, payloads on the device", keeping)):
        statuses = []
        seconds = time_on_host(
            lambda: statuses.append(way.decode_blocks(blocks, out, sizes=sizes, symbols=symbols)), rounds  # noqa: B023
        )
        check(label, not any(map(any, statuses)))
        rows = np.frombuffer(out, np.uint8).reshape(-1, len(text.content))
        check(label, all(np.array_equal(row, np.frombuffer(text.content, np.uint8)) for row in rows))
        results.append((label, seconds))
    return results
