"""Measures the baselines of the papers on TADOC: Sequitur beside Re-Pair, sequential TADOC beside gompfs on the CPU.

Zhang et al., "Efficient Document Analytics on Compressed Data" (VLDB 2018), builds grammars by Sequitur and traverses
them on one thread with hash tables. gompfs builds grammars by Re-Pair, and traverses them on all threads.
"""

from __future__ import annotations

import ctypes
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gompfs._native import statistics as _statistics
from gompfs._native.statistics import PostingsTask
from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.options import PackOptions
from gompfs.pack import open_source, pack_archive
from gompfs.statistics.content import text_outside_parts
from gompfs.statistics.content_words import content_grammars
from gompfs.statistics.grammar_cache import load_grammars
from gompfs.statistics.paths import files_in_order
from gompfs.statistics.postings import NGRAM_TASKS, new_postings, postings_report, report_of_postings
from gompfs.statistics.query import StatsQuery
from gompfs.statistics.traversal import PhaseTimes, Traversal
from gompfs.text.grammar import SPLITTER, Grammar, GrammarPart
from tools.bench.report import Report, divide

from .shared_library import build_library

BUILDERS = {"Re-Pair": False, "Sequitur": True}
TASKS = (
    PostingsTask.INVERTED_INDEX,
    PostingsTask.TERM_VECTOR,
    PostingsTask.SEQUENCE_COUNT,
    PostingsTask.RANKED_INVERTED_INDEX,
)
_SEQUENTIAL, _ONE_THREAD, _ALL_THREADS = "sequential TADOC", "gompfs, 1 thread", "gompfs, all threads"
_FOLDER = Path(__file__).parent / "native"
_NATIVE = Path(__file__).parents[2] / "native"
_OF_PRODUCT = (
    "text/grammar",
    "text/recursive_pairing",
    "statistics/corpus",
    "statistics/ngrams",
    "statistics/vocabulary",
)


def measure_tadoc_baselines(path: Path, rounds: int) -> Iterator[Report]:
    """Yields a table of grammar builders, and one of statistics, for the text of a file or a directory."""
    with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch:
        yield _measure_builders(_packed(path, Path(scratch, "blocks"), Codec.GOMPRESSO_BIT), path.name, rounds)
        yield _measure_statistics(_packed(path, Path(scratch, "parts"), Codec.GOMPRESSO_TADOC), path.name, rounds)


def _packed(path: Path, target: Path, codec: Codec) -> Path:
    pack_archive([open_source(path)], target, PackOptions(codec), engine=select_engine("cpu"))
    return target


def _measure_builders(path: Path, name: str, rounds: int) -> Report:
    with Archive(path, engine=select_engine("cpu")) as archive:
        text = text_outside_parts(archive, archive.inode_numbers())
        parts = [part for grammar in content_grammars(text) for part in grammar.parts()]
        size = text.num_bytes
    report = Report(
        f"grammars of {name}, {size / 1e6:.1f} MB of text in parts of 8 MiB, one thread, medians of {rounds}",
        ["MB/s", "symbols", "rules", "depth"],
    )
    for builder, by_sequitur in BUILDERS.items():
        seconds = []
        for _ in range(rounds):
            started = time.perf_counter()
            built = [build_rules(part.symbols, len(part.words), by_sequitur=by_sequitur) for part in parts]
            seconds.append(time.perf_counter() - started)
        depths = (depth_of(rules, len(part.words)) for rules, part in zip(built, parts, strict=True))
        num_symbols, num_rules = sum(symbols.size for _, symbols in built), sum(len(starts) - 1 for starts, _ in built)
        speed = divide(size / 1e6, statistics.median(seconds))
        report.add(builder, speed, num_symbols, num_rules, max(depths, default=0))
    report.notes.append("From words, which are numbers already, to rules. Words alone: separators are left out.")
    return report


def _measure_statistics(path: Path, name: str, rounds: int) -> Report:
    ways = (_SEQUENTIAL, _ONE_THREAD, _ALL_THREADS)
    report = Report(
        f"statistics of {name}, seconds from the loaded grammar to the finished text, medians of {rounds}",
        [*ways, *(f"{_SEQUENTIAL} / {way}" for way in ways[1:])],
    )
    with Archive(path, engine=select_engine("cpu")) as archive:
        grammars = load_grammars(archive)
        counted = archive.inode_numbers() & set().union(*(grammar.inos() for grammar in grammars))
        paths = {ino: path for ino, path in archive.paths().items() if ino in counted}
    for task in TASKS:
        length = StatsQuery.ngram_length if task in NGRAM_TASKS else 1
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(rounds):
            texts = set()
            for way in ways:
                started = time.perf_counter()
                if way == _SEQUENTIAL:
                    text = sequential_report(task, grammars[0], paths, length) if grammars else b""
                else:
                    how = Traversal(num_threads=way == _ONE_THREAD)
                    text = postings_report(task, grammars, paths, ngram_length=length, traversal=how).read()
                seconds[way].append(time.perf_counter() - started)
                texts.add(text)
            assert len(texts) == 1, f"{task}: the ways give different bytes"
        medians = {way: statistics.median(values) for way, values in seconds.items()}
        quotients = (divide(medians[_SEQUENTIAL], medians[way]) for way in ways[1:])
        report.add(task.name.lower(), *medians.values(), *quotients)
    report.notes.append(
        "All ways gave the same bytes. The time of sequential TADOC includes a copy of the grammar. It traverses the "
        "grammar of Re-Pair, as gompfs does."
    )
    return report


def sequential_report(task: PostingsTask, grammar: Grammar, paths: Mapping[int, bytes], ngram_length: int) -> bytes:
    """Returns the text of a task, whose n-grams have `ngram_length` words, counted by sequential TADOC."""
    files = files_in_order(paths)
    per_file = task is not PostingsTask.SEQUENCE_COUNT
    keys, numbers, counts = _count(grammar, [ino for ino, _ in files], ngram_length, per_file=per_file)
    is_new = np.any(keys[1:] != keys[:-1], axis=1)
    terms = np.concatenate([np.zeros(min(len(keys), 1), np.uint64), np.cumsum(is_new, dtype=np.uint64)])
    distinct = np.ascontiguousarray(keys[np.concatenate([np.ones(min(len(keys), 1), np.bool_), is_new])])
    postings = new_postings()
    rows = np.stack([terms | numbers.astype(np.uint64) << np.uint64(32), counts], axis=1)
    postings.add(distinct, np.ascontiguousarray(rows), 1)
    corpus = _statistics.Corpus([grammar.native], files, ngram_length)
    return report_of_postings(task, corpus, postings, 0, 1, PhaseTimes()).read()


def build_rules(
    symbols: NDArray[np.uint32], num_words: int, *, by_sequitur: bool
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Returns the rules of a part, which is given without rules: where each begins, and the symbols of all."""
    library = _library()
    rules = ctypes.c_void_p(
        library.build_rules(_address(symbols), ctypes.c_uint64(symbols.size), num_words, by_sequitur)
    )
    try:
        count = library.num_rules(rules) + 1
        starts = np.ctypeslib.as_array(library.rule_starts(rules), (count,)).copy()
        return starts, np.ctypeslib.as_array(library.rule_symbols(rules), (int(starts[-1]),)).copy()
    finally:
        library.free_rules(rules)


def depth_of(rules: tuple[NDArray[np.uint64], NDArray[np.uint32]], num_words: int) -> int:
    """Returns the maximum nesting depth of rules, including the root."""
    starts, symbols = rules
    num_rules = len(starts) - 1
    owners = np.repeat(np.arange(num_rules), np.diff(starts.astype(np.int64)))
    is_rule = (symbols >= num_words) & (symbols != SPLITTER)
    users, used = owners[is_rule], symbols[is_rule].astype(np.int64) - num_words
    depths: NDArray[np.int64] = np.ones(num_rules, np.int64)
    while True:
        deeper = np.ones_like(depths)
        np.maximum.at(deeper, users, depths[used] + 1)
        if (deeper == depths).all():
            return int(depths[0])
        depths = deeper


def _count(
    grammar: Grammar, inos: Sequence[int], ngram_length: int, *, per_file: bool
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint64]]:
    """Returns the n-grams of files in the order of keys and files: keys as two halves, numbers of files, and counts."""
    library = _library()
    words = [grammar.word(number) for number in range(grammar.num_words)]
    starts = np.concatenate([[0], np.cumsum([len(word) for word in words], dtype=np.uint64)]).astype(np.uint64)
    native = ctypes.c_void_p(library.new_grammar(_address(starts), ctypes.c_uint64(len(words)), b"".join(words)))
    try:
        for part in grammar.parts():
            _add_part(library, native, part)
        numbers = np.array(inos, np.uint64)
        size = ctypes.c_uint64(numbers.size)
        found = ctypes.c_void_p(library.count_ngrams(native, _address(numbers), size, ngram_length, per_file))
    finally:
        library.free_grammar(native)
    count = library.num_ngrams(found)
    keys, files, counts = np.empty((count, 2), np.uint64), np.empty(count, np.uint32), np.empty(count, np.uint64)
    library.copy_ngrams(found, _address(keys), _address(files), _address(counts))
    library.free_ngrams(found)
    return keys, files, counts


def _add_part(library: ctypes.CDLL, native: ctypes.c_void_p, part: GrammarPart) -> None:
    sizes = map(ctypes.c_uint64, (part.num_tokens, part.inos.size, len(part.words), part.num_rules))
    num_tokens, num_files, num_words, num_rules = sizes
    library.add_part(
        native, part.continues, num_tokens, _address(part.inos), num_files, _address(part.words), num_words,
        _address(part.rule_starts), num_rules, _address(part.symbols),
    )  # fmt: skip


def _address(array: NDArray[np.uint64] | NDArray[np.uint32]) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


@cache
def _library() -> ctypes.CDLL:
    """Compiles the baselines, with the sources of gompfs that they use."""
    sources = [*sorted(_FOLDER.glob("*.cpp")), *(_NATIVE / f"{name}.cpp" for name in _OF_PRODUCT)]
    library = build_library(sources, [_NATIVE, _NATIVE.parent / "kernels", _FOLDER])
    for name in ("build_rules", "new_grammar", "count_ngrams"):
        getattr(library, name).restype = ctypes.c_void_p
    library.num_rules.restype = ctypes.c_uint32
    library.num_ngrams.restype = ctypes.c_uint64
    library.rule_starts.restype = ctypes.POINTER(ctypes.c_uint64)
    library.rule_symbols.restype = ctypes.POINTER(ctypes.c_uint32)
    return library
