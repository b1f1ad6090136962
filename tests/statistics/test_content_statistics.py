"""Statistics of text that is not stored in parts: its words are cut when asked, across any blocks and grammars."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import statistics_oracle as oracle
from coreutils_oracle import add, pack
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle.grammar import expand_part

from gompfs.archive import Archive
from gompfs.archive.stored_blocks import StoredBlocks
from gompfs.errors import CorruptBlockError, StatsUnavailableError
from gompfs.model import WORD_RULES, PartKind
from gompfs.statistics import content as content_module
from gompfs.statistics import content_words
from gompfs.statistics.content import ContentText
from gompfs.statistics.content_words import content_grammars
from gompfs.statistics.query import StatsQuery
from gompfs.statistics.tasks import compute
from gompfs.text.grammar import Grammar

MIB = 1 << 20
BLOCK_SIZE = 16 << 10


def packed(tmp_path: Path, contents: dict[str, bytes], **options: object) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    for name, content in contents.items():
        (root / name).write_bytes(content)
    return pack(tmp_path / "a.gomp", root, kind="blocks", block_size=BLOCK_SIZE, **options)


def check(archive: Archive, contents: dict[str, bytes], word_rule: str = "whitespace") -> None:
    texts = [(name.encode(), content) for name, content in contents.items()]
    words, ngrams = (oracle.ngrams_of(texts, length, word_rule) for length in (1, 3))
    assert compute(b"wordcount", archive).read() == oracle.sequence_count(words)
    assert compute(b"inverted_index", archive).read() == oracle.inverted_index(words)
    assert compute(b"term_vector", archive).read() == oracle.term_vector(words)
    assert compute(b"sequence_count", archive).read() == oracle.sequence_count(ngrams)
    assert compute(b"ranked_inverted_index", archive).read() == oracle.ranked_inverted_index(ngrams)


@pytest.fixture
def small_grammars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grammars of 32 KiB of text, from batches of one block."""
    monkeypatch.setattr(content_words, "_TEXT_OF_GRAMMAR", 32 << 10)
    monkeypatch.setattr(content_module, "_BATCH_BYTES", BLOCK_SIZE)
    monkeypatch.setattr("gompfs.engine.cpu.CpuEngine.batch_bytes", BLOCK_SIZE)


def make_text(seed: int, size: int) -> bytes:
    rng = random.Random(seed)
    words = (b"%d" % min(int(rng.paretovariate(0.5)), 999) for _ in range(size // 2))
    return b"".join(word + rng.choice((b" ", b"\n", b"\r\n\t")) for word in words)[:size]


@pytest.mark.usefixtures("small_grammars")
def test_files_over_many_blocks_and_grammars(tmp_path: Path) -> None:
    contents = {f"text-{seed}": make_text(seed, 17 * 3**seed) for seed in range(10)}
    contents |= {"empty": b"", "one": b"word", "same": contents["text-9"], "blank": b"\n" * 40_000}
    with Archive(packed(tmp_path, contents)) as archive:
        grammars = list(content_grammars(ContentText(archive, archive.inode_numbers())))
        assert len(grammars) > 5
        check(archive, contents)


@pytest.mark.usefixtures("small_grammars")
@pytest.mark.parametrize("size", [MIB, MIB + 1, pytest.param(9 * MIB, marks=pytest.mark.slow)])
def test_long_words(tmp_path: Path, size: int) -> None:
    """Words that are longer than blocks, batches and parts; one differs in its last byte only."""
    contents = {"a": b"x" * size + b" x", "b": b"y " + b"x" * (size - 1) + b"z", "c": b"x" * size}
    with Archive(packed(tmp_path, contents)) as archive:
        check(archive, contents)


_odd_words = st.sampled_from([b"a", b"a\x01", b"ab", b"\xff", b"\xc3\xa9", b"\0", b"z" * 99, b"it's", b"_", b"\xe2"])
_spaces = st.sampled_from([b" ", b"\n", b"\r\n", b"\t\v\f  "])
_texts = st.lists(st.one_of(_odd_words, _spaces, st.binary(max_size=4)), max_size=60).map(b"".join)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(_texts, max_size=8), word_rule=st.sampled_from(WORD_RULES))
def test_any_files(tmp_path_factory: pytest.TempPathFactory, texts: list[bytes], word_rule: str) -> None:
    contents = {f"{number}": content for number, content in enumerate(texts)}
    path = packed(tmp_path_factory.mktemp("any"), contents, words=word_rule)
    with Archive(path) as archive:
        is_text = {name: content for name, content in contents.items() if b"\0" not in content[:8192]}
        check(archive, is_text, word_rule)


@pytest.mark.usefixtures("small_grammars")
def test_a_file_in_pieces_comes_once(tmp_path: Path) -> None:
    """Grammars that continue a file say so. Together they contain its words in order."""
    contents = {"text": make_text(5, 200_000)}
    with Archive(packed(tmp_path, contents)) as archive:
        grammars = list(content_grammars(ContentText(archive, archive.inode_numbers())))
    words: list[bytes] = []
    for grammar in grammars:
        for part in grammar.parts():
            words += [grammar.word(number) for numbers in expand_part(part) for number in numbers]
    assert words == contents["text"].split()


def test_only_blocks_of_the_file_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = {f"{number}": make_text(number, 100_000) for number in range(5)}
    decoded: list[int] = []
    decode = StoredBlocks.decode_stream

    def count(stored: StoredBlocks, numbers: Sequence[int]) -> object:
        decoded.extend(numbers)
        return decode(stored, numbers)

    monkeypatch.setattr(StoredBlocks, "decode_stream", count)
    with Archive(packed(tmp_path, contents)) as archive:
        inode = archive.resolve("3")
        words = oracle.ngrams_of([(b"3", contents["3"])])
        assert compute(b"wordcount", archive, StatsQuery(ino=inode.ino)).read() == oracle.sequence_count(words)
        start = archive.extents(inode.ino)[0].stream_offset
    assert decoded == list(range(start // BLOCK_SIZE, (start + 100_000 - 1) // BLOCK_SIZE + 1))


def damage_block(archive: Path, number: int) -> None:
    with Archive(archive) as opened:
        offset = int(opened.segments[0].blocks.archive_offsets[number])
    content = bytearray(archive.read_bytes())
    content[offset + 40] ^= 0xFF
    archive.write_bytes(content)


def test_damage(tmp_path: Path) -> None:
    """Statistics that need a damaged block fail and name it. All others work."""
    contents = {"sound": make_text(1, 4 * BLOCK_SIZE), "damaged": make_text(2, 4 * BLOCK_SIZE)}
    path = packed(tmp_path, contents)
    with Archive(path) as archive:
        damaged = archive.resolve("damaged").ino
        block = archive.extents(damaged)[0].stream_offset // BLOCK_SIZE + 1
    damage_block(path, block)
    with Archive(path) as archive:
        for name in (b"wordcount", b"term_vector"):
            with pytest.raises(CorruptBlockError, match=f"damaged: block {block}: the compressed bytes"):
                compute(name, archive)
        alone = StatsQuery(ino=archive.resolve("sound").ino)
        words = oracle.ngrams_of([(b"sound", contents["sound"])])
        assert compute(b"term_vector", archive, alone).read() == oracle.term_vector(words)


def test_an_unknown_word_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Archive(packed(tmp_path, {"a": b"word"})) as archive:
        monkeypatch.setitem(archive.meta, "words", "syllables")
        with pytest.raises(StatsUnavailableError, match="unknown word rule 'syllables'"):
            compute(b"sort", archive)


@pytest.mark.usefixtures("small_grammars")
def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that need all text at once fail early. Word counts need no text after it was counted."""
    contents = {"text": b" ".join(b"%d" % (number % 1000) for number in range(100_000))}
    sizes: list[int] = []
    drop: Callable[[Grammar], None] = Grammar.drop_parts

    def note(grammar: Grammar) -> None:
        before = grammar.num_bytes
        drop(grammar)
        sizes.append(before - grammar.num_bytes)

    monkeypatch.setattr(Grammar, "drop_parts", note)
    monkeypatch.setattr("gompfs.statistics.memory_limit._memory_limit", lambda: 100_000)
    with Archive(packed(tmp_path, contents)) as archive:
        with pytest.raises(StatsUnavailableError, match="more memory"):
            compute(b"term_vector", archive)
        words = oracle.ngrams_of([(b"text", contents["text"])])
        assert compute(b"wordcount", archive).read() == oracle.sequence_count(words)
    assert sum(sizes) > 400_000


def test_a_file_of_a_part_without_head_is_replaced(tmp_path: Path) -> None:
    """Bytes of a part that belong to no file are left out, whatever codec stores the part."""
    rng = random.Random(5)
    root, later = tmp_path / "tree", tmp_path / "later"
    contents = {name: "".join(rng.choices("abcdefgh.,;:-+*/()[]{}", k=30_000)).encode() for name in "abcd"}
    for folder, files in ((root, contents), (later, {"a": b"(new words)", "c": b"here"})):
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
    options = {"kind": "parts", "part_size": 1 << 18, "words": "identifiers"}
    path = pack(tmp_path / "a.gomp", root, **options)
    add(path, later, **options)
    with Archive(path) as archive:
        assert [list(segment.parts.kinds) for segment in archive.segments] == [[PartKind.TEXT], [PartKind.TEXT]]
        check(archive, {**contents, "a": b"(new words)", "c": b"here"}, "identifiers")
