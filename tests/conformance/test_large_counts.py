"""Grammars that stand for more words than 64 bits can count: an error, not counts that wrap around."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from archive_builder import ArchiveBuilder, grammar_part, grammar_section

from gompfs.cli.application import run
from gompfs.codec import Codec, build_block

TASKS = ["wordcount", "sort", "inverted_index", "term_vector", "sequence_count", "ranked_inverted_index", "tfidf",
         "word/a", "phrase/a a"]  # fmt: skip


def doubled(ino: int, log2: int) -> bytes:
    """Returns a part of one file that contains one word 2^log2 times."""
    rules = [[2 * log2, 0], *([2 * (log2 - n), 2 * (log2 - n)] for n in range(1, log2)), [1, 1]]
    return grammar_part(ino, 1 << log2, [0], rules)


def archive(path: Path, parts: list[list[bytes]]) -> Path:
    """Writes an archive of empty files `f2`, `f3`, ... with a grammar per segment."""
    builder = ArchiveBuilder()
    for number in range(2, 20):
        builder.add_entry(b"f%d" % number, stat.S_IFREG | 0o644)
    section = grammar_section([b"a"], parts[0])
    builder.sections["grammar"] = [(build_block(Codec.STORED, section, section).data, len(section))]
    for number, _ in enumerate(parts[1:], 1):
        columns = "kind, uncompressed_size, archive_offsets, compressed_sizes"
        builder.statements += [
            f"INSERT INTO segment VALUES ({number}, 0, 0, 0, x'', x'', x'')",
            f"INSERT INTO section SELECT {number}, {columns} FROM section WHERE segment = 0",
        ]
    path.write_bytes(builder.build())
    return path


def counts(path: Path, name: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    status = run(["stats", str(path), name])
    return status, *capfd.readouterr()


@pytest.mark.parametrize("name", TASKS)
def test_counts_over_parts(tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    """16 parts of 2^60 words each wrapped around to 0, and nothing was printed."""
    path = archive(tmp_path / "a.gomp", [[doubled(ino, 60) for ino in range(2, 18)]])
    message = f"gompfs: {path}: the grammar section is damaged: its parts expand to 2^62 words or more\n"
    assert counts(path, name, capfd) == (1, "", message)


@pytest.mark.parametrize("name", TASKS)
def test_counts_over_segments(tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    path = archive(tmp_path / "a.gomp", [[doubled(2, 61)]] * 9)
    status, output, errors = counts(path, name, capfd)
    assert (status, output) == (1, "")
    assert errors.endswith((": there are 2^62 words or more to count\n", ": there are 2^62 words or more to search\n"))
    assert errors.count("\n") == 1


def test_large_counts_that_fit(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = archive(tmp_path / "a.gomp", [[doubled(2, 60), doubled(3, 60), doubled(4, 1)]])
    assert counts(path, "wordcount", capfd) == (0, f"a\t{(1 << 61) + 2}\n", "")
    assert counts(path, "phrase/a a", capfd)[0] == 0


@pytest.mark.parametrize("ino", [0, (1 << 64) - 1])
def test_impossible_inode_numbers(tmp_path: Path, capfd: pytest.CaptureFixture[str], ino: int) -> None:
    """Inode -1 was printed as 18446744073709551615."""
    difference = -1 if ino == (1 << 64) - 1 else ino
    path = archive(tmp_path / "a.gomp", [[doubled(difference, 1)]])
    message = f"gompfs: {path}: the grammar section is damaged: a part has an impossible inode number\n"
    assert counts(path, "wordcount", capfd) == (1, "", message)
    assert counts(path, "inverted_index", capfd) == (1, "", message)
