"""Damaged gompresso-tadoc through the C++ core, under AddressSanitizer and UndefinedBehaviorSanitizer.

The core must accept, refuse and return exactly what the readable decoder does, whatever was changed.
"""

from __future__ import annotations

import os
import random
import struct
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from mutations import mutate
from native_builds import tadoc_program
from oracle.constants import MAX_BLOCK_SIZE
from oracle.sequences import PayloadError
from oracle.tadoc import Part, decode_tadoc, read_head, read_words
from payloads import CORPUS
from tadoc_builder import GlobalTokens, build_part
from tadoc_grammar import Piece, make_grammar, tokens_of
from xxhash import xxh3_64_intdigest

ALICE = (CORPUS / "carroll" / "alice29.txt").read_bytes()
QUICK, MANY = 2000, 100_000
_BATCH = 2000
_MAX_ALLOCATION = 64  # MiB


@dataclass(frozen=True)
class Case:
    section: bytes
    pool_size: int
    head: bytes
    blocks: tuple[tuple[int, bytes], ...]
    """The size of the content of each block, and its payload."""

    def to_bytes(self) -> bytes:
        pieces = [_sized(self.section), struct.pack("<I", self.pool_size), _sized(self.head)]
        pieces.append(struct.pack("<I", len(self.blocks)))
        pieces += [struct.pack("<I", size) + _sized(payload) for size, payload in self.blocks]
        return b"".join(pieces)


def _sized(content: bytes) -> bytes:
    return struct.pack("<I", len(content)) + content


def _digest(content: bytes) -> str:
    return f"{xxh3_64_intdigest(content):016x}"


def make_seed(rng: random.Random) -> Case:
    """Returns a sound case: some lines of text, with any of the choices that a writer has."""
    start = rng.randrange(100_000)
    lines = ALICE[start : start + rng.choice((60, 400, 2000))].splitlines(keepends=True)
    text = b"".join(rng.choices(lines, k=rng.randint(1, 30)))
    middle = rng.randrange(len(text)) if rng.random() < 0.5 else len(text)
    pieces = [Piece(piece) for piece in (text[:middle], text[middle:]) if piece]
    tokens = tokens_of(pieces)
    found = list(dict.fromkeys(token for token in tokens if token.content))  # type: ignore[union-attr]
    shared = [token for token in found if rng.random() < 0.3]
    words = [token.content for token in shared if token.is_word] + [b"pre%04d" % number for number in range(300)]
    rng.shuffle(words)
    global_tokens = GlobalTokens(words, [token.content for token in shared if not token.is_word])
    chosen = rng if rng.random() < 0.5 else None
    grammar = make_grammar(tokens, rng.choice((0, 5, 40)))
    part = build_part(pieces, global_tokens, block_size=rng.choice((64, 300, 5000)), rng=chosen, grammar=grammar)
    sizes = map(len, part.contents)
    return Case(global_tokens.section(), len(part.pool), part.head, tuple(zip(sizes, part.blocks, strict=True)))


def damage(case: Case, rng: random.Random) -> Case:
    """Changes the section, the head, blocks, or a size."""
    kind = rng.random()
    if kind < 0.2:
        return replace(case, section=mutate(case.section, rng))
    if kind < 0.65:
        return replace(case, head=_mutate_head(case.head, rng))
    if kind < 0.7:
        return replace(case, pool_size=max(case.pool_size + rng.choice((-1, 1, 4000, -case.pool_size)), 0))
    at = rng.randrange(len(case.blocks))
    size, payload = case.blocks[at]
    changed = (rng.choice((0, 1, size + 1, size - 1, MAX_BLOCK_SIZE)), payload)
    changed = changed if kind < 0.75 else (size, mutate(payload, rng))
    return replace(case, blocks=(*case.blocks[:at], changed, *case.blocks[at + 1 :]))


def _mutate_head(head: bytes, rng: random.Random) -> bytes:
    """Mutates a head; in a third of the cases, only what follows the token bytes."""
    (stored,) = struct.unpack_from("<I", head, 24)
    kept = 40 + stored if rng.random() < 0.3 else 0
    return head[:kept] + mutate(head[kept:], rng)


def expected_line(case: Case) -> str:
    """Returns what the program has to print."""
    shown = []
    try:
        words = read_words(case.section)
        tokens = [*map(words.word, range(words.num_words)), *words.separators]
        shown.append(_digest(b"".join(map(_sized, tokens))))
    except PayloadError:
        words = read_words(bytes(8))
        shown.append("-")
    try:
        part: Part | None = read_head(case.head, case.pool_size, words)
    except PayloadError:
        part = None
    shown += ["-", "-"] if part is None else [_digest(_symbols(part)), _digest(_rules(part))]
    for size, payload in case.blocks:
        try:
            shown.append("-" if part is None else _digest(decode_tadoc(payload, size, part)))
        except PayloadError:
            shown.append("-")
    return " ".join(shown)


def _symbols(part: Part) -> bytes:
    found = part.expansions
    return b"".join(
        bytes([found.begins_with_separator[symbol], found.ends_with_word[symbol]]) + _sized(found.contents[symbol])
        for symbol in part.symbols_by_rank
    )


def _rules(part: Part) -> bytes:
    return b"".join(struct.pack(f"<{len(rule) + 1}I", len(rule), *rule) for rule in part.rules)


def run_program(cases: Sequence[Case]) -> list[str]:
    """Returns a line for each case. Fails if the program finds an error, or allocates much memory at once."""
    environment = {**os.environ, "ASAN_OPTIONS": f"max_allocation_size_mb={_MAX_ALLOCATION}:hard_rss_limit_mb=2000"}
    stdin = b"".join(case.to_bytes() for case in cases)
    done = subprocess.run([tadoc_program()], input=stdin, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-300:].decode() + done.stderr.decode()
    return [line.strip() for line in done.stdout.decode().splitlines()]


def compare(count: int, seed: int) -> None:
    rng = random.Random(seed)
    refused = {"section": 0, "head": 0, "block": 0}
    num_sound = 0
    for first in range(0, count, _BATCH):
        cases = []
        for number in range(min(_BATCH, count - first)):
            if number % 50 == 0:
                sound = make_seed(rng)
                cases.append(sound)
                assert "-" not in expected_line(sound)
            cases.append(damage(sound, rng))
        for case, line in zip(cases, run_program(cases), strict=True):
            expected = expected_line(case)
            assert line == expected, case
            section, head, *rest = expected.split()
            refused["section"] += section == "-"
            refused["head"] += head == "-"
            refused["block"] += head != "-" and "-" in rest
            num_sound += "-" not in expected
    assert min(refused.values()) > count // 50
    assert num_sound > count // 10


@pytest.mark.timeout(1200)  # mostly compilation if tools/test has not done it before
def test_damage() -> None:
    compare(QUICK, 1)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_much_damage() -> None:
    compare(MANY, int(time.time()))
