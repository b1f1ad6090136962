"""Builds grammar sections of files, and checks everything that a grammar guarantees about them."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from gompfs.grammar import Grammar, GrammarBuilder, GrammarPart, reference
from gompfs.grammar.grammar import SPLITTER

Files = Sequence[tuple[int, bytes]]
BUILDERS = ("repair", "sequitur")


def build(files: Files, builder: str = "repair", words: str = "whitespace", num_threads: int = 1) -> bytes:
    """Returns the grammar section of whole files."""
    grammar_builder = GrammarBuilder(builder, words, num_threads)
    grammar_builder.add_files(files)
    return b"".join(grammar_builder.finish())


def build_in_pieces(
    files: Files, sizes: Iterable[int], builder: str = "repair", words: str = "whitespace", num_threads: int = 1
) -> bytes:
    """Returns the grammar section of files that come in pieces of these sizes; `sizes` must be endless."""
    grammar_builder = GrammarBuilder(builder, words, num_threads)
    next_size = iter(sizes)
    for ino, content in files:
        grammar_builder.begin_file(ino)
        start = 0
        while start < len(content):
            end = start + next(next_size)
            grammar_builder.add_bytes(content[start:end])
            start = end
        grammar_builder.end_file()
    return b"".join(grammar_builder.finish())


def make_text(seed: int, size: int, num_words: int = 2000, repeats: float = 0.3) -> bytes:
    """Returns words of falling frequency with various whitespace between them, and some repeated passages."""
    rng = random.Random(seed)
    vocabulary = [rng.randbytes(rng.randrange(1, 9)).translate(_VISIBLE) for _ in range(num_words)]
    pieces: list[bytes] = []
    length = 0
    while length < size:
        if pieces and rng.random() < repeats:
            start = rng.randrange(len(pieces))
            chosen = pieces[start : start + 2 * rng.randrange(30)]
        else:
            word = vocabulary[min(int(rng.paretovariate(0.8)) - 1, num_words - 1)]
            chosen = [word, rng.choice((b" ", b" ", b"\n", b"\t \r", b"\v\f"))]
        pieces += chosen
        length += sum(map(len, chosen))
    return b"".join(pieces)[:size]


_VISIBLE = bytes(b"abcdefghijklmnopqrstuvwxyz.,'-\xc3\xa9"[byte % 32] for byte in range(256))


def texts_of(grammar: Grammar) -> list[tuple[int, list[bytes]]]:
    """Returns the files of a grammar as (inode number, words), with files joined that parts have cut."""
    words = [grammar.word(number) for number in range(grammar.num_words)]
    files: list[tuple[int, list[bytes]]] = []
    for part in grammar.parts():
        expanded = reference.expand_part(part)
        assert len(expanded) == len(part.inos)
        for index, (ino, numbers) in enumerate(zip(part.inos.tolist(), expanded, strict=True)):
            if index == 0 and part.continues:
                assert files[-1][0] == ino
                files[-1][1].extend(words[number] for number in numbers)
            else:
                files.append((ino, [words[number] for number in numbers]))
    return files


def check_rules(part: GrammarPart, builder: str) -> None:
    """Checks the rules of either builder, and for sequitur also digram uniqueness."""
    num_words = len(part.words)
    starts = part.rule_starts.astype(np.int64)
    owners = np.repeat(np.arange(part.num_rules), np.diff(starts))
    symbols = part.symbols.astype(np.int64)
    is_rule = (symbols >= num_words) & (symbols != SPLITTER)
    used = symbols[is_rule] - num_words
    assert (used > owners[is_rule]).all(), "rules use only rules of higher numbers"
    assert (used < part.num_rules).all()
    assert (np.bincount(used, minlength=part.num_rules)[1:] >= 2).all(), "every rule is used twice or more"
    assert (np.diff(starts)[1:] >= 2).all()
    assert not (symbols[owners > 0] == SPLITTER).any()
    assert int((symbols == SPLITTER).sum()) == len(part.inos)
    assert part.num_tokens == sum(map(len, reference.expand_part(part)))
    if builder == "sequitur":
        check_digrams(symbols.tolist(), starts.tolist())


def check_digrams(symbols: list[int], starts: list[int]) -> None:
    """Checks that no digram occurs twice. The two overlapping digrams of three equal symbols count once."""
    last_seen: dict[tuple[int, int], int] = {}
    for start, end in itertools.pairwise(starts):
        for at in range(start, end - 1):
            digram = (symbols[at], symbols[at + 1])
            if SPLITTER not in digram:
                assert last_seen.setdefault(digram, at) in (at, at - 1), f"{digram} occurs twice"


def check(section: bytes, files: Files, builder: str, words: str) -> Grammar:
    """Checks that a section is a valid grammar of exactly these files, and that the C++ core counts correctly."""
    grammar = Grammar.from_bytes(section)
    assert (grammar.builder, grammar.word_rule) == (builder, words)
    texts = [(ino, reference.split_words(content, words)) for ino, content in files]
    assert texts_of(grammar) == texts
    assert grammar.inos() == {ino for ino, _ in files}
    expected = Counter(word for _, text in texts for word in text)
    dictionary = [grammar.word(number) for number in range(grammar.num_words)]
    assert dictionary == sorted(expected)
    for part in grammar.parts():
        check_rules(part, builder)
        assert len(set(part.words.tolist())) == len(part.words)
    assert reference.word_counts(grammar) == expected
    assert counts_of(grammar) == expected
    return grammar


def counts_of(grammar: Grammar, excluded_inos: Sequence[int] = (), num_threads: int = 1) -> dict[bytes, int]:
    """Returns the counts of the C++ core, without words that do not occur."""
    counts = grammar.word_counts(grammar.inos().difference(excluded_inos), num_threads)
    assert counts.shape == (grammar.num_words,)
    return {grammar.word(int(number)): int(counts[number]) for number in np.flatnonzero(counts)}
