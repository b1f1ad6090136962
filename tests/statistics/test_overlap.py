"""The overlap of documents with archives, and long phrases, compared with plain Python."""

from __future__ import annotations

import functools
import gzip
import json
import os
import random
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from coreutils_oracle import add, pack, run_gompfs
from oracle.grammar import split_words
from tree_helpers import write_files

import gompfs
from gompfs.archive import Archive
from gompfs.errors import OptionError
from gompfs.statistics.documents import Document, read_documents
from gompfs.statistics.query import StatsQuery
from gompfs.statistics.tasks import compute

# Words of 600 bytes, so that a file of few words is in several parts.
LONG_WORDS = [b"%c" % letter * 600 for letter in b"abcdefghijklmnop"]
SHORT_WORDS = [b"to", b"be", b"or", b"not", b"\xc3\xa9t\xc3\xa9", b"that", b"is", b"the", b"question", b"a", b"1"]


def text_of(rng: random.Random, vocabulary: Sequence[bytes], num_words: int) -> bytes:
    """Returns random words; half of them are in runs that occur again and again."""
    runs = [[rng.choice(vocabulary) for _ in range(rng.randrange(1, 60))] for _ in range(8)]
    words: list[bytes] = []
    while len(words) < num_words:
        words += rng.choice(runs) if rng.random() < 0.5 else [rng.choice(vocabulary) for _ in range(20)]
    return b"".join(word + rng.choice((b" ", b"\n", b", ")) for word in words[:num_words])


def contents_of(seed: int) -> dict[bytes, bytes]:
    rng = random.Random(seed)
    contents = {b"dir/%d" % number: text_of(rng, SHORT_WORDS, number * 9) for number in range(30)}
    large = text_of(rng, LONG_WORDS, 15_000)  # 9 MB
    contents |= {b"empty": b"", b"large": large, b"copy of large": large, b"tab\t": b"to be or not to be " * 9}
    return contents | {b"wide": text_of(rng, [*SHORT_WORDS, *LONG_WORDS], 3_000), b"binary": b"\0" + contents[b"dir/9"]}


@functools.lru_cache(200)
def words_of(text: bytes, rule: str = "identifiers") -> list[bytes]:
    return split_words(text, rule)


class Oracle:
    """All n-grams of files, by file."""

    def __init__(self, contents: Mapping[bytes, bytes], length: int, rule: str = "identifiers") -> None:
        self._numbers: dict[bytes, int] = {}
        self._length = length
        self._rule = rule
        self._files: defaultdict[bytes, Counter[bytes]] = defaultdict(Counter)
        for path, content in contents.items():
            if b"\0" not in content:
                for ngram in self._ngrams(words_of(content, rule)):
                    self._files[ngram][path] += 1

    def _ngrams(self, words: Sequence[bytes]) -> list[bytes]:
        numbers = array("I", (self._numbers.setdefault(word, len(self._numbers)) for word in words))
        starts = range(len(words) - self._length + 1)
        return [numbers[start : start + self._length].tobytes() for start in starts]

    def line(self, name: bytes, text: bytes, top: int) -> bytes:
        ngrams = set(self._ngrams(words_of(text, self._rule)))
        found = [self._files[ngram] for ngram in ngrams if ngram in self._files]
        shared: Counter[bytes] = Counter()
        counts: Counter[bytes] = Counter()
        for files in found:
            shared.update(files.keys())
            counts.update(files)
        ranked = sorted(shared, key=lambda path: (-shared[path], -counts[path], path))[:top]
        fraction = len(found) / len(ngrams) if ngrams else 0.0
        head = b"%s\t%d\t%d\t%.4f\t%d" % (name, len(ngrams), len(found), fraction, counts.total())
        of_files = [b"%d %s" % (shared[path], path.replace(b"\t", b"\\t")) for path in ranked]
        return b"\t".join([head, *of_files]) + b"\n"

    def phrase(self, words: Sequence[bytes]) -> bytes:
        (ngram,) = self._ngrams(words)
        files = sorted(self._files.get(ngram, {}).items(), key=lambda item: (-item[1], item[0]))
        return b"".join(b"%s\t%d\n" % (path.replace(b"\t", b"\\t"), count) for path, count in files)


def documents_of(contents: Mapping[bytes, bytes], rng: random.Random) -> list[Document]:
    """Pieces of the files, with words that no file has, and texts that are in no file."""
    documents = [Document(b"empty", b""), Document(b"unknown", b"nowhere " * 300), Document(b"short", b"to be")]
    texts = [words_of(content) for content in contents.values()]
    for number in range(40):
        words: list[bytes] = []
        for _ in range(rng.randrange(1, 4)):
            text = rng.choice(texts)
            begin = rng.randrange(len(text) + 1)
            words += text[begin : begin + rng.randrange(1, 500)] + rng.choice(([], [b"nowhere"], [b"to"]))
        documents.append(Document(b"%d" % number, b" ".join(words)))
    return [*documents, Document(b"whole", contents[b"dir/20"]), Document(b"large", contents[b"large"])]


KINDS = ["parts", "blocks", "parts, blocks", "blocks, parts"]
Packed = tuple[Path, dict[bytes, bytes]]


@pytest.fixture(scope="module", params=KINDS)
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Packed:
    """An archive and its files; some files of an earlier segment were replaced."""
    root = tmp_path_factory.mktemp("overlap")
    contents = contents_of(1)
    first, _, second = request.param.partition(", ")
    target = pack(root / "a.gomp", write_files(root / "tree", contents), kind=first, words="identifiers")
    if second:
        later = {b"dir/3": contents[b"dir/29"], b"late": contents[b"dir/20"], b"dir/28": b""}
        add(target, write_files(root / "later", later), kind=second)
        contents |= later
    return target, contents


@pytest.mark.parametrize("length", [1, 2, 5, 13, 40, 255])
def test_overlap_is_exact(archive: Packed, length: int) -> None:
    path, contents = archive
    documents = documents_of(contents, random.Random(length))
    oracle = Oracle(contents, length)
    with Archive(path) as opened:
        for top in (0, 3):
            query = StatsQuery(ngram_length=length, top=top, documents=documents)
            expected = b"".join(oracle.line(name, text, top or 10) for name, text in documents)
            assert compute(b"overlap", opened, query).read() == expected


def test_phrases_of_any_length(archive: Packed) -> None:
    path, contents = archive
    rng = random.Random(3)
    large = words_of(contents[b"large"])
    with Archive(path) as opened:
        for length in (1, 6, 100, 255):
            oracle = Oracle(contents, length)
            for words in (words_of(contents[b"dir/29"]), large, large):
                begin = rng.randrange(len(words) - length + 1)
                wanted = words[begin : begin + length]
                assert compute(b"phrase/" + b" ".join(wanted), opened).read() == oracle.phrase(wanted) != b""
                wanted[rng.randrange(length)] = b"nowhere"
                assert compute(b"phrase/" + b" ".join(wanted), opened).read() == b""
        with pytest.raises(OptionError, match="a phrase has 1 to 255 words, not 256"):
            compute(b"phrase/" + b" ".join([b"to"] * 256), opened)


def test_phrases_over_the_end_of_every_part(archive: Packed) -> None:
    """Few n-grams select parts by their words; a part that has only the end of a phrase is searched, too."""
    path, contents = archive
    words = words_of(contents[b"large"])
    documents = [Document(b"%d" % at, b" ".join(words[at : at + 14])) for at in range(0, len(words) - 14, 5)]
    oracle = Oracle(contents, 13)
    with Archive(path) as opened:
        for first in (0, 1000, 2000):
            some = documents[first : first + 900]
            query = StatsQuery(ngram_length=13, documents=some)
            assert compute(b"overlap", opened, query).read() == b"".join(oracle.line(*each, 10) for each in some)


def test_overlap_with_one_file(archive: Packed) -> None:
    path, contents = archive
    documents = documents_of(contents, random.Random(4))
    with Archive(path) as opened:
        for name in (b"large", b"copy of large", b"dir/29", b"empty"):
            oracle = Oracle({name: contents[name]}, 4)
            query = StatsQuery(opened.resolve(name).ino, ngram_length=4, documents=documents)
            expected = b"".join(oracle.line(*document, 10) for document in documents)
            assert compute(b"overlap", opened, query).read() == expected


@pytest.mark.parametrize("rule", ["letters", "whitespace"])
def test_words_follow_the_rule_of_the_archive(tmp_path: Path, rule: str) -> None:
    contents = {b"a": "été, aujourd'hui x_y\u00a0z".encode() * 3, b"b": b"x_y z x y z"}
    path = pack(tmp_path / "a.gomp", write_files(tmp_path / "tree", contents), kind="parts", words=rule)
    documents = [Document(b"d", "aujourd'hui x_y x y z, été \u00a0 aujourd'hui".encode())]
    for length in (1, 2, 3):
        oracle = Oracle(contents, length, rule)
        with Archive(path) as opened:
            found = compute(b"overlap", opened, StatsQuery(ngram_length=length, documents=documents)).read()
        assert found == oracle.line(*documents[0], 10)


def test_many_documents_share_ngrams(tmp_path: Path) -> None:
    """More postings than are sorted at once, of documents that are all alike."""
    text = b" ".join(b"w%d" % number for number in range(3_000))
    contents = {b"%03d" % number: text for number in range(400)}
    path = pack(tmp_path / "a.gomp", write_files(tmp_path / "tree", contents), kind="parts", words="identifiers")
    short = b" ".join(words_of(text)[:22])  # 10 n-grams
    documents = [Document(b"a", text), Document(b"b", text), Document(b"c", short + b" nowhere")]
    with Archive(path) as opened:
        found = compute(b"overlap", opened, StatsQuery(ngram_length=13, top=2, documents=documents)).read()
    assert found.splitlines() == [
        b"a\t2988\t2988\t1.0000\t1195200\t2988 000\t2988 001",
        b"b\t2988\t2988\t1.0000\t1195200\t2988 000\t2988 001",
        b"c\t11\t10\t0.9091\t4000\t10 000\t10 001",
    ]


@pytest.mark.parametrize("kind", ["parts", "blocks"])
def test_rules_that_stand_for_much_text(tmp_path: Path, kind: str) -> None:
    """A few nested rules stand for 400,000 words."""
    contents = {b"a": b"to be " * 200_000}
    path = pack(tmp_path / "a.gomp", write_files(tmp_path / "tree", contents), kind=kind, words="identifiers")
    with Archive(path) as opened:
        for length in (1, 2, 13, 255):
            query = StatsQuery(ngram_length=length, documents=[Document(b"d", b"to be " * 200)])
            expected = b"d\t2\t2\t1.0000\t%d\t2 a\n" % (400_001 - length)
            assert compute(b"overlap", opened, query).read() == expected


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """An archive of two short files."""
    contents = {b"a": b"to be or not to be", b"b": b"to be or"}
    return pack(tmp_path / "a.gomp", write_files(tmp_path / "tree", contents), kind="parts", words="identifiers")


def test_command(small: Path, tmp_path: Path) -> None:
    plain, lines = tmp_path / "plain.txt", tmp_path / "set.jsonl.gz"
    plain.write_bytes(b"to be or nothing")
    rows = [{"question": "to be", "answers": ["or", "not"]}, {"question": "be or", "answers": []}]
    lines.write_bytes(gzip.compress(b"\n".join(json.dumps(row).encode() for row in [*rows, rows[0]]) + b"\n\n"))
    options = ("--n", "2", "--field", "question", "--field", "answers")
    expected = [
        f"{plain}\t3\t2\t0.6667\t5\t2 a\t2 b",
        f"{lines}:1\t3\t3\t1.0000\t6\t3 a\t2 b",
        f"{lines}:2\t1\t1\t1.0000\t2\t1 a\t1 b",
        f"{lines}:3\t3\t3\t1.0000\t6\t3 a\t2 b",
    ]
    found = run_gompfs("stats", small, "overlap", plain, lines, *options)
    assert found.decode().splitlines() == expected
    (first, *_) = json.loads(run_gompfs("stats", small, "overlap", plain, "--n", "3", "--top", "1", "--json"))
    assert first == {
        "document": str(plain),
        "ngrams": 2,
        "found": 1,
        "fraction": 0.5,
        "count": 2,
        "files": [{"ngrams": 1, "file": "a"}],
    }
    assert run_gompfs("stats", small, "overlap", plain).endswith(b"plain.txt\t0\t0\t0.0000\t0\n")  # 13 words


def test_python_interface(small: Path) -> None:
    with gompfs.open(small) as files:
        (found,) = files.stats("overlap", documents=[(b"d", b"not to be")], ngram_length=3, top=1)
    assert found["files"] == [{"ngrams": 1, "file": "a"}]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"[1]", "there is no text in the field 'text'"),
        (b'{"text": 1}', "there is no text in the field 'text'"),
        (b'{"text": ["a", 1]}', "there is no text in the field 'text'"),
        (b'{"other": "a"}', "there is no text in the field 'text'"),
        (b'{"text": "a"', "not a line of JSON"),
        (b'{"text": "\xff"}', "not a line of JSON"),
        (b"[" * 100_000, "not a line of JSON"),
    ],
)
def test_bad_lines(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "a"}\n' + line)
    with pytest.raises(OptionError, match=rf"a\.jsonl:2: {message}"):
        list(read_documents([str(path)]))


def test_other_documents(tmp_path: Path) -> None:
    damaged, surrogate = tmp_path / "a.gz", tmp_path / "b.ndjson"
    damaged.write_bytes(gzip.compress(b"some text" * 99)[:30])
    surrogate.write_bytes(b'{"text": "a\\ud800b"}\n')
    with pytest.raises(OptionError, match="damaged gzip file"):
        list(read_documents([str(damaged)]))
    (document,) = read_documents([str(surrogate)])
    assert document == (os.fsencode(surrogate) + b":1", b"a?b")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("overlap",), b"overlap needs documents: overlap DOCUMENT..."),
        (("wordcount", "x"), b"unexpected argument 'x'; only overlap takes documents"),
        (("overlap", "x", "--n", "256"), b"'256' is not a whole number from 1 to 255"),
        (("sequence_count", "--n", "6"), b"the n-grams of sequence_count have 1 to 5 words, not 6"),
        (("sort", "--field", "x"), b"--field is only for overlap"),
        (("overlap", "/nowhere/x"), b"/nowhere/x"),
    ],
)
def test_wrong_usage(small: Path, arguments: tuple[str, ...], message: bytes) -> None:
    assert message in run_gompfs("stats", small, *arguments, status=1 if b"nowhere" in message else 2)
