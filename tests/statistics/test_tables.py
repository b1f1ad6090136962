"""Statistics as tables and as JSON Lines: they have what the text has. pyarrow, pandas and DuckDB read them."""

from __future__ import annotations

import errno
import io
import json
import os
import random
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import table_oracle as oracle
from coreutils_oracle import pack, run_gompfs
from hypothesis import given, settings
from hypothesis import strategies as st
from manifests import GOLDEN

import gompfs
from gompfs._native.statistics import table_batches
from gompfs.archive import Archive
from gompfs.errors import GompfsError, OptionError, StatsUnavailableError
from gompfs.format.superblock import SUPERBLOCK_SIZE
from gompfs.statistics import tables
from gompfs.statistics.documents import Document
from gompfs.statistics.formats import Format, formatted
from gompfs.statistics.line_format import line_format
from gompfs.statistics.query import StatsQuery
from gompfs.statistics.report import FixedReport
from gompfs.statistics.tasks import LISTED_OF_FILE, NAMES, NAMES_OF_FILE, TASKS, compute

SEARCHES = ("word/to", "phrase/to be")
OTHER_WORDS = [
    b"to",
    b"be",
    b"or",
    b"caf\xc3\xa9",
    b"\xff\xfe",
    b"\xe2\x82",
    b"\xed\xa0\x80x",
    b'q"\\',
    b"\x01",
    b"a\x1fb",
]
OTHER_PATHS = ("plain", "tab\tb", "line\nfeed", "back\\slash\\n", "odd \udcff", "dir/caf\xe9")

golden = pytest.mark.parametrize("archive", sorted(GOLDEN.glob("*.gomp")), ids=lambda path: path.stem)


def read_table(content: bytes, form: Format) -> pa.Table:
    if form is Format.PARQUET:
        return pq.read_table(io.BytesIO(content))
    return pa.ipc.open_file(content).read_all()


def check(name: str, text: bytes) -> None:
    """Checks all formats of the text of a statistic."""
    task = TASKS[name.partition("/")[0]]
    rows = oracle.rows(task.name, text)
    for form in (Format.ARROW, Format.PARQUET):
        table = read_table(formatted(FixedReport(text), task.columns, form).read(), form)
        assert [(field.name, field.type) for field in table.schema] == oracle.columns(task.name)
        table.validate(full=True)
        assert table.to_pylist() == [{key: row[key] for key in table.column_names} for row in rows]
    lines = formatted(FixedReport(text), task.columns, Format.JSONL).read()
    if task.columns:
        assert [json.loads(line) for line in lines.splitlines()] == oracle.json_values(task.name, text)


@golden
def test_golden_archives(archive: Path) -> None:
    with Archive(archive) as opened:
        for name in (*NAMES, *SEARCHES):
            check(name, compute(os.fsencode(name), opened).read())
        overlap = StatsQuery(ngram_length=2, documents=[Document(b"a\tb", b"to be or"), Document(b"none", b"\xff")])
        check("overlap", compute(b"overlap", opened, overlap).read())


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files whose words and paths are of all kinds."""
    root = tmp_path_factory.mktemp("tree")
    rng = random.Random(4)
    for name in OTHER_PATHS:
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b" ".join(rng.choices(OTHER_WORDS, k=200)) + b"\n")
    return root


@pytest.fixture(scope="module", params=["parts", "blocks"])
def archive(request: pytest.FixtureRequest, tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack(tmp_path_factory.mktemp("archive") / "a.gomp", tree, kind=request.param, words="whitespace")


def text_of(archive: Path, name: str, **query: Any) -> bytes:
    with Archive(archive) as opened:
        return compute(os.fsencode(name), opened, StatsQuery(**query)).read()


@pytest.mark.parametrize("name", [*NAMES, *SEARCHES])
def test_words_and_paths_of_all_kinds(archive: Path, name: str) -> None:
    text = text_of(archive, name)
    check(name, text)
    if name == "ranked_inverted_index":
        rows = oracle.rows(name, text)
        assert {os.fsdecode(row["file_bytes"]) for row in rows if row["file_bytes"]} == {"odd \udcff"}
        assert any(row["words_bytes"] for row in rows)


def test_documents_without_files(archive: Path) -> None:
    documents = [Document(b"found", b"to be or"), Document(b"not found", b"x y z"), Document(b"empty", b"")]
    text = text_of(archive, "overlap", documents=documents, ngram_length=2)
    assert [row["file"] is None for row in oracle.rows("overlap", text)][-2:] == [True, True]
    check("overlap", text)


# Bytes that no word has separate them, so the oracle can count them too.
contents = st.lists(st.sampled_from(OTHER_WORDS), max_size=30).map(b" ".join)
names = st.sampled_from([b"a", b"b\tc", b"d\ne", b"f\\", b"g\xff"])


@settings(max_examples=10, deadline=None)
@given(st.dictionaries(names, contents, min_size=1), st.sampled_from(["parts", "blocks"]))
def test_any_tree(tmp_path_factory: pytest.TempPathFactory, files: dict[bytes, bytes], kind: str) -> None:
    root = tmp_path_factory.mktemp("any")
    (root / "tree").mkdir()
    for name, content in files.items():
        Path(os.fsdecode(os.fsencode(root / "tree") + b"/" + name)).write_bytes(content)
    archive = pack(root / "a.gomp", root / "tree", kind=kind, words="whitespace")
    for name in (*NAMES, *SEARCHES):
        check(name, text_of(archive, name))


def test_commands_and_python_give_the_same_table(archive: Path) -> None:
    for name in ("tfidf", "sequence_count"):
        expected = oracle.rows(name, run_gompfs("stats", archive, name))
        for form in (Format.ARROW, Format.PARQUET):
            table = read_table(run_gompfs("stats", archive, name, "--format", form.value), form)
            assert table.to_pylist() == [{key: row[key] for key in table.column_names} for row in expected]
        with gompfs.open(archive) as files:
            whole = files.stats(name, as_table=True)
            batches = files.stats(name, as_table="batches")
            assert isinstance(whole, pa.Table)
            assert isinstance(batches, pa.RecordBatchReader)
            assert whole == batches.read_all() == table
    text = run_gompfs("stats", archive, "inverted_index", "--top", "2", "--format", "jsonl")
    assert [json.loads(line) for line in text.splitlines()] == oracle.json_values(
        "inverted_index", run_gompfs("stats", archive, "inverted_index", "--top", "2")
    )
    assert run_gompfs("stats", archive, "wordcount", "--format", "text") == run_gompfs("stats", archive, "wordcount")


def test_facts(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"to be or not to be")
    archive = pack(tmp_path / "a.gomp", tmp_path / "file")
    facts = json.loads(run_gompfs("stats", archive, "info", "--format", "jsonl"))
    assert facts["entries"] == json.loads(run_gompfs("stats", archive, "info", "--json"))["entries"]


def test_duckdb_and_pandas_read_them(tmp_path: Path, archive: Path) -> None:
    for form in ("parquet", "arrow", "jsonl"):
        (tmp_path / f"t.{form}").write_bytes(run_gompfs("stats", archive, "term_vector", "--format", form))
    expected: dict[str, int] = {}
    for row in oracle.rows("sort", run_gompfs("stats", archive, "sort")):
        expected[row["word"]] = row["count"]
    total = "select word, sum(count)::bigint from {} group by word"
    assert dict(duckdb.sql(total.format(f"'{tmp_path}/t.parquet'")).fetchall()) == expected
    with gompfs.open(archive) as files:
        batches = files.stats("term_vector", as_table="batches")  # noqa: F841  DuckDB finds it by its name
        assert dict(duckdb.sql(total.format("batches")).fetchall()) == expected
    for frame in (pandas.read_parquet(tmp_path / "t.parquet"), pandas.read_feather(tmp_path / "t.arrow")):
        assert frame.groupby("word")["count"].sum().to_dict() == expected
    lines = duckdb.sql(f"select file, len(words) from read_json('{tmp_path}/t.jsonl', format='newline_delimited')")
    files = [line.split(b"\t") for line in run_gompfs("stats", archive, "term_vector").splitlines()]
    assert [number for _, number in lines.fetchall()] == [len(words) for _, *words in files]


def text_in_pieces(lines: Sequence[bytes]) -> FixedReport:
    return FixedReport(b"".join(line + b"\n" for line in lines))


def test_a_line_that_is_larger_than_a_batch() -> None:
    """It continues in the next batch, and the text that its rows repeat is limited too."""
    path = b"p" * 4000
    words = [b"%d w%059d" % (number % 7, number) for number in range(150_000)]
    text = b"\t".join([path, *words]) + b"\nlast\t1 word\n"
    columns = TASKS["term_vector"].columns
    assert len(table_batches([text], line_format(columns), 1)) > 1
    batches = list(tables.reader(FixedReport(text), columns))
    assert max(batch.nbytes for batch in batches) < 64 << 20
    assert sum(batch.num_rows for batch in batches) == len(words) + 1
    start = 0
    for batch in batches:
        of_file = batch.filter(pa.compute.equal(batch["file"], path.decode()))
        found = of_file.to_pydict()
        part = [word.split(b" ") for word in words[start : start + of_file.num_rows]]
        assert found["word"] == [word.decode() for _, word in part]
        assert found["count"] == [int(count) for count, _ in part]
        start += of_file.num_rows
    assert start == len(words)
    assert batches[-1].slice(batches[-1].num_rows - 1).to_pydict()["file"] == ["last"]


def test_row_groups_are_limited() -> None:
    report = text_in_pieces([b"word%d\t%d" % (number, number) for number in range(1_500_000)])
    content = formatted(report, TASKS["sort"].columns, Format.PARQUET).read()
    metadata = pq.ParquetFile(io.BytesIO(content)).metadata
    assert metadata.num_rows == 1_500_000
    assert metadata.num_row_groups > 1


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("wordcount", b"word", "a line with too few fields"),
        ("wordcount", b"word\t1\t2", "a line with too many fields"),
        ("wordcount", b"word\tx", "a line without a count"),
        ("wordcount", b"word\t-1", "a line without a count"),
        ("wordcount", b"word\t18446744073709551616", "a line without a count"),
        ("wordcount", b"", "a line with too few fields"),
        ("tfidf", b"path\tx word", "a line without a score"),
        ("term_vector", b"path\tword", "a line without a count"),
        ("ranked_inverted_index", b"a b c\t", "a line without a count"),
    ],
)
def test_texts_that_do_not_have_the_columns(name: str, line: bytes, message: str) -> None:
    for form in (Format.JSONL, Format.ARROW, Format.PARQUET):
        with pytest.raises(StatsUnavailableError, match=message):
            formatted(text_in_pieces([line]), TASKS[name].columns, form).read()


def test_damaged_archives_give_the_errors_of_the_text(tmp_path: Path, archive: Path) -> None:
    content = bytearray(archive.read_bytes())
    with Archive(archive) as opened:
        content_of = slice(SUPERBLOCK_SIZE + 40, opened.footer.index_offset)
    content[content_of] = bytes(byte ^ 0xFF for byte in content[content_of])
    damaged = tmp_path / "damaged.gomp"
    damaged.write_bytes(content)
    expected = run_gompfs("stats", damaged, "term_vector", status=1)
    assert expected.count(b"\n") == 1
    for form in (Format.JSONL, Format.PARQUET):
        assert run_gompfs("stats", damaged, "term_vector", "--format", form.value, status=1) == expected
    with gompfs.open(damaged) as files, pytest.raises(GompfsError) as error:
        files.stats("term_vector", as_table=True)
    assert str(error.value) in expected.decode()


def test_errors_while_batches_are_read(archive: Path) -> None:
    class Failing(FixedReport):
        def __iter__(self) -> Any:
            yield b"word\t1\n"
            raise GompfsError("read failed")

    with pytest.raises(GompfsError, match="read failed"):
        tables.reader(Failing(b""), TASKS["sort"].columns).read_all()
    with gompfs.open(archive) as files, pytest.raises(OptionError):
        files.stats("no such", as_table=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("wordcount", "--format", "parquet", "--json"), b"cannot be used with --json"),
        (("--format", "jsonl"), b"--format is for statistics"),
        (("wordcount", "--format", "csv"), b"'csv' is not one of"),
    ],
)
def test_wrong_usage(archive: Path, arguments: tuple[str, ...], message: bytes) -> None:
    assert message in run_gompfs("stats", archive, *arguments, status=2)


def test_no_file_with_a_word_is_no_table(archive: Path) -> None:
    assert b"no file contains this" in run_gompfs("stats", archive, "word/nowhere", "--format", "parquet", status=1)


_WITHOUT_PYARROW = "import sys; sys.modules['pyarrow'] = None; from gompfs.cli import main; main()"


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_only_tables_need_pyarrow(archive: Path, form: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", _WITHOUT_PYARROW, "stats", archive, "wordcount", "--format", form],
        capture_output=True,
        check=False,
    )
    if form == "jsonl":
        assert done.returncode == 0
        assert json.loads(done.stdout.splitlines()[0])["count"] > 0
    else:
        assert done.returncode == 2
        assert done.stdout == b""
        install = f"{shlex.quote(sys.executable)} -m pip install 'gompfs[tables]'"
        assert done.stderr.splitlines()[-1].decode() == f"gompfs: tables need pyarrow: {install}"


def test_files_of_a_mount(tree: Path, tmp_path: Path, mounted_stats: Callable[[Path], Path]) -> None:
    archive = pack(tmp_path / "a.gomp", tree, words="whitespace")
    stats = mounted_stats(archive)
    listed = sorted(os.listdir(stats))
    for name in ("tfidf", "wordcount"):
        for form in ("parquet", "arrow", "jsonl"):
            content = (stats / f"tables/{name}.{form}").read_bytes()
            assert len(content) == (stats / f"tables/{name}.{form}").stat().st_size
            assert content == run_gompfs("stats", archive, name, "--format", form)
    of_file = stats / "files" / "plain"
    for name in NAMES_OF_FILE:
        expected = run_gompfs("stats", archive, f"files/plain/{name}", "--format", "parquet")
        assert (of_file / f"{name}.parquet").read_bytes() == expected
    assert sorted(os.listdir(of_file)) == sorted(LISTED_OF_FILE)
    assert sorted(os.listdir(stats)) == listed
    assert os.listdir(stats / "tables") == []
    tables = ("tables/tfidf.csv", "tables/tfidf.parquet.arrow", "tables/metrics.parquet", "tables/tfidf")
    for name in ("tfidf.parquet", "word/to.parquet", "files/plain/inverted_index.parquet", *tables):
        with pytest.raises(OSError, match="No such file") as error:
            os.stat(stats / name)
        assert error.value.errno == errno.ENOENT
