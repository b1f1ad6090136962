"""Measures grammar builders: speed, size of the grammar, and what takes the space."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from gompfs.codec import DEFAULT_BLOCK_SIZE, MIN_LEVEL, CodecOptions
from gompfs.engine import Engine, select_engine
from gompfs.engine.cpu import CpuEngine
from gompfs.errors import EngineUnavailableError
from gompfs.grammar import Grammar, GrammarBuilder, GrammarPart, RuleBuilder
from gompfs.grammar.collector import is_text
from gompfs.grammar.grammar import SPLITTER

from .blocks import regular_files
from .report import Report

_HEADER_SIZE = 32  # of a grammar section
_COLUMNS = ["MB/s", "symbols", "rules", "depth", "section MB", "compressed MB", "dictionary MB", "% of the text"]


@dataclass
class Way:
    """One way to build a grammar, and the seconds of its runs."""

    name: str
    builder: str
    num_threads: int
    build_rules: RuleBuilder | None
    seconds: list[float]
    section: bytes = b""


def measure_grammar(paths: Sequence[Path], rounds: int) -> list[Report]:
    """Returns a table for each file or directory, with a row for each way to build its grammar."""
    return [_measure(path, rounds) for path in paths]


def _measure(path: Path, rounds: int) -> Report:
    files = [(ino, text) for ino, text in enumerate(map(Path.read_bytes, regular_files(path)), 1) if is_text(text)]
    size = sum(len(text) for _, text in files)
    if not size:
        raise click.ClickException(f"{path} contains no text")
    engine = CpuEngine()
    report = Report(f"grammar of {path.name}, {size / 1e6:.1f} MB of text, medians of {rounds}", _COLUMNS)
    ways = list(_ways(engine))
    for _ in range(rounds):
        for way in ways:
            _build(way, files)
    text_size = _compressed(engine, b"".join(text for _, text in files), CodecOptions())
    for way in ways:
        speed = size / 1e6 / statistics.median(way.seconds)
        report.add(way.name, speed, *_describe(engine, way.section, text_size))
    report.notes.append(
        "Compressed sizes are for gompresso-bit in blocks of 64 KiB: sections at level 1, as by pack, and the text at "
        "level 6. A section consists of the dictionary and the parts."
    )
    return report


def _ways(engine: Engine) -> Iterator[Way]:
    for builder in ("repair", "sequitur"):
        for num_threads in sorted({1, engine.num_threads}):
            yield Way(f"{builder}, threads: {num_threads}", builder, num_threads, None, [])
    try:
        gpu = select_engine("gpu")
    except EngineUnavailableError:
        return
    yield Way(f"repair, GPU, threads: {gpu.num_threads}", "repair", gpu.num_threads, gpu.accelerator.build_rules, [])


def _build(way: Way, files: Sequence[tuple[int, bytes]]) -> None:
    started = time.perf_counter()
    builder = GrammarBuilder(way.builder, num_threads=way.num_threads, build_rules=way.build_rules)
    for file in files:
        builder.add_files([file])
    way.section = b"".join(builder.finish())
    way.seconds.append(time.perf_counter() - started)


def _describe(engine: Engine, section: bytes, text_size: int) -> tuple[float, ...]:
    """Returns the columns that describe a section: all columns except the speed."""
    grammar = Grammar.from_bytes(section)
    parts = list(grammar.parts())
    symbols, rules = sum(part.symbols.size for part in parts), sum(part.num_rules for part in parts)
    compressed = _compressed(engine, section, CodecOptions(level=MIN_LEVEL))
    dictionary = section[_HEADER_SIZE : _dictionary_end(section, grammar.num_words)]
    dictionary_size = _compressed(engine, dictionary, CodecOptions(level=MIN_LEVEL))
    depth = max((_depth(part) for part in parts), default=0)
    sizes = (len(section) / 1e6, compressed / 1e6, dictionary_size / 1e6)
    return (symbols, rules, depth, *sizes, 100 * compressed / text_size)


def _compressed(engine: Engine, content: bytes, options: CodecOptions) -> int:
    return sum(block.compressed_size for block in engine.encode_blocks(content, DEFAULT_BLOCK_SIZE, options))


def _depth(part: GrammarPart) -> int:
    """Returns the maximum nesting depth of rules, including the root."""
    num_words = len(part.words)
    owners = np.repeat(np.arange(part.num_rules), np.diff(part.rule_starts.astype(np.int64)))
    is_rule = (part.symbols >= num_words) & (part.symbols != SPLITTER)
    users, used = owners[is_rule], part.symbols[is_rule].astype(np.int64) - num_words
    depths: NDArray[np.int64] = np.ones(part.num_rules, np.int64)
    while True:
        deeper = np.ones_like(depths)
        np.maximum.at(deeper, users, depths[used] + 1)
        if (deeper == depths).all():
            return int(depths[0])
        depths = deeper


def _dictionary_end(section: bytes, num_words: int) -> int:
    """Returns the end of the dictionary: after the rests of its words, whose lengths are stored as numbers."""
    start = _HEADER_SIZE + num_words
    numbers = np.frombuffer(section, np.uint8, offset=start).astype(np.int64)
    lasts = np.flatnonzero(numbers < 128)[:num_words]
    if not num_words:
        return start
    firsts = np.concatenate([[0], lasts[:-1] + 1])
    size = 0
    for digit in range(int((lasts - firsts).max()) + 1):
        has_digit = firsts + digit <= lasts
        size += int((numbers[firsts[has_digit] + digit] & 127).sum()) << 7 * digit
    return start + int(lasts[-1]) + 1 + size
