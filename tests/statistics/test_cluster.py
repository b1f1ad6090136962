"""Statistics and searches of many archives on a cluster of two processes. The oracle is one archive of all files."""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from coreutils_oracle import count_with_coreutils, files_under, pack, run_gompfs
from distributed import Client, LocalCluster
from range_server import serving

import gompfs
from gompfs import errors
from gompfs.archive import Archive
from gompfs.engine import select_engine
from gompfs.errors import ArchiveFormatError, GompfsError, OptionError, StatsUnavailableError
from gompfs.integrations.dask import MERGED, grep, grep_outputs, stats, stats_output
from gompfs.search.query import SearchQuery
from gompfs.statistics.query import StatsQuery
from gompfs.statistics.tasks import compute
from gompfs.threads import default_threads, threads_limited_to

KINDS = ("parts", "blocks")
# In byte order: a-b, a-b/..., a.b, a/..., so the order of archives is not that of their files' paths. Texts have the
# newline as backslash and n, which is after the exclamation mark.
NAMES = ("a", "a-b", "a.b", *(f"archive {number}" for number in range(6)), "y\n", "y!", "z\\n")
FILES = ("one", "back\\slash", "new\nline", "tab\tulator", "below/two", "carriage\rreturn")


class Corpus(NamedTuple):
    """Archives, and one archive that has each as a directory."""

    folder: Path
    names: tuple[str, ...]
    whole: Path
    tree: Path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder, tree = tmp_path_factory.mktemp("archives"), tmp_path_factory.mktemp("tree")
    rng = random.Random(20)
    words = [bytes(rng.choices(b"ab\x01\\\xc3\xff,", k=rng.randint(1, 3))) for _ in range(40)]
    words += [b"a", b"b", b"ab,"]
    for number, name in enumerate(NAMES):
        for file in rng.sample(FILES, 4):
            path = tree / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b" ".join(rng.choices(words, k=150)) + b"\n")
        pack(folder / name, tree / name, kind=KINDS[number % len(KINDS)])
    (tree / "a/binary").write_bytes(b"\0ab")
    return Corpus(folder, NAMES, pack(folder / "whole", tree), tree)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def in_corpus(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(corpus.folder)


def result(client: Client, collection: Any) -> Any:
    return client.compute(collection).result()


def text_of(client: Client, *arguments: Any, **options: Any) -> bytes:
    text, warnings = result(client, stats_output(*arguments, **options))
    assert warnings == []
    return text


def of_whole(corpus: Corpus, name: str, **query: int) -> bytes:
    with Archive(corpus.whole) as archive:
        return compute(os.fsencode(name), archive, StatsQuery(**query)).read()


@pytest.mark.parametrize("top", [0, 3])
@pytest.mark.parametrize("name", [*MERGED[:-2], "word/a", "phrase/a b", "word/not-there"])
def test_a_statistic_is_that_of_one_archive(client: Client, corpus: Corpus, name: str, top: int) -> None:
    expected = of_whole(corpus, name, top=top)
    assert bool(expected) == (name != "word/not-there")
    assert text_of(client, corpus.names, name, top=top) == expected


def test_n_grams_of_other_lengths(client: Client, corpus: Corpus) -> None:
    for length in (1, 5):
        text = text_of(client, corpus.names, "sequence_count", ngram_length=length)
        assert text == of_whole(corpus, "sequence_count", ngram_length=length)


def test_word_counts_are_those_of_coreutils(client: Client, corpus: Corpus) -> None:
    by_count, by_word = count_with_coreutils(files_under(corpus.tree))
    assert by_count != by_word
    assert text_of(client, corpus.names, "wordcount") == by_count
    assert text_of(client, corpus.names, "sort") == by_word


def test_one_archive_has_no_prefix(client: Client) -> None:
    with Archive("a") as archive:
        assert text_of(client, ["a"], "term_vector") == compute(b"term_vector", archive).read()


def test_values(client: Client, corpus: Corpus) -> None:
    for name in ("wordcount", "ranked_inverted_index"):
        with gompfs.open(corpus.whole) as files:
            assert result(client, stats(corpus.names, name, top=2)) == list(files.stats(name, top=2))


def test_any_scheduler_of_dask(corpus: Corpus) -> None:
    assert stats_output(corpus.names).compute(scheduler="synchronous").text == of_whole(corpus, "wordcount")


def test_archives_in_another_store(client: Client, corpus: Corpus) -> None:
    with serving(corpus.folder) as server:
        urls = [f"{server.url}/{name}" for name in ("a", "a-b", "a.b")]
        assert text_of(client, urls) == text_of(client, ["a", "a-b", "a.b"])
        with pytest.raises(GompfsError, match=r"^http://.*/missing: the server answers 404"):
            result(client, stats_output([*urls, f"{server.url}/missing"]))


def test_matches(client: Client, corpus: Corpus) -> None:
    expected = []
    for name in corpus.names:
        with gompfs.open(name) as files:
            expected += [(name, match) for match in files.grep("ab,", "b+a", max_count=2)]
    assert len(expected) > len(corpus.names)
    matches = grep(corpus.names, "ab,", "b+a", max_count=2)
    assert matches.npartitions == len(corpus.names)
    assert result(client, matches) == expected


def test_commands_print_what_they_print_without_a_cluster(client: Client, corpus: Corpus) -> None:
    scheduler = client.scheduler.address
    counted = run_gompfs("stats", "--dask", scheduler, *corpus.names, "ranked_inverted_index", "--n", "2", "--top", "4")
    assert counted == run_gompfs("stats", corpus.whole, "ranked_inverted_index", "--n", "2", "--top", "4")
    search = ("grep", "-n", "-C", "1", "--sort", "path", "ab,")
    assert run_gompfs(*search, "--dask", scheduler, *corpus.names) == run_gompfs(*search, *corpus.names)
    assert b"a-b/" in run_gompfs("grep", "-l", "--dask", scheduler, "ab,", "a", "a-b")
    for form in (("--json",), ("--format", "parquet")):
        expected = run_gompfs("stats", corpus.whole, "term_vector", *form)
        assert run_gompfs("stats", "--dask", scheduler, *corpus.names, "term_vector", *form) == expected


def test_errors_name_the_archive(client: Client, tmp_path: Path) -> None:
    truncated = tmp_path / "truncated"
    content = Path("a").read_bytes()
    truncated.write_bytes(content[: len(content) // 2])
    with pytest.raises(ArchiveFormatError, match=f"^{truncated}: "):
        result(client, stats_output(["a", truncated]))
    with pytest.raises(GompfsError, match=r"^missing: No such file"):
        result(client, stats_output(["a", "missing"]))
    with pytest.raises(GompfsError, match=r"^missing: No such file"):
        result(client, grep_outputs(["a", "missing"], SearchQuery((b"a",)))[1])


def test_warnings_of_archives(client: Client, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.write_bytes(Path("a").read_bytes()[:-100])
    for output in (stats_output(["a", damaged]), grep_outputs(["a", damaged], SearchQuery((b"a",)))[1]):
        (warning,) = result(client, output).warnings
        assert warning.startswith(f"{damaged}: ")
    printed = run_gompfs("stats", "--dask", client.scheduler.address, damaged, "word/not-there", status=1)
    assert printed.startswith(b"gompfs: warning: " + bytes(damaged) + b": ")


def test_archives_with_different_words_do_not_merge(client: Client, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a b")
    other = pack(tmp_path / "letters", tmp_path / "text", words="letters")
    with pytest.raises(StatsUnavailableError, match="letters: words are split by the rule letters, but those of a by"):
        result(client, stats_output(["a", other]))


def test_wrong_arguments() -> None:
    for name in ("tfidf", "info", "overlap", "words", "files/one/wordcount", "wordcounts", "word"):
        with pytest.raises(OptionError):
            stats_output(["a", "a-b"], name)
    for arguments in ({"top": -1}, {"ngram_length": 6}):
        with pytest.raises(OptionError):
            stats_output(["a"], "sequence_count", **arguments)
    with pytest.raises(OptionError, match="no archive"):
        stats_output([])
    with pytest.raises(OptionError, match=r"\./a is given twice"):
        stats_output(["a", "./a"])
    with pytest.raises(OptionError, match="unclosed group"):
        grep_outputs(["a"], SearchQuery((b"(",)))


def test_wrong_commands() -> None:
    for arguments, message in (
        (("--dask", "", "a", "sort"), b"needs the address"),
        (("--dask", "tcp://127.0.0.1:1", "a"), b"needs a statistic"),
        (("--dask", "tcp://127.0.0.1:1", "a", "sort", "--file", "one"), b"cannot be used with --file"),
        (("--dask", "nothing://", "a", "sort"), b"no Dask scheduler answers at nothing://"),
    ):
        status = 1 if b"answers" in message else 2
        assert message in run_gompfs("stats", *arguments, status=status)


def test_errors_survive_the_way_from_a_worker() -> None:
    for name in errors.__all__:
        kind = getattr(errors, name)
        if isinstance(kind, type):
            error = kind("reason", archive="a.gomp", path="file", block=7)
            received = pickle.loads(pickle.dumps(error))
            assert type(received) is kind
            assert str(received) == str(error) == "a.gomp: file: block 7: reason"


def test_a_task_limits_its_threads() -> None:
    cores = len(os.sched_getaffinity(0))
    with threads_limited_to(cores + 1):
        assert default_threads() == select_engine("cpu").num_threads == cores + 1
        with threads_limited_to(0):
            assert default_threads() == cores
    assert default_threads() == cores
