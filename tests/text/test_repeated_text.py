"""Text that repeats: parts hold more of it, and the rules that they share are split where they are long."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tree_helpers import list_archive, list_directory, pack

from gompfs._native.text import PartsBuilder, WordRule
from gompfs.archive import Archive
from gompfs.codec import Codec

PART_SIZE = 20_000
WORDS = [b"%x" % (number * 2654435761 % (1 << 32)) for number in range(3000)]


def prose(size: int, seed: int) -> bytes:
    rng = random.Random(seed)
    lines = (b" ".join(rng.choices(WORDS, k=8)) + b"\n" for _ in range(size // 70))
    return b"".join(lines)


def changed(text: bytes, seed: int) -> bytes:
    """Returns the text with one other line."""
    lines = text.splitlines(keepends=True)
    lines[random.Random(seed).randrange(len(lines))] = b"changed %d\n" % seed
    return b"".join(lines)


def part_sizes(files: list[bytes], folder: Path, piece_size: int | None = None) -> list[int]:
    builder = PartsBuilder(WordRule.IDENTIFIERS, b"", 1 << 14, PART_SIZE, 1, str(folder), max_part_size=8 * PART_SIZE)
    for file in files:
        size = piece_size or max(len(file), 1)
        for start in range(0, len(file), size):
            builder.add_bytes(file[start : start + size])
        builder.end_file()
    builder.finish()
    return builder.part_sizes()


def test_parts_of_versions_are_larger(tmp_path: Path) -> None:
    """A part ends after PART_SIZE bytes that it did not have before, and at most eight times as many in all."""
    text = prose(15_000, 1)
    few = part_sizes([changed(text, number) for number in range(6)], tmp_path)
    assert few == [sum(len(changed(text, number)) for number in range(6))]
    many = part_sizes([changed(text, number) for number in range(40)], tmp_path)
    assert max(many) <= 8 * PART_SIZE
    assert max(many) > 7 * PART_SIZE
    assert len(many) == 4


def test_other_text_has_parts_of_the_usual_size(tmp_path: Path) -> None:
    """Lines that repeat one by one do not count."""
    rng = random.Random(2)
    lines = [line for number in range(40) for line in (*prose(300, number).splitlines(keepends=True), b"return 0;\n")]
    rng.shuffle(lines)
    sizes = part_sizes([b"".join(lines), prose(300_000, 3)], tmp_path)
    assert max(sizes) < PART_SIZE * 1.05
    assert min(sizes[:-1]) > PART_SIZE * 3 // 4


@pytest.mark.parametrize("piece_size", [1, 255, 256, 257, 4099])
def test_parts_do_not_depend_on_the_pieces(piece_size: int, tmp_path: Path) -> None:
    files = [changed(prose(9000, 1), number) for number in range(12)]
    files += [b"no line feed " * 900, b"", b"x" * 700, b"short", prose(45_000, 5).replace(b"\n", b" ")] * 2
    assert part_sizes(files, tmp_path, piece_size) == part_sizes(files, tmp_path)


def test_versions_take_little_space(tmp_path: Path) -> None:
    """Twelve versions of a file take little more than one, though what they share is longer than a rule may be."""
    text = prose(150_000, 4)
    sizes = []
    for count in (1, 12):
        tree = tmp_path / f"{count}"
        tree.mkdir()
        for number in range(count):
            (tree / f"v{number}").write_bytes(changed(text, number))
        archive = tmp_path / f"{count}.gomp"
        pack(archive, tree, codec=Codec.GOMPRESSO_TADOC)
        with Archive(archive) as opened:
            found = list_archive(opened)
            assert {path: found[path].content for path in found} == {
                path: item.content for path, item in list_directory(tree).items()
            }
        sizes.append(archive.stat().st_size)
    assert sizes[1] < sizes[0] * 1.3


@pytest.mark.parametrize("size", [8190, 8191, 8192, 8193, 16384, 16385, 100_000])
def test_what_is_shared_may_be_as_long_as_a_rule(size: int, tmp_path: Path) -> None:
    """One byte below, at and above the 8,192 bytes of a rule, and of two, in one part and across parts."""
    shared = prose(110_000, 6)[:size]
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(4):
        (tree / f"{number}").write_bytes(b"begin %d\n%s\nend %d\n" % (number, shared, number))
    for part_size in (None, size * 3 // 2):
        archive = tmp_path / f"{part_size}.gomp"
        pack(archive, tree, codec=Codec.GOMPRESSO_TADOC, part_size=part_size)
        with Archive(archive) as opened:
            found = list_archive(opened)
        assert {path: found[path].content for path in found} == {
            path: item.content for path, item in list_directory(tree).items()
        }


@pytest.mark.parametrize("length", [254, 255, 256, 257, 513])
def test_long_lines_are_several(length: int, tmp_path: Path) -> None:
    """Lines of 255 bytes and more, which are looked at in pieces, repeat as short ones do."""
    line = prose(1000, 7).replace(b"\n", b" ")[:length]
    text = b"".join(b"%04d%s\n" % (number, line[4:]) for number in range(30))
    assert part_sizes([text] * 4, tmp_path) == [4 * len(text)]


@pytest.mark.parametrize("num_words", [2, 3, 15, 16, 17, 31, 32, 33, 34, 65])
@pytest.mark.parametrize("separator", [b" ", b", "])
def test_rules_of_all_lengths(num_words: int, separator: bytes, tmp_path: Path) -> None:
    """Rules up to and above the 32 tokens that are searched, each beside others that overlap it."""
    rng = random.Random(num_words)
    phrases = [rng.choices(WORDS[:40], k=num_words) for _ in range(12)]
    rows = [rng.choice(phrases)[rng.randrange(2) : num_words - rng.randrange(2)] for _ in range(900)]
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "phrases").write_bytes(separator.join(separator.join(row) for row in rows))
    (tree / "one-word").write_bytes(separator.join([b"same"] * (1 << 16)))
    assert packed_files(tree, tmp_path / "a.gomp") == {
        path: item.content for path, item in list_directory(tree).items()
    }


def packed_files(tree: Path, archive: Path) -> dict[str, bytes | None]:
    pack(archive, tree, codec=Codec.GOMPRESSO_TADOC)
    with Archive(archive) as opened:
        assert Codec.GOMPRESSO_TADOC in opened.segments[0].codecs
        found = list_archive(opened)
    return {path: found[path].content for path in found}


def test_overlapping_phrases_take_little_space(tmp_path: Path) -> None:
    """A text is written with the rules that take the fewest bits, wherever the phrases around them begin."""
    rng = random.Random(8)
    phrases = [rng.choices(WORDS[:600], k=5) for _ in range(400)]
    words = [word for _ in range(9000) for word in rng.choice(phrases)[rng.randrange(3) : 3 + rng.randrange(3)]]
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "text").write_bytes(b" ".join(words))
    packed_files(tree, tmp_path / "a.gomp")
    assert (tmp_path / "a.gomp").stat().st_size < 24_500
