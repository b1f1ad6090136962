"""Trees of nasty texts, with the options that they are packed with. A tree depends only on its seed and number."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nasty_texts import TEXTS, TOKENS, near_a_limit

from gompfs.codec import Codec
from gompfs.model import WORD_RULES

PART_SIZES = (None, 700, 5_000, 40_000, 65_535, 65_536, 200_000)
BLOCK_SIZES = (16 << 10, 32 << 10, 64 << 10, 64 << 10, 128 << 10, 1 << 20)
_CODECS = (*[Codec.GOMPRESSO_TADOC] * 4, Codec.GOMPRESSO_BIT, Codec.GOMPRESSO_BYTE, Codec.STORED)
_LARGEST_NAME = 255
_LARGEST_TARGET = 4_095


@dataclass
class Tree:
    """Files and links by path, and how they are packed.

    `added` are files that come by an `add`, some of them in place of others; `repacked` are the options of a `repack`
    after that, or None. `tokens` occur in several files.
    """

    number: int
    seed: int
    tokens: list[bytes]
    files: dict[bytes, bytes]
    links: dict[bytes, bytes]
    added: dict[bytes, bytes]
    options: dict[str, Any]
    repacked: dict[str, Any] | None
    kinds: set[str] = field(default_factory=set)

    def describe(self) -> str:
        """Returns the number, what is in the tree, and the options in one line."""
        sizes = ", ".join(str(len(token)) for token in self.tokens)
        steps = ["add"] * bool(self.added) + [f"repack {self.repacked}"] * (self.repacked is not None)
        kinds = ", ".join(sorted(self.kinds))
        return f"tree {self.number} of seed {self.seed}: {kinds}; tokens of {sizes} bytes; {self.options}; {steps}"

    @property
    def final(self) -> dict[bytes, bytes]:
        """The files that the last generation has."""
        return {**self.files, **self.added}

    def write(self, root: Path, files: dict[bytes, bytes]) -> None:
        """Writes files, and with the first ones also the links."""
        top = os.fsencode(root)
        for path, content in files.items():
            full = os.path.join(top, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as file:
                file.write(content)
        if files is self.files:
            for path, target in self.links.items():
                os.symlink(target, os.path.join(top, path))


def make_tree(number: int, seed: int = 1, scale: float = 1) -> Tree:
    """Makes a tree of some hundred kilobytes, or `scale` times as much: then with parts of the default size as well."""
    rng = random.Random(f"{seed}-{number}")
    token_kinds = rng.sample(sorted(TOKENS), rng.randint(1, 3))
    tokens = [TOKENS[kind](rng, near_a_limit(rng, 131_072)) for kind in token_kinds]
    kinds = set(token_kinds)

    def text(kind: str) -> bytes:
        kinds.add(kind)
        return TEXTS[kind](rng, int(scale * rng.choice((50, 1_000, 5_000, 9_000, 20_000))), tokens)

    chosen = rng.choices(sorted(TEXTS), k=rng.randint(2, 5))
    chosen += rng.choices(("prose", "tokens in prose", "lines of a token", "a token that is cut"), k=rng.randint(2, 4))
    rng.shuffle(chosen)
    files = {_name(rng, place): text(kind) for place, kind in enumerate(chosen)}
    _add_copies(rng, files, kinds)
    added: dict[bytes, bytes] = {}
    if rng.random() < 0.35:
        added = {_name(rng, 100 + place): text(rng.choice(sorted(TEXTS))) for place in range(rng.randint(1, 3))}
        added[rng.choice(sorted(files))] = _tokens(rng, tokens)
    links = {b"link": os.fsencode("t" * _LARGEST_TARGET)} if rng.random() < 0.1 else {}
    repacked = {"block_size": rng.choice(BLOCK_SIZES)} if rng.random() < 0.25 else None
    return Tree(number, seed, tokens, files, links, added, _options(rng), repacked, kinds)


def _tokens(rng: random.Random, tokens: list[bytes]) -> bytes:
    return TEXTS["tokens in prose"](rng, 2_000, tokens)


def _add_copies(rng: random.Random, files: dict[bytes, bytes], kinds: set[str]) -> None:
    """Adds empty files, the same content again, and much of it in another file."""
    if rng.random() < 0.3:
        files[b"empty"] = b""
        kinds.add("empty")
    if rng.random() < 0.3:
        files[b"again"] = rng.choice(list(files.values()))
        kinds.add("duplicate")
    if rng.random() < 0.2:
        files[b"both"] = b"".join(rng.sample(list(files.values()), 2))
        kinds.add("two in one")


def _name(rng: random.Random, place: int) -> bytes:
    """Returns a path, unique by its `place`; rarely one of odd bytes or of the largest size."""
    kind = rng.random()
    name = b"%03d" % place
    if kind < 0.05:
        name += b"n" * (_LARGEST_NAME - len(name))
    elif kind < 0.1:
        name += bytes(rng.choices([byte for byte in range(1, 256) if byte != 0x2F], k=20))
    elif kind < 0.3:
        name = b"directory %d/" % rng.randint(0, 2) + name
    return name


def _options(rng: random.Random) -> dict[str, Any]:
    codec = rng.choice(_CODECS)
    options: dict[str, Any] = {
        "words": rng.choice(WORD_RULES),
        "block_size": rng.choice(BLOCK_SIZES),
        "part_size": rng.choice(PART_SIZES),
        "jobs": rng.choice((0, 1, 2, 3)),
        "codec": codec,
        "level": rng.choice((1, 6, 6, 8)),
    }
    if codec is Codec.GOMPRESSO_BIT and rng.random() < 0.5:
        options["dictionary_size"] = rng.choice((None, 0, 5_000, 1 << 20))
    if codec in (Codec.GOMPRESSO_TADOC, Codec.GOMPRESSO_BIT) and rng.random() < 0.2:
        options["dependency_elimination"] = True
    return options
