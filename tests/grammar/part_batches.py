"""Several texts as one batch of parts, and the grammar sections made from them."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from grammars import build, make_text
from numpy.typing import NDArray

from gompfs._native import grammar as _grammar
from gompfs.grammar import PartsInRules, PartsInText, RuleBuilder

Texts = Sequence[bytes]
Numbers = NDArray[np.uint32]


def sections_of_batch(batch: Sequence[Texts], build_rules: RuleBuilder) -> list[bytes]:
    """Returns a section for each item of a batch, where an item is a part of some files.

    All get their rules in one call.
    """
    builders = []
    parts: list[tuple[list[int], PartsInText]] = []
    for texts in batch:
        builder = _grammar.GrammarBuilder(_grammar.BuilderKind.REPAIR, _grammar.WordRule.WHITESPACE, b"", 1, True)
        builder.add_files(list(enumerate(texts, 1)))
        builder.finish()
        taken = builder.take_texts(1, 1, allocate, 1)
        assert taken is not None
        assert builder.take_texts(1, 1, allocate, 1) is None
        builders.append(builder)
        numbers, text, file_ends, part_files = taken
        parts.append((numbers, PartsInText(np.frombuffer(text, np.uint8), file_ends, part_files, "whitespace")))
    rules = build_rules(_join([part for _, part in parts]))
    sections = []
    for index, builder in enumerate(builders):
        builder.give_rules(parts[index][0], *dataclasses.astuple(_rules_of(rules, index)))
        sections.append(b"".join(_pieces_of(builder)))
    return sections


def _pieces_of(builder: _grammar.GrammarBuilder) -> Iterator[NDArray[np.uint8]]:
    while (piece := builder.next_piece()) is not None:
        yield piece


def allocate(size: int) -> memoryview:
    """Returns memory of `size` bytes."""
    return memoryview(bytearray(size))


def section_of_core(texts: Texts) -> bytes:
    """Returns the section that the C++ core makes of these files without `build_rules`."""
    return build(list(enumerate(texts, 1)))


def _join(parts: Sequence[PartsInText]) -> PartsInText:
    starts = np.cumsum([0, *(part.text.size for part in parts)]).astype(np.uint32)
    ends = [part.file_ends + start for part, start in zip(parts, starts[:-1], strict=True)]
    files = np.cumsum([0, *(part.file_ends.size for part in parts)]).astype(np.uint32)
    return PartsInText(np.concatenate([part.text for part in parts]), np.concatenate(ends), files, "whitespace")


def _rules_of(parts: PartsInRules, index: int) -> PartsInRules:
    word_bytes, word_ends, part_words = _slice(parts.word_bytes, parts.word_ends, parts.part_words, index)
    symbols, rule_ends, part_rules = _slice(parts.symbols, parts.rule_ends, parts.part_rules, index)
    return PartsInRules(word_bytes, word_ends, part_words, symbols, rule_ends, part_rules)


def _slice(items: NDArray[Any], ends: Numbers, bounds: Numbers, index: int) -> tuple[NDArray[Any], Numbers, Numbers]:
    """Returns what belongs to one part: its items, the end of each word or rule in them, and their number."""
    begin, end = (int(bound) for bound in bounds[index : index + 2])
    start = int(ends[begin - 1]) if begin else 0
    own = ends[begin:end] - np.uint32(start)
    stop = start + int(own[-1]) if own.size else start
    return items[start:stop], own, np.array([0, end - begin], np.uint32)


def batches() -> Iterator[list[Texts]]:
    """Yields batches with many patterns of digrams: runs, rising frequencies, few and many words, equal files."""
    yield [[b""]]
    yield [[b"a"], [b""], [b"", b"a", b""]]
    yield [[b"a " * length] for length in (2, 3, 4, 5, 7, 8, 9, 64, 5000)]
    yield [[b"a " * 4000, b"b " + b"a " * 2500 + b"b a", b"a " * 3999]]
    # Frequencies that rise and fall over long passages: word i occurs i times.
    ladder = b" ".join(b"w%d w%d" % (i, i + 1) for top in range(60) for i in range(top))
    yield [[ladder, ladder[::-1]], [b" ".join(reversed(ladder.split()))]]
    yield [[make_text(seed, 20_000, 30 * 4**seed), make_text(seed, 3000)] for seed in range(4)]
    twice = make_text(9, 30_000)
    yield [[twice, twice, twice[: len(twice) // 2]], [twice]]
    rng = random.Random(1)
    yield [
        [make_text(rng.randrange(99), rng.randrange(600), rng.randrange(2, 200)) for _ in range(rng.randrange(1, 9))]
        for _ in range(70)
    ]
