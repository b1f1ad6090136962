"""Very many files, and a very large file. These tests are slow because their oracles are."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import statistics_oracle as oracle
from coreutils_oracle import count_with_coreutils, pack

from gompfs.archive import Archive
from gompfs.statistics.tasks import compute

pytestmark = pytest.mark.slow
MIB = 1 << 20


@pytest.mark.timeout(900)
def test_100_000_tiny_files(tmp_path: Path) -> None:
    rng = random.Random(1)
    contents = {}
    for number in range(100_000):
        words = (b"w%d" % min(int(rng.paretovariate(0.5)), 20_000) for _ in range(number % 6))
        contents[b"%d/%d" % (number % 300, number)] = b" ".join(words) + b"\n" * (number % 2)
    for name, content in contents.items():
        path = tmp_path / "tree" / name.decode()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    texts, sequences = oracle.ngrams_of(contents.items()), oracle.ngrams_of(contents.items(), 3)
    with Archive(pack(tmp_path / "a.gomp", tmp_path / "tree")) as archive:
        assert compute(b"wordcount", archive).read() == oracle.sequence_count(texts)
        assert compute(b"term_vector", archive).read() == oracle.term_vector(texts)
        assert compute(b"inverted_index", archive).read() == oracle.inverted_index(texts)
        assert compute(b"sequence_count", archive).read() == oracle.sequence_count(sequences)
        assert compute(b"ranked_inverted_index", archive).read() == oracle.ranked_inverted_index(sequences)


@pytest.mark.timeout(900)
def test_a_file_of_many_parts(tmp_path: Path) -> None:
    """A line of a term vector contains all words of the file; words of 1 MiB; n-grams across many ends of parts."""
    rng = random.Random(2)
    words = [rng.randbytes(3).hex().encode() for _ in range(300_000)] + [b"x" * MIB, b"y" * MIB]
    text = b" ".join(rng.choices(words[:-2], k=6_000_000) + words[-2:])
    (tmp_path / "text").write_bytes(text)
    texts, sequences = oracle.ngrams_of([(b"text", text)]), oracle.ngrams_of([(b"text", text)], 2)
    wordcount, by_word = count_with_coreutils([tmp_path / "text"])
    with Archive(pack(tmp_path / "a.gomp", tmp_path / "text")) as archive:
        assert compute(b"wordcount", archive).read() == wordcount
        assert compute(b"sort", archive).read() == by_word
        assert compute(b"term_vector", archive).read() == oracle.term_vector(texts)
        found = compute(b"phrase/" + b" ".join(words[-2:]), archive).read()
        assert found == b"text\t%d\n" % sequences[b"text"][b" ".join(words[-2:])]
