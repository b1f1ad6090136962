"""Grammars for traversal on a device, compared with the CPU. As a program, runs all cases with the kernels on the host.

Usage: device_cases.py LIBRARY, where LIBRARY was made by native_builds.kernel_library.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from stored_parts import BUILDERS, grammar_of
from tadoc_grammar import MAX_LEVEL

from gompfs._native.statistics import Direction, PostingsTask
from gompfs.gpu.device.arrays import ArrayDevice
from gompfs.statistics.gpu.device_counter import count_words
from gompfs.statistics.postings import postings_report
from gompfs.statistics.traversal import PhaseTimes, Traversal
from gompfs.text.grammar import Grammar

Case = tuple[str, list[Grammar], dict[int, bytes]]


def compare(
    device: ArrayDevice,
    grammars: list[Grammar],
    paths: dict[int, bytes],
    name: str = "",
    directions: Iterable[Direction] = Direction,
    lengths: Iterable[int] = (1, 2, 3, 5),
) -> PhaseTimes:
    """Checks that each task gives the same bytes as the CPU, for all directions. Returns what was done."""
    times = PhaseTimes()
    inos = list(paths)
    for direction in directions:
        how = Traversal(direction, num_threads=2, device=device, times=times)
        for grammar in grammars:
            counts = count_words(grammar, how, inos).counts
            assert (counts == grammar.word_counts(inos)).all(), (name, how)
        for task in (PostingsTask.INVERTED_INDEX, PostingsTask.TERM_VECTOR):
            expected = postings_report(task, grammars, paths).read()
            assert postings_report(task, grammars, paths, traversal=how).read() == expected, (name, task, how)
        ngram_tasks = (PostingsTask.SEQUENCE_COUNT, PostingsTask.RANKED_INVERTED_INDEX)
        for task, length in itertools.product(ngram_tasks, lengths):
            expected = postings_report(task, grammars, paths, ngram_length=length).read()
            found = postings_report(task, grammars, paths, ngram_length=length, traversal=how).read()
            assert found == expected, (name, task, how, length)
    return times


def texts(seed: int) -> Case:
    """Returns segments with rules and without, of files from empty to some thousand words; one is not counted."""
    rng = random.Random(seed)
    vocabulary = [b"a", b"a\x01", b"a\x1fb", b"ab", b"b", b"\xff", b"z" * 300]
    vocabulary += [b"%d" % number for number in range(50)]
    inos = itertools.count(1)
    grammars = []
    for number in range(3):
        files = []
        for _ in range(rng.randrange(30)):
            size = rng.choice((0, 1, 2, 30, 900))
            words = [vocabulary[min(int(rng.paretovariate(0.7)) - 1, 56)] for _ in range(size)]
            files.append((next(inos), b" ".join(words * rng.choice((1, 1, 3)))))
        grammars.append([*BUILDERS.values()][number % 2](files))
    paths = {ino: b"%03d/file" % (ino * 37 % 1000) for ino in range(1, next(inos)) if ino % 13}
    return f"texts {seed}", grammars, paths


def in_parts() -> Iterator[Case]:
    """Yields parts in which the rules of a head are used in many ways."""
    yield "a long chain of rules", [grammar_of([(7, chain(MAX_LEVEL))])], {7: b"file"}
    yield "one long root", [grammar_of([(7, b" ".join(b"%d" % number for number in range(1400)))])], {7: b"file"}
    files = [(ino, b"to be or not to be " * ino) for ino in range(1, 30)]
    grammars = [grammar_of(files[:20]), grammar_of(files[20:])]
    yield "much that is repeated", grammars, {ino: b"%d" % ino for ino, _ in files}
    yield "nothing", [], {}
    yield "no files that count", [grammar_of([(1, b"all of it left out")])], {2: b"file"}


def chain(depth: int) -> bytes:
    """Returns text whose rules are nested to this depth: each consists of the rule before and a word."""
    words = [b"%d" % number for number in range(depth + 1)]
    return b" ".join(b" ".join(words[:end]) for end in range(2, depth + 1) for _ in range(2))


def cases() -> Iterator[Case]:
    """Yields all cases."""
    yield from map(texts, range(4))
    yield from in_parts()


if __name__ == "__main__":
    from host_device import HostDevice

    np.seterr(all="raise", over="ignore")
    for name, grammars, paths in cases():
        compare(HostDevice(Path(sys.argv[1])), grammars, paths, name, lengths=(3,))
        sys.stdout.write(f"{name}\n")
