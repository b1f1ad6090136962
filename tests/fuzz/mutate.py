"""Makes mutants: archives with one or more changed structures, and corrected checksums.

A mutant depends only on its seed archives and its number. `python -m tests.fuzz.mutate NUMBER FILE` writes the mutant
of that number and prints what was changed.
"""

from __future__ import annotations

import random
import sqlite3
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    import tests.rooms  # noqa: F401

from mutate_blocks import block_header, block_places, head, payload
from mutate_frame import cut, footer, splice, superblock, tail
from mutate_index import index_changes, index_columns, index_rows
from mutate_sizes import sizes
from seeds import SEEDS, read_seed
from taken_apart import TakenApart

Mutation = Callable[[TakenApart, random.Random], tuple[str, bool]]

STRUCTURES: dict[str, tuple[Mutation | None, float]] = {
    "payload": (payload, 15),
    "block header": (block_header, 6),
    "block places": (block_places, 6),
    "head": (head, 25),
    "index rows": (index_rows, 20),
    "index columns": (index_columns, 21),
    "index changes": (index_changes, 8),
    "superblock": (superblock, 2),
    "footer": (footer, 3),
    "cut": (cut, 2),
    "tail": (tail, 2),
    "splice": (None, 2),
    "sizes": (sizes, 4),
}
"""The structures that are mutated, with their functions and relative frequencies."""
_MANY = "several"
_SHARE_OF_MANY = 0.08


@dataclass
class Mutant:
    """A mutated archive. With `keeps_contents`, no file may be returned with bytes that differ from the seed's."""

    number: int
    seed: str
    structure: str
    told: str
    content: bytes
    keeps_contents: bool

    def describe(self) -> str:
        return f"mutant {self.number} of {self.seed}, {self.structure}: {self.told}"


def make_mutant(number: int, base: int = 1, structure: str | None = None) -> Mutant:
    """Returns mutant `number`.

    `base` selects another series of mutants, and `structure` restricts the mutated structures.
    """
    attempt = 0
    while True:
        rng = random.Random(f"{base} {number} {attempt}")
        seed = rng.choice(SEEDS)
        try:
            return _mutate(number, seed, structure, rng)
        except (sqlite3.Error, OverflowError, ValueError, IndexError, TypeError, struct.error, KeyError, StopIteration):
            # The seed lacks this structure, or an earlier mutation has left nothing to change.
            attempt += 1


def _mutate(number: int, seed: str, structure: str | None, rng: random.Random) -> Mutant:
    parts = TakenApart.of(read_seed(seed))
    count = rng.randint(2, 4) if structure is None and rng.random() < _SHARE_OF_MANY else 1
    told, keeps = [], True
    names = list(STRUCTURES)
    for name in [structure] if structure else rng.choices(names, [STRUCTURES[n][1] for n in names], k=count):
        mutation, _ = STRUCTURES[name]
        if mutation is None:
            text, kept = splice(parts, rng, TakenApart.of(read_seed(rng.choice(SEEDS))))
        else:
            text, kept = mutation(parts, rng)
        told.append(f"{name}: {text}" if count > 1 else text)
        keeps = keeps and kept
        structure = name
    content = parts.build()
    return Mutant(number, seed, _MANY if count > 1 else str(structure), "; ".join(told), content, keeps)


if __name__ == "__main__":
    made = make_mutant(int(sys.argv[1]), *map(int, sys.argv[3:4]))
    Path(sys.argv[2]).write_bytes(made.content)
    sys.stdout.write(made.describe() + "\n")
