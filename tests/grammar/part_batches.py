"""Several texts as one batch of parts, and the grammar sections that come of it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
from grammars import build, make_text

from gompfs import _grammar
from gompfs.grammar import PartsInRules, PartsInWords, RuleBuilder

Texts = Sequence[bytes]


def sections_of_batch(batch: Sequence[Texts], build_rules: RuleBuilder) -> list[bytes]:
    """The section of each item of a batch, a part of some files, where all get their rules at once."""
    builders = []
    words: list[tuple[list[int], PartsInWords]] = []
    for texts in batch:
        builder = _grammar.GrammarBuilder(0, b"", 1, True)
        builder.add_files(list(enumerate(texts, 1)))
        builder.finish()
        taken = builder.take_words(1, 1)
        assert taken is not None
        assert builder.take_words(1, 1) is None
        builders.append(builder)
        words.append((taken[0], PartsInWords(*taken[1:])))
    parts = build_rules(_join([part for _, part in words]))
    sections = []
    for index, builder in enumerate(builders):
        rules = _rules_of(parts, index)
        builder.give_rules(words[index][0], rules.symbols, rules.ends, rules.places)
        sections.append(b"".join(iter(builder.next_piece, None)))
    return sections


def section_of_core(texts: Texts) -> bytes:
    """The section that the C++ core makes of these files by itself."""
    return build(list(enumerate(texts, 1)))


def _join(parts: Sequence[PartsInWords]) -> PartsInWords:
    sizes = [0, *(part.symbols.size for part in parts)]
    return PartsInWords(
        np.concatenate([part.symbols for part in parts]),
        np.cumsum(sizes).astype(np.uint32),
        np.concatenate([part.num_words for part in parts]),
    )


def _rules_of(parts: PartsInRules, index: int) -> PartsInRules:
    begin, end = (int(place) for place in parts.places[index : index + 2])
    start = int(parts.ends[begin - 1]) if begin else 0
    ends = parts.ends[begin:end] - np.uint32(start)
    places = np.array([0, end - begin], np.uint32)
    return PartsInRules(parts.symbols[start : start + int(ends[-1])], ends, places)


def batches() -> Iterator[list[Texts]]:
    """Batches in which digrams come back in all ways: runs, ascents in frequency, few and many words, equal files."""
    yield [[b""]]
    yield [[b"a"], [b""], [b"", b"a", b""]]
    yield [[b"a " * length] for length in (2, 3, 4, 5, 7, 8, 9, 64, 5000)]
    yield [[b"a " * 4000, b"b " + b"a " * 2500 + b"b a", b"a " * 3999]]
    # Frequencies that rise and fall over long stretches: word i occurs i times.
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
