"""Bytes of the stream that several contents share are stored once."""

from __future__ import annotations

import os
import random
from itertools import pairwise
from pathlib import Path
from tempfile import gettempdir

import pytest
from tree_helpers import list_archive, list_directory, pack

from gompfs._native.sources import KnownContents
from gompfs.archive import Archive
from gompfs.codec import Codec

MIB = 1 << 20
RNG = random.Random(32)


def runs_of(known: KnownContents, content: bytes, num_threads: int = 1) -> tuple[list[tuple[int, int]], int]:
    """Adds a content. Returns its runs of the stream, and how many of its bytes are new."""
    new = known.add_piece(content, num_threads)
    return known.runs(known.end_content()), sum(size for _, size in new)


def stored(known: KnownContents, contents: list[bytes]) -> list[int]:
    """Adds contents, and checks that their runs have their bytes. Returns how many bytes of each are new."""
    stream, sizes = b"", []
    for content in contents:
        new = known.add_piece(content, 2)
        stream += b"".join(content[begin : begin + size] for begin, size in new)
        sizes.append(sum(size for _, size in new))
        runs = known.runs(known.end_content())
        assert b"".join(stream[position : position + size] for position, size in runs) == content
        assert all(sum(before) != after[0] for before, after in pairwise(runs))
    return sizes


def test_bytes_that_were_inserted_and_removed() -> None:
    base = RNG.randbytes(3 * MIB)
    middle = len(base) // 2
    others = [base[:middle] + b"some bytes" + base[middle:], base[:1000] + base[2000:], base[middle:] + base[:middle]]
    sizes = stored(KnownContents(gettempdir()), [base, *others, base])
    assert sizes[0] == len(base)
    assert all(size < 150_000 for size in sizes[1:4])
    assert sizes[4] == 0


def test_contents_of_all_small_sizes() -> None:
    known = KnownContents(gettempdir())
    assert runs_of(known, b"") == ([], 0)
    contents = [RNG.randbytes(size) for size in (*range(1, 70), *range(950, 1100), 16383, 16384, 16385, MIB, MIB + 1)]
    assert stored(KnownContents(gettempdir()), contents) == [len(content) for content in contents]


def test_short_chunks_are_shared_only_after_others() -> None:
    """A run of less than 1 KiB would cost more than it saves."""
    known = KnownContents(gettempdir())
    noise = RNG.randbytes(MIB)
    assert stored(known, [b"tail" * 50, noise, b"tail" * 50]) == [200, MIB, 200]
    assert stored(KnownContents(gettempdir()), [noise[:5000], RNG.randbytes(MIB), noise[:5000]]) == [5000, MIB, 0]


@pytest.mark.parametrize("period", [1, 100, 5000, 60_000, 65_000])
def test_data_with_a_short_period_has_few_runs(period: int) -> None:
    """Matches of a block reach that far. Else a GB of one line would be a million extents."""
    content = RNG.randbytes(period) * (4 * MIB // period)
    known = KnownContents(gettempdir())
    for each in (content, RNG.randbytes(MIB), content, b"\0" + content):
        runs, _ = runs_of(known, each)
        assert len(runs) < 70


def test_a_long_period_is_stored_once() -> None:
    period = RNG.randbytes(200_000)
    runs, size = runs_of(KnownContents(gettempdir()), period * 10)
    assert size < 300_000
    assert len(runs) < 40


def test_threads_and_pieces_do_not_matter() -> None:
    content = RNG.randbytes(2 * MIB) + bytes(MIB) + RNG.randbytes(MIB)
    content += content[MIB // 3 :]
    results = [runs_of(KnownContents(gettempdir()), content, num_threads) for num_threads in (1, 4)]
    known = KnownContents(gettempdir())
    new = sum(
        size for start in range(0, len(content), MIB) for _, size in known.add_piece(content[start : start + MIB], 2)
    )
    results.append((known.runs(known.end_content()), new))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("codec", [Codec.GOMPRESSO_TADOC, Codec.GOMPRESSO_BIT])
@pytest.mark.parametrize("part_size", [None, 100_000])
def test_versions_of_files(codec: Codec, part_size: int | None, tmp_path: Path) -> None:
    """Small, large and sparse ones, in one part or many."""
    tree = tmp_path / "tree"
    small, large = b"\0" + RNG.randbytes(300_000), b"\0" + RNG.randbytes(5 * MIB)
    for number in range(3):
        directory = tree / f"v{number}"
        directory.mkdir(parents=True)
        for name, content in (("small", small), ("large", large)):
            at = len(content) * (number + 1) // 4
            (directory / name).write_bytes(content[:at] + b"version %d" % number + content[at:])
        with open(directory / "sparse", "wb") as file:
            file.write(small[:200_000])
            file.seek(1_000_000)
            file.write(small[number * 1000 :])
            file.truncate(3_000_000)
    os.link(tree / "v1/large", tree / "linked")
    report = pack(tmp_path / "a.gomp", tree, codec=codec, part_size=part_size)
    assert report.stream_size < len(small) + len(large) + 200_000
    with Archive(tmp_path / "a.gomp") as archive:
        assert list_archive(archive) == list_directory(tree)
