"""Grammars built later for archives packed without: equal to those of packing, and a failure loses nothing."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tree_helpers import add, list_archive, pack

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.errors import CorruptBlockError, PackError
from gompfs.grammar import Grammar, GrammarCollector
from gompfs.model import GRAMMAR_SECTION, WORD_RULES
from gompfs.options import PackOptions
from gompfs.pack import add_grammars, add_to_archive, open_source
from gompfs.pack.grammars import SegmentText
from gompfs.statistics.content import ContentText, text_without_grammar
from gompfs.verify import verify_archive

ROOTS = ("first", "second", "third")


@pytest.fixture
def trees(tmp_path: Path) -> dict[str, Path]:
    """Trees each of which replaces files of the trees before it."""
    rng = random.Random(7)
    words = [rng.randbytes(4).hex().encode() for _ in range(400)]

    def text(size: int) -> bytes:
        return b" ".join(rng.choices(words, k=size // 9)) + b"\n"

    roots = {name: tmp_path / name for name in ROOTS}
    for number, root in enumerate(roots.values()):
        (root / "inner").mkdir(parents=True)
        (root / "small").write_bytes(text(3000))
        (root / "inner/replaced").write_bytes(text(90_000))
        (root / f"inner/large-{number}").write_bytes(text(5 << 20))
        (root / f"binary-{number}").write_bytes(b"word \0 " + text(500))
        (root / f"again-{number}").write_bytes((root / "small").read_bytes())
        (root / f"empty-{number}").touch()
        for name, content in (("sparse", b"words before a hole "), ("hole", b"")):
            (root / f"{name}-{number}").write_bytes(content)
            os.truncate(root / f"{name}-{number}", 1 << 20)
        os.link(root / "small", root / f"linked-{number}")
    return roots


Texts = dict[int, ContentText]


def build(archive: Path, change: Callable[[Texts], Mapping[int, SegmentText]] = lambda texts: texts) -> int:
    """Adds the missing grammars; `change` may replace the texts."""
    with Archive(archive, engine=select_engine("cpu")) as opened:
        texts = change(text_without_grammar(opened))
        return add_grammars(archive, opened.footer.generation, texts, engine=opened.engine)


def grammar_sections(archive: Path) -> dict[int, bytes]:
    with Archive(archive, engine=select_engine("cpu")) as opened:
        return {s.segment: opened.read_section(s) for s in opened.sections if s.kind == GRAMMAR_SECTION}


def counts_of(grammar: Grammar) -> dict[bytes, int]:
    return {grammar.word(number): int(count) for number, count in enumerate(grammar.word_counts())}


def binary_files(archive: Path) -> list[int]:
    with Archive(archive, engine=select_engine("cpu")) as opened:
        return opened.index.binary_files()


@pytest.mark.parametrize("words", WORD_RULES)
def test_built_grammars_equal_packed_ones(trees: dict[str, Path], tmp_path: Path, words: str) -> None:
    with_stats, without = tmp_path / "with.gomp", tmp_path / "without.gomp"
    engine = select_engine("cpu")
    pack(without, trees["first"], words=words)
    pack(with_stats, trees["first"], words=words)
    assert build(with_stats) > 0
    for archive, stats in ((with_stats, True), (without, False)):
        for name in ("second", "third"):
            options = PackOptions(Codec.GOMPRESSO_BIT, stats=stats)
            add_to_archive(archive, [open_source(trees[name])], options, engine=engine)
    assert build(without) > 0
    with Archive(without) as opened:
        assert opened.footer.generation == 4
        assert sum(section.kind == GRAMMAR_SECTION for section in opened.sections) == 3
        before = list_archive(opened)
        assert list(verify_archive(opened).problems) == []
    with Archive(with_stats) as opened:
        assert list_archive(opened) == before
    # The order of files differs. In segments before the last, replaced files are left out.
    built, packed = (Grammar.from_bytes(grammar_sections(archive)[2]) for archive in (without, with_stats))
    assert counts_of(built) == counts_of(packed)
    assert built.word_rule == words
    assert binary_files(without) == binary_files(with_stats)
    assert len(binary_files(without)) == 9


def test_only_missing_grammars_are_built(trees: dict[str, Path], tmp_path: Path) -> None:
    archive = tmp_path / "a.gomp"
    pack(archive, trees["first"])
    build(archive)
    first = grammar_sections(archive)
    assert list(first) == [0]
    add(archive, trees["second"])
    build(archive)
    both = grammar_sections(archive)
    assert list(both) == [0, 1]
    assert both[0] == first[0]


def test_an_archive_without_text(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    archive = tmp_path / "a.gomp"
    pack(archive, tmp_path / "nothing")
    build(archive)
    assert list(grammar_sections(archive)) == [0]


class Interrupted(BaseException):
    """An exception that no code handles."""


@pytest.mark.parametrize("error", [Interrupted(), OSError(28, "No space left on device")])
def test_a_failed_build_leaves_the_archive_as_it_was(
    trees: dict[str, Path], tmp_path: Path, error: BaseException
) -> None:
    archive = tmp_path / "a.gomp"
    pack(archive, trees["first"])
    before = archive.read_bytes()

    class FailingText:
        def __init__(self, text: ContentText) -> None:
            self._text = text
            self.binary_files: list[int] = []

        def collect(self, collector: GrammarCollector) -> Iterator[int]:
            yield from self._text.collect(collector)
            raise error

    def change(texts: Texts) -> Mapping[int, SegmentText]:
        return {number: FailingText(text) for number, text in texts.items()}

    with pytest.raises(Interrupted if isinstance(error, Interrupted) else PackError):
        build(archive, change)
    assert archive.read_bytes() == before


def test_damage_is_reported_and_nothing_is_written(trees: dict[str, Path], tmp_path: Path) -> None:
    archive = tmp_path / "a.gomp"
    pack(archive, trees["first"])
    damaged = bytearray(archive.read_bytes())
    damaged[200_000] ^= 1
    archive.write_bytes(damaged)
    with pytest.raises(CorruptBlockError) as caught:
        build(archive)
    assert caught.value.archive == str(archive)
    assert archive.read_bytes() == damaged


def test_an_add_during_the_build(trees: dict[str, Path], tmp_path: Path) -> None:
    archive = tmp_path / "a.gomp"
    pack(archive, trees["first"])

    def change(texts: Texts) -> Texts:
        add(archive, trees["second"])
        return texts

    with pytest.raises(PackError, match="another process has added"):
        build(archive, change)
    build(archive)
    assert list(grammar_sections(archive)) == [0, 1]
