"""Words and separators at the limits of the format, in one part and across parts."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest
from oracle.constants import MAX_EXPANSION_SIZE
from tree_helpers import add, list_archive, list_directory, pack, write_files

from gompfs._native.text import PartsBuilder, WordRule
from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import Codec
from gompfs.model import PartKind
from gompfs.verify import verify_archive

PART_SIZE = 200_000
LONGEST = {
    b"w": MAX_EXPANSION_SIZE - 1,
    b"=": MAX_EXPANSION_SIZE,
}  # that a head may hold
BEYOND = [-1, 0, 1, 2, 4_464, 60_000, 500_000]


def _tree(root: Path, token: bytes, num_files: int) -> Path:
    """Prose, files with the same long token after some prose, and prose again: each file is in parts of its own."""
    rng = random.Random(len(token))
    words = [b"the", b"part", b"of", b"a", b"tree", b"\n"]

    def prose() -> bytes:
        return b" ".join(rng.choices(words, k=40_000))

    contents = {f"b{number}": prose() + b"\nx" + b"x".join([b"", token, b"y\n"]) for number in range(num_files)}
    if token[:1] != b"=":
        contents = {name: content.replace(b"x", b" ") for name, content in contents.items()}
    write_files(root, contents | {"a": prose(), "c": prose()})
    return root


def _count_words(root: Path) -> Counter[bytes]:
    return Counter(word for path in root.iterdir() for word in re.findall(rb"\w+", path.read_bytes()))


def _check(archive: Path, root: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    expected = {path: item.content for path, item in list_directory(root).items()}
    with Archive(archive, verify=True) as opened:
        seen = list_archive(opened)
        assert {path: seen[path].content for path in expected} == expected
        assert verify_archive(opened).is_sound
    capfdbinary.readouterr()
    assert run(["stats", str(archive), "wordcount"]) == 0
    rows = capfdbinary.readouterr().out.splitlines()
    assert {word: int(count) for word, count in (row.split(b"\t") for row in rows)} == _count_words(root)
    assert len(rows) == len(_count_words(root))


@pytest.mark.parametrize("num_files", [1, 3])
@pytest.mark.parametrize("beyond", BEYOND)
@pytest.mark.parametrize("kind", LONGEST)
def test_a_long_token(
    kind: bytes, beyond: int, num_files: int, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Everything can be read and counted, whatever the size of a token that one part has, or several parts share."""
    root = _tree(tmp_path / "tree", kind * (LONGEST[kind] + beyond), num_files)
    archive = tmp_path / "a.gomp"
    pack(archive, root, codec=Codec.GOMPRESSO_TADOC, part_size=PART_SIZE)
    with Archive(archive) as opened:
        kinds = opened.segments[0].parts.kinds
        assert (PartKind.TEXT in kinds) == (beyond > 0)  # only parts with a token that is too long lack a head
        assert PartKind.GRAMMAR in kinds
    _check(archive, root, capfdbinary)


def test_a_long_token_in_an_add(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """What was there before stays readable."""
    root = _tree(tmp_path / "tree", b"w" * 70_000, 2)
    archive = tmp_path / "a.gomp"
    (tmp_path / "first").mkdir()
    (root / "a").rename(tmp_path / "first/a")
    pack(archive, tmp_path / "first", codec=Codec.GOMPRESSO_TADOC, part_size=PART_SIZE)
    add(archive, root, codec=Codec.GOMPRESSO_TADOC, part_size=PART_SIZE)
    (tmp_path / "first/a").rename(root / "a")
    _check(archive, root, capfdbinary)


@pytest.mark.parametrize("room", [0, 6, 20, 34, 35, 36])
def test_a_full_section_of_words(room: int, tmp_path: Path) -> None:
    """A part has no head if it shares words for which the section has no room."""
    builder = PartsBuilder(WordRule.IDENTIFIERS, b"", 1 << 16, 4000, 1, str(tmp_path), room)
    rng = random.Random(6)

    def text(size: int, *words: bytes) -> bytes:
        return b"".join(rng.choices([word + b" " for word in words], k=size))[:size]

    common = [text(3900, b"common", b"words") for _ in range(2)]
    others = [text(7600, b"alpha", b"rare"), text(7600, b"gamma", b"only")]  # which are in two parts each
    builder.add_files([common[0] + b" alpha\n", common[1] + b" beta\n", *others])
    builder.finish()
    shared = [b"alpha", b"common", b"gamma", b"only", b"rare", b"words"]  # 35 bytes with their spaces
    section = builder.word_section()
    assert all(word + b" " in section for word in shared) == (room >= 35)
    heads: list[bool] = []
    while parts := builder.next_parts():
        heads += [bool(head) for head, _ in parts]
    assert all(heads) == (room >= 35)  # without it, the parts with the other words have none
    assert builder.num_wrong == 0
