"""Grammars for traversal on a device, compared with the CPU. As a program, runs all cases with the kernels on the host.

Usage: device_cases.py LIBRARY, where LIBRARY was made by native_builds.kernel_library.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from archive_builder import grammar_part, grammar_section

from gompfs._native.statistics import Direction, PostingsTask
from gompfs.gpu.device.arrays import ArrayDevice
from gompfs.grammar import Grammar, GrammarBuilder
from gompfs.statistics.gpu.device_postings import count_words
from gompfs.statistics.postings import postings_report
from gompfs.statistics.traversal import PhaseTimes, Traversal

Files = Sequence[tuple[int, bytes]]
Case = tuple[str, list[Grammar], dict[int, bytes]]
BUILDERS = ("repair", "sequitur")


def build(files: Files, builder: str = "repair") -> Grammar:
    grammar_builder = GrammarBuilder(builder, "whitespace", num_threads=1)
    grammar_builder.add_files(files)
    return Grammar.from_bytes(b"".join(grammar_builder.finish()))


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
    """Returns segments of both builders, with files from empty to some thousand words; one file is not counted."""
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
        grammars.append(build(files, BUILDERS[number % 2]))
    paths = {ino: b"%03d/file" % (ino * 37 % 1000) for ino in range(1, next(inos)) if ino % 13}
    return f"texts {seed}", grammars, paths


def _hostile(name: str, num_words: int, rules: list[list[int]], places: Sequence[int] = (0,)) -> Case:
    """Returns one file whose rules are given as coded symbols."""
    section = grammar_section([b"w%d" % place for place in places], [grammar_part(7, num_words, list(places), rules)])
    return name, [Grammar.from_bytes(section)], {7: b"file"}


def chain(depth: int) -> Case:
    """Returns rules that each consist of the next rule and a word."""
    links = [[2 * (depth - rule - 1), 1] for rule in range(depth - 1)]
    links[0].append(0)
    return _hostile("a chain of rules", depth, [*links, [1]])


def hostile() -> Iterator[Case]:
    """Yields valid grammars that no builder makes."""
    yield chain(120)
    doubled = [[2 * (41 - rule - 1)] * 2 for rule in range(40)]
    doubled[0].append(0)
    yield _hostile("counts of 41 bits", 1 << 40, [*doubled, [1]])
    yield _hostile("rules without words", 2, [[2, 4, 1, 2, 6, 1, 4, 0], [4, 2], [2, 2, 2], []])
    yield _hostile("rules of one element", 3, [[8, 8, 6, 0], [6], [4], [2], [1]])
    yield _hostile("nothing but rules without words", 0, [[2, 2, 0], []])
    words = [2 * (number % 7) + 1 for number in range(20_000)]
    yield _hostile("one long root", 20_000, [[*words, 0]], range(7))
    many = [2 * (1 + number % 300) for number in range(3000)]
    yield _hostile("a rule of many rules", 6000, [[602, 602, 0], many, *[[1]] * 300])
    part = grammar_part(3, 3, [0], [[1, 2, 1, 0], [1]])
    section = grammar_section([b"w"], [part, part, grammar_part(4, 0, [], [[0]])])
    yield "a file in two parts", [Grammar.from_bytes(section)] * 2, {3: b"file", 4: b"empty"}
    yield "nothing", [], {}
    yield "no files that count", [build([(1, b"all of it left out")])], {2: b"file"}


def cases() -> Iterator[Case]:
    """Yields all cases."""
    yield from map(texts, range(4))
    yield from hostile()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from host_device import HostDevice

    np.seterr(all="raise", over="ignore")
    for name, grammars, paths in cases():
        compare(HostDevice(Path(sys.argv[1])), grammars, paths, name, lengths=(3,))
        sys.stdout.write(f"{name}\n")
