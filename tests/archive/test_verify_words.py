"""Counting the words of files while their stream comes by."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

from gompfs.archive import Archive
from gompfs.archive.verify import verify_archive
from gompfs.archive.verify_words import TextWords
from gompfs.engine import select_engine
from gompfs.model import GRAMMAR_BUILDERS, WORD_RULES
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source, pack_archive

BLOCK_SIZE = 300
ALPHABET = b"ab \t\n\v\f\r\0\x1f\x85\xa0\xff"


@pytest.mark.parametrize("seed", range(20))
def test_counts_are_those_of_split(seed: int) -> None:
    """Files share bytes, begin and end anywhere, and have several extents."""
    rng = random.Random(seed)
    stream = bytes(rng.choices(ALPHABET, k=rng.randrange(1, 3000)))
    rows, texts = [], {}
    for ino in range(2, 60):
        text = b""
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            start = rng.randrange(len(stream))
            size = rng.randrange(1, min(len(stream) - start, rng.choice((1, 64, 700))) + 1)
            rows.append((ino, len(text), start, size))
            text += stream[start : start + size]
        texts[ino] = text
    damaged = set(rng.sample(range(10), rng.choice((0, 0, 1, 2))))
    words = TextWords(np.array(rows, np.int64))
    for number, start in enumerate(range(0, len(stream), BLOCK_SIZE)):
        if number not in damaged:
            words.take(start, memoryview(stream[start : start + BLOCK_SIZE]))
    touched = {
        ino
        for ino, _, start, size in rows
        if damaged & set(range(start // BLOCK_SIZE, (start + size - 1) // BLOCK_SIZE + 1))
    }
    inos, counts = words.by_file(damaged, BLOCK_SIZE)
    expected = {ino: len(text.split()) for ino, text in texts.items() if ino not in touched}
    assert dict(zip(inos.tolist(), counts.tolist(), strict=True)) == expected


@pytest.mark.parametrize("builder", GRAMMAR_BUILDERS)
@pytest.mark.parametrize("words", WORD_RULES)
def test_what_the_packer_writes_is_sound(words: str, builder: str, tmp_path: Path) -> None:
    """Texts over several parts of a grammar and over blocks, equal ones, empty ones, sparse and binary files."""
    rng = random.Random(words)
    tree = tmp_path / "tree"
    tree.mkdir()
    text = b" ".join(rng.choices((b"to", b"be", b"or", "n\u00f6t".encode(), b"\n"), k=3_000_000))
    for name, content in {"a": text, "b": text, "c": b"", "d": b"\n\n", "e": b"no end", "f": b"\0 a"}.items():
        (tree / name).write_bytes(content)
    with open(tree / "g", "wb") as file:
        file.write(b"a hole follows")
        file.truncate(1 << 20)
    options = PackOptions(words=words, grammar_builder=builder)
    pack_archive([open_source(tree)], tmp_path / "a.gomp", options, engine=select_engine("cpu"))
    with Archive(tmp_path / "a.gomp") as archive:
        report = verify_archive(archive)
        assert (report.problems, report.damages) == ([], [])
    (tree / "a").write_bytes(b"replaced words")
    (tree / "f").write_bytes(b"now a text")
    os.link(tree / "a", tree / "linked")
    for name in ("b", "c", "g"):
        (tree / name).unlink()
    add_to_archive(tmp_path / "a.gomp", [open_source(tree)], options, engine=select_engine("cpu"))
    with Archive(tmp_path / "a.gomp") as archive:
        assert verify_archive(archive).problems == []
