"""Measures gompresso-tadoc on a GPU: text in device memory that is stored as grammars of parts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
import cupy
import numpy as np

from gompfs._native.text import PartHeads, SymbolTable
from gompfs.archive import Archive
from gompfs.archive.part_heads import open_part_heads
from gompfs.codec import BlockStatus, Codec
from gompfs.codec.block import Buffer
from gompfs.codec.stored_head import StoredHead, StoredWords
from gompfs.engine import select_engine
from gompfs.engine.gpu import GpuEngine
from gompfs.format import SUPERBLOCK_MAGIC, LocalFile
from gompfs.gpu.decode.head_store import pack_head
from gompfs.gpu.decode.layout import OUTPUT_ALIGNMENT
from gompfs.options import GpuOptions, PackOptions
from gompfs.pack import open_source, pack_archive
from gompfs.threads import default_threads

from .device import OUTPUT_BYTES, check, describe_device, time_copy_to_host, time_on_device, time_on_host
from .report import Report
from .resident import ResidentBlocks, ResidentHeads
from .resident_statistics import measure_resident_statistics

if TYPE_CHECKING:
    from gompfs.engine.base import PartSymbols


@dataclass(frozen=True)
class TextBlocks:
    """Blocks of parts, and what they decode to. All blocks but the last of a part have the same size."""

    name: str
    open_part_heads: Callable[[], PartHeads]
    """Returns the heads, none of which is open yet, and the section `words`, decoded."""
    numbers: list[int] = field(default_factory=list)
    """The numbers of the blocks in the stream."""
    blocks: list[bytes] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    symbols: list[SymbolTable] = field(default_factory=list)
    heads: list[tuple[Buffer, StoredWords]] = field(default_factory=list)
    """The head of each block's part as it is stored, and the words that it refers to."""

    @property
    def tables(self) -> list[SymbolTable]:
        """The symbols of the parts, each once, in the order of the blocks."""
        return list({table.number: table for table in self.symbols}.values())

    @property
    def size(self) -> int:
        """The size of the text in bytes."""
        return sum(self.sizes)

    @property
    def repeats(self) -> int:
        """How often the blocks are decoded at once, to keep a device busy."""
        return max(OUTPUT_BYTES // self.size, 1)

    def stored_heads(self) -> list[StoredHead]:
        """Returns the head of each block's part. No engine has seen these heads before."""
        made = {id(head): _stored_head(head, words) for head, words in self.heads}
        return [made[id(head)] for head, _ in self.heads]


def _stored_head(head: Buffer, words: StoredWords) -> StoredHead:
    """Returns a head that only a device may open."""

    def open_on_host() -> NoReturn:
        raise click.ClickException("the device has too little memory to open heads")

    return StoredHead(lambda: head, words, open_on_host)


def measure_tadoc(
    paths: Sequence[Path], block_size: int, part_size: int | None, max_size: int, rounds: int, what: str | None = None
) -> list[Report]:
    """Returns tables for each archive, and for each other file or directory, which is packed.

    `what` is "blocks", "statistics", or None for both.
    """
    engine = GpuEngine()
    reports = []
    for path in paths:
        with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch:
            archive_path = _archive_of(path, Path(scratch), block_size, part_size)
            if what != "statistics":
                with Archive(archive_path, engine=select_engine("cpu")) as archive:
                    text = _read(archive, archive_path, path.name, max_size)
                    reports.append(_measure(text, _content_of(text), engine, rounds))
            if what != "blocks":
                memory = GpuEngine(options=GpuOptions()).accelerator.resident_memory()
                assert memory is not None
                reports += measure_resident_statistics(archive_path, *memory.open(), rounds, path.name)
    return reports


def _archive_of(path: Path, scratch: Path, block_size: int, part_size: int | None) -> Path:
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(SUPERBLOCK_MAGIC)) == SUPERBLOCK_MAGIC:
                return path
    target = scratch / "archive"
    options = PackOptions(Codec.GOMPRESSO_TADOC, block_size=block_size, part_size=part_size)
    pack_archive([open_source(path)], target, options, engine=select_engine("cpu"))
    return target


def _read(archive: Archive, path: Path, name: str, max_size: int) -> TextBlocks:
    """Reads blocks of parts, and the heads of these parts, from the start of an archive."""

    def heads() -> PartHeads:
        with closing(LocalFile.open(path)) as file:
            opened = open_part_heads(file, default_threads(), archive.segments, archive.sections, archive.block_size)
        for index in range(len(archive.stored.stored_heads)):
            opened.words(index)
        return opened

    text = TextBlocks(name, heads)
    size = 0
    raw: dict[int, Buffer] = {}
    for segment in archive.segments:
        stored_heads = archive.stored.stored_heads.get(segment.number)
        numbers = range(segment.first_block, segment.first_block + len(segment.blocks))
        for number, head in zip(numbers, stored_heads.find(numbers)[0] if stored_heads else [], strict=False):
            if head is None or size >= max_size:
                continue
            (table,), (status,) = archive.stored.heads.open([number])
            assert isinstance(table, SymbolTable)
            assert not status
            (block,), (block_size,) = archive.stored.read_stream(number, 1)
            size += block_size
            text.numbers.append(number)
            text.blocks.append(bytes(block))
            text.sizes.append(block_size)
            text.symbols.append(table)
            text.heads.append((raw.get(head.number) or raw.setdefault(head.number, head.read()), head.words))
    if not text.blocks:
        raise click.ClickException(f"{name} has no text that is stored as grammars of parts")
    return text


def _content_of(text: TextBlocks) -> memoryview:
    """Decodes the blocks on the CPU."""
    content = memoryview(bytearray(text.size))
    statuses = select_engine("cpu").decode_blocks(
        text.blocks, content, sizes=text.sizes, symbols=text.symbols, verify=True
    )
    check(text.name, not any(statuses))
    return content


def _measure(text: TextBlocks, content: memoryview, engine: GpuEngine, rounds: int) -> Report:
    size = text.size * text.repeats
    tables = text.tables
    report = Report(
        f"{text.name}, {text.size / 1e6:.1f} MB of text {text.repeats} times, {len(tables)} parts: GB/s of output, "
        f"medians of {rounds}",
        ["GB/s"],
    )
    for label, own_heads in (("each time heads of its own", True), ("always the same heads", False)):
        report.add(f"heads resident, {label}", size / 1e9 / _resident(text, content, engine, rounds, own_heads))
    opened, alone = _opened_on_device(text, content, engine, rounds)
    report.add("with heads, opened on the device, no transfers", size / 1e9 / opened)
    report.add("opening of heads on the device alone, no transfers", size / 1e9 / alone)
    for label, num_bytes, seconds in _transfers(text, content, engine, rounds):
        report.add(label, num_bytes / 1e9 / seconds)
    num_symbols = sum(int.from_bytes(block[32:36], "little") for block in text.blocks)
    stored = sum(len(head) for head in {id(head): head for head, _ in text.heads}.values())
    report.notes.append(
        f"{describe_device()}. The blocks have a ratio of {text.size / sum(map(len, text.blocks)):.2f} without heads, "
        f"and {text.size / (sum(map(len, text.blocks)) + stored):.2f} with heads. Neither counts the section of words."
    )
    report.notes.append(
        f"A symbol of a block has {text.size / num_symbols:.1f} bytes. Opened heads take "
        f"{sum(pack_head(table).nbytes for table in tables) / text.size:.2f} bytes of device memory per byte of text. "
        "All outputs were compared with those of the CPU."
    )
    report.notes.append(
        "Resident: payloads, and opened heads, are in device memory. No transfers: payloads, stored heads and the "
        "decoded section of words are in device memory, and so is the output. Through the engine: from host memory to "
        "host memory, all transfers counted; with heads, the text once, else repeated. The host opens heads on one "
        "thread."
    )
    return report


def _resident(text: TextBlocks, content: memoryview, engine: GpuEngine, rounds: int, own_heads: bool) -> float:
    """Returns the median seconds to decode all blocks, whose payloads and heads are in device memory."""
    packed = {table.number: pack_head(table) for table in text.tables}
    copies: list[dict[int, cupy.ndarray]] = [
        {number: cupy.asarray(head) for number, head in packed.items()} for _ in range(text.repeats if own_heads else 1)
    ]
    addresses = [np.array([heads[table.number].data.ptr for table in text.symbols], np.uint64) for heads in copies]
    of_blocks = np.concatenate(addresses) if own_heads else np.tile(addresses[0], text.repeats)
    resident = ResidentBlocks(engine, text.blocks * text.repeats, text.symbols * text.repeats, of_blocks)
    seconds = time_on_device(resident.decode, rounds)
    resident.output.fill(0xAA)
    resident.decode()
    check(text.name, resident.all_decoded() and _is_output(text, content, resident.output))
    return seconds


def _opened_on_device(text: TextBlocks, content: memoryview, engine: GpuEngine, rounds: int) -> tuple[float, float]:
    """Returns the median seconds to open all heads and to decode all blocks, and to open the heads alone."""
    heads = ResidentHeads(engine, text.heads, text.repeats)
    resident = ResidentBlocks(engine, text.blocks * text.repeats, text.symbols * text.repeats, heads.addresses)

    def open_and_decode() -> None:
        heads.open()
        resident.decode()

    alone = time_on_device(heads.open, rounds)
    seconds = time_on_device(open_and_decode, rounds)
    heads.clear()
    resident.output.fill(0xAA)
    open_and_decode()
    is_right = heads.all_opened() and resident.all_decoded() and _is_output(text, content, resident.output)
    check(text.name, is_right)
    return seconds, alone


def _is_output(text: TextBlocks, content: memoryview, output: cupy.ndarray) -> bool:
    """Returns whether the output has the content of each block at the next multiple of OUTPUT_ALIGNMENT."""
    padded = [-(-size // OUTPUT_ALIGNMENT) * OUTPUT_ALIGNMENT for size in text.sizes]
    total = sum(padded)
    expected, is_content = np.zeros(total, np.uint8), np.zeros(total, np.bool_)
    decoded = np.frombuffer(content, np.uint8)
    start = position = 0
    for size, step in zip(text.sizes, padded, strict=True):
        expected[start : start + size] = decoded[position : position + size]
        is_content[start : start + size] = True
        start += step
        position += size
    on_device, mask = cupy.asarray(expected), cupy.asarray(is_content)
    rows = output[: total * text.repeats].reshape(-1, total)
    return all(bool(((row == on_device) | ~mask).all()) for row in rows)


def _transfers(text: TextBlocks, content: memoryview, engine: GpuEngine, rounds: int) -> list[tuple[str, int, float]]:
    """Returns ways from host memory to host memory: labels, bytes of output, and median seconds."""
    size = text.size * text.repeats
    out = engine.allocate(size)
    results = [("copy to the host alone", size, time_copy_to_host(out, rounds))]
    keeping = GpuEngine(options=GpuOptions())
    closed = iter([text.open_part_heads() for _ in range(rounds + 1)])

    def open_on_host() -> Sequence[PartSymbols | None]:
        symbols, statuses = next(closed).open(text.numbers)
        check(text.name, not any(statuses))
        return symbols

    ways: list[tuple[str, GpuEngine, int, Callable[[], Sequence[PartSymbols | None]]]] = [
        ("through the engine, heads resident", engine, text.repeats, lambda: text.symbols),
        ("through the engine, heads and payloads resident", keeping, text.repeats, lambda: text.symbols),
        ("through the engine, with heads, opened on the device", engine, 1, text.stored_heads),
        ("through the engine, with heads, opened on the host", engine, 1, open_on_host),
    ]
    for label, way, repeats, symbols_of in ways:
        blocks, sizes = text.blocks * repeats, text.sizes * repeats
        target = out[: text.size * repeats]
        statuses: list[list[BlockStatus]] = []

        def decode() -> None:
            symbols = list(symbols_of()) * repeats  # noqa: B023
            statuses.append(way.decode_blocks(blocks, target, sizes=sizes, symbols=symbols))  # noqa: B023

        seconds = time_on_host(decode, rounds)
        check(label, not any(map(any, statuses)))
        rows = np.frombuffer(target, np.uint8).reshape(-1, text.size)
        check(label, all(np.array_equal(row, np.frombuffer(content, np.uint8)) for row in rows))
        results.append((label, len(target), seconds))
    return results
