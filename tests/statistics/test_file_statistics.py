"""Inverted index, term vector, sequence count and ranked inverted index, compared byte for byte with plain Python."""

from __future__ import annotations

import functools
import itertools
import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
import statistics_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_grammars import plain_grammar_of
from stored_parts import BUILDERS, grammar_of

from gompfs._native.statistics import Direction, PostingsTask
from gompfs.errors import OptionError, StatsUnavailableError
from gompfs.model import WORD_RULES
from gompfs.statistics import temporary_files
from gompfs.statistics.paths import escape_path, unescape_path
from gompfs.statistics.postings import postings_report
from gompfs.statistics.traversal import Traversal
from gompfs.text.grammar import Grammar

MIB = 1 << 20
TRAVERSALS = [Traversal(direction, num_threads=threads) for direction in Direction for threads in (1, 3)]
# Words that contain bytes below the space sort differently alone than before other words.
words = st.sampled_from([b"a", b"a\x01", b"a\x1fb", b"ab", b"b", b"\xff", b"\0", b"z" * 300, b"~"])
segments = st.lists(st.lists(st.lists(words, max_size=20), max_size=5), max_size=3)
Files = Sequence[tuple[int, bytes]]
each_builder = pytest.mark.parametrize("builder", BUILDERS)
any_builder = st.sampled_from(sorted(BUILDERS))


def path_of(ino: int) -> bytes:
    """Returns a path; the order of paths differs from that of inodes."""
    return b"%03d/file" % (ino * 37 % 1000)


@functools.lru_cache(maxsize=16)
def expected_of_words(texts: tuple[tuple[bytes, bytes], ...], word_rule: str) -> tuple[bytes, bytes]:
    """Returns the inverted index and the term vector of texts by path."""
    of_words = oracle.ngrams_of(texts, 1, word_rule)
    return oracle.inverted_index(of_words), oracle.term_vector(of_words)


@functools.lru_cache(maxsize=16)
def expected_of_ngrams(texts: tuple[tuple[bytes, bytes], ...], length: int, word_rule: str) -> tuple[bytes, bytes]:
    """Returns the sequence count and the ranked inverted index of texts by path."""
    ngrams = oracle.ngrams_of(texts, length, word_rule)
    return oracle.sequence_count(ngrams), oracle.ranked_inverted_index(ngrams)


def check(
    grammars: Sequence[Grammar],
    files: Files,
    lengths: Sequence[int] = (1, 2, 3, 4, 5),
    word_rule: str = "whitespace",
    traversals: Sequence[Traversal] = TRAVERSALS,
) -> None:
    """Checks that all tasks give the expected lines by all ways of traversal. Files without a path are not counted."""
    paths = {ino: path_of(ino) for ino, _ in files}
    texts = tuple((path_of(ino), content) for ino, content in files)
    index, vectors = expected_of_words(texts, word_rule)
    for how in traversals:
        assert postings_report(PostingsTask.INVERTED_INDEX, grammars, paths, traversal=how).read() == index
        assert postings_report(PostingsTask.TERM_VECTOR, grammars, paths, traversal=how).read() == vectors
    for length in lengths:
        counts, ranked = expected_of_ngrams(texts, length, word_rule)
        for how in traversals:
            for task, expected in ((PostingsTask.SEQUENCE_COUNT, counts), (PostingsTask.RANKED_INVERTED_INDEX, ranked)):
                found = postings_report(task, grammars, paths, ngram_length=length, traversal=how)
                assert found.read() == expected


@settings(max_examples=25, deadline=None)
@given(
    texts=segments, builders=st.tuples(*[st.sampled_from(sorted(BUILDERS))] * 3), left_out=st.sets(st.integers(1, 15))
)
def test_any_segments(texts: list[list[list[bytes]]], builders: tuple[str, ...], left_out: set[int]) -> None:
    inos = itertools.count(1)
    files = [[(next(inos), b" ".join(text)) for text in segment] for segment in texts]
    grammars = [BUILDERS[builder](segment) for segment, builder in zip(files, builders, strict=False)]
    check(grammars, [(ino, content) for segment in files for ino, content in segment if ino not in left_out])


@settings(max_examples=15, deadline=None)
@given(text=st.lists(st.sampled_from([b"a", b"b"]), max_size=200), builder=any_builder)
def test_repetitive_text(text: list[bytes], builder: str) -> None:
    """Nested rules that are shorter than the sequences; the same text twice, and cut."""
    files = [(1, b" ".join(text)), (2, b" ".join(text)), (3, b" ".join(text[: len(text) // 2]))]
    check([BUILDERS[builder](files)], files)


@each_builder
def test_odd_files(builder: str) -> None:
    """Empty files, a single word, no newline at the end, long words, invalid UTF-8, equal files."""
    rng = random.Random(11)
    noise = rng.randbytes(3000)
    files = [
        (1, b""),
        (2, b" \n\t\v\f\r" * 100),
        (3, b"word"),
        (4, b"two words"),
        (5, b"a last line\nwithout its end"),
        (6, b"x" * 70_000 + b" y " + b"x" * 70_000),
        (7, noise),
        (8, noise),
        (9, b"run " * 1000),
    ]
    check([BUILDERS[builder](files)], files)


@each_builder
def test_many_tiny_files(builder: str) -> None:
    """No sequence spans two files."""
    rng = random.Random(12)
    files = [(ino, b" ".join(b"%d" % rng.randrange(6) for _ in range(rng.randrange(9)))) for ino in range(1, 900)]
    check([BUILDERS[builder](files)], files, lengths=(2, 3))


@pytest.mark.parametrize("word_rule", WORD_RULES)
def test_word_rules(word_rule: str) -> None:
    files = [(1, "Ein Wört, ein Satz; ein Wört.".encode()), (2, b"don't \xff don't, don't, do_not(a->b);")]
    check([grammar_of(files, word_rule)], files, word_rule=word_rule)


@pytest.fixture(scope="module")
def over_parts() -> tuple[Files, Grammar]:
    """22 MB of long words: a file over three parts, with others before and after it."""
    rng = random.Random(13)
    vocabulary = [b"%03d" % number * 150 for number in range(300)]

    def text(size: int) -> bytes:
        return b" ".join(vocabulary[min(int(rng.paretovariate(0.6)) - 1, 299)] for _ in range(size // 450))

    files = [(1, text(MIB)), (2, text(18 * MIB)), (3, b""), (4, text(MIB)), (5, b"the end")]
    return files, plain_grammar_of(files)


@pytest.mark.slow
def test_a_file_over_several_parts(over_parts: tuple[Files, Grammar]) -> None:
    files, grammar = over_parts
    assert [part.continues for part in grammar.parts()] == [False, True, True]
    check([grammar], files, lengths=(3,))
    check([grammar], files, lengths=(5,), traversals=TRAVERSALS[:3])
    check([grammar], [files[1]], lengths=(3,), traversals=TRAVERSALS[:2])
    check([grammar], [file for file in files if file[0] != 2], lengths=(3,), traversals=TRAVERSALS[:2])


def test_parts_of_fewer_words_than_a_sequence() -> None:
    """A file whose words are longer than parts, so that its sequences span several parts."""
    long = b" ".join(b"%d" % number * (9 * MIB) for number in (1, 2, 1))
    files = [(1, long + b" end of it"), (2, b"end of it")]
    grammar = plain_grammar_of(files)
    assert len(list(grammar.parts())) >= 3
    check([grammar], files, lengths=(5,), traversals=TRAVERSALS[:3])


def test_top() -> None:
    """`top` limits words in a term vector, files in a ranked inverted index, and lines otherwise."""
    rng = random.Random(14)
    files = [(ino, b" ".join(b"%d" % rng.randrange(5) for _ in range(50))) for ino in range(1, 30)]
    grammars, paths = [grammar_of(files)], {ino: path_of(ino) for ino, _ in files}
    named = [(path_of(ino), content) for ino, content in files]
    of_words, ngrams = oracle.ngrams_of(named), oracle.ngrams_of(named, 3)

    def first(lines: bytes, top: int) -> bytes:
        return b"".join(lines.splitlines(keepends=True)[:top])

    for top in (1, 2, 4, 1000, 2**60):
        expected = {
            PostingsTask.INVERTED_INDEX: first(oracle.inverted_index(of_words), top),
            PostingsTask.TERM_VECTOR: oracle.term_vector(of_words, top),
            PostingsTask.SEQUENCE_COUNT: first(oracle.sequence_count(ngrams), top),
            PostingsTask.RANKED_INVERTED_INDEX: oracle.ranked_inverted_index(ngrams, top),
        }
        for task, lines in expected.items():
            assert postings_report(task, grammars, paths, top=top).read() == lines


all_tasks = pytest.mark.parametrize("task", PostingsTask, ids=lambda task: task.name.lower())


@all_tasks
def test_nothing_to_report(task: PostingsTask) -> None:
    left_out = grammar_of([(1, b"all of it left out")])
    for how in TRAVERSALS:
        assert postings_report(task, [], {}, traversal=how).read() == b""
        assert postings_report(task, [grammar_of([])], {1: b"f"}, traversal=how).read() == b""
        assert postings_report(task, [left_out], {2: b"f"}, traversal=how).read() == b""


@all_tasks
def test_space_is_bounded(task: PostingsTask) -> None:
    files = [(ino, b" ".join(b"%d" % (ino + number) for number in range(200))) for ino in range(1, 50)]
    grammars, paths = [grammar_of(files)], {ino: path_of(ino) for ino, _ in files}
    enough = postings_report(task, grammars, paths).read()
    for limit in (1, 500):
        with pytest.raises(StatsUnavailableError, match="more temporary space"):
            postings_report(task, grammars, paths, traversal=Traversal(space_limit=limit))
    assert postings_report(task, grammars, paths, traversal=Traversal(space_limit=64 * MIB)).read() == enough


@all_tasks
@pytest.mark.parametrize("in_memory", [0, 3000])
def test_postings_in_a_file(
    task: PostingsTask, in_memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spilling postings does not change the result. The file is in $TMPDIR and has no name."""
    rng = random.Random(15)
    texts = (b" ".join(b"%d" % rng.randrange(5000) for _ in range(rng.randrange(3000))) for _ in range(60))
    files = list(enumerate(texts, 1))
    grammars, paths = [grammar_of(files[:30]), grammar_of(files[30:])], {ino: path_of(ino) for ino, _ in files}
    expected = postings_report(task, grammars, paths).read()
    monkeypatch.setenv("TMPDIR", os.fspath(tmp_path))
    found = postings_report(task, grammars, paths, traversal=Traversal(in_memory=in_memory))
    assert found.read() == found.read() == expected
    assert list(tmp_path.iterdir()) == []


@all_tasks
def test_a_file_that_cannot_be_made(task: PostingsTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """This gives an error of the system, not a short report."""
    monkeypatch.setattr(temporary_files, "temporary_directory", lambda: "/proc/self/nowhere")
    monkeypatch.setattr(temporary_files, "free_space", lambda _directory: 1 << 40)
    with pytest.raises(OSError, match="No such file"):
        postings_report(task, [grammar_of([(1, b"a b c d")])], {1: b"f"}, traversal=Traversal(in_memory=0)).read()


@all_tasks
@pytest.mark.parametrize("length", [-1, 0, 6])
def test_invalid_lengths_of_ngrams(task: PostingsTask, length: int) -> None:
    with pytest.raises(OptionError, match="1 to 5"):
        postings_report(task, [], {}, ngram_length=length)


@all_tasks
def test_an_invalid_limit(task: PostingsTask) -> None:
    with pytest.raises(OptionError, match="-1"):
        postings_report(task, [], {}, top=-1)


@given(st.binary())
def test_paths_are_escaped(path: bytes) -> None:
    field = escape_path(path)
    assert b"\t" not in field
    assert b"\n" not in field
    assert unescape_path(field) == path
