"""Trees whose files have much in common, so that a dictionary makes their archives smaller."""

from __future__ import annotations

import random
from pathlib import Path

BLOCK_SIZE = 16 << 10
OPTIONS = {"block_size": BLOCK_SIZE, "dictionary_size": 8 << 10}


def similar_text(seed: str, size: int) -> bytes:
    """Returns text of sentences that all such texts share, in random order, with numbers between them."""
    common = random.Random("sentences")
    sentences = [" ".join(common.randbytes(3).hex() for _ in range(12)) + ".\n" for _ in range(150)]
    rng = random.Random(seed)
    text = ""
    while len(text) < size:
        text += f"{rng.getrandbits(24):x}: {rng.choice(sentences)}"
    return text[:size].encode()


def write_tree(root: Path) -> None:
    """Writes text, a file that cannot be compressed, an empty file, and two names of one file."""
    (root / "texts").mkdir(parents=True)
    for number, size in enumerate((100_000, 1, 20_000, 3 * BLOCK_SIZE)):
        (root / f"texts/{number}").write_bytes(similar_text(f"text {number}", size))
    (root / "noise").write_bytes(random.Random("noise").randbytes(BLOCK_SIZE))
    (root / "empty").touch()
    (root / "link").hardlink_to(root / "noise")
