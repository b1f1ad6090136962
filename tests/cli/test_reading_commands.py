"""ls, cat, extract, info, stats and bench: what they print, and how they fail."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys

import pytest
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus, Codec


def test_ls_lists_the_root(gompfs, archive):
    result = gompfs("ls", archive)
    assert result.status == 0
    assert result.lines == ["docs/", "docs-link", "empty", "link", "z-again.txt", "z.txt"]


def test_ls_lists_directories_by_paths_that_cat_takes(gompfs, archive):
    assert gompfs("ls", archive, "docs").lines == ["docs/a.txt", "docs/b.txt"]
    assert gompfs("ls", archive, "/docs/").lines == ["/docs/a.txt", "/docs/b.txt"]
    assert gompfs("ls", archive, "docs-link").lines == ["docs-link/a.txt", "docs-link/b.txt"]
    assert gompfs("ls", archive, "link").lines == ["link"]


def test_ls_recursive_equals_find(gompfs, archive, tree):
    found = {
        f"{path.relative_to(tree)}/" if path.is_dir() and not path.is_symlink() else str(path.relative_to(tree))
        for path in tree.rglob("*")
    }
    lines = gompfs("ls", "-R", archive).lines
    assert sorted(found) == sorted(lines)
    assert lines[:3] == ["docs/", "docs/a.txt", "docs/b.txt"]


def test_ls_long_shows_what_ls_shows(gompfs, tree, tmp_path):
    (tree / "empty").chmod(0o640)
    (tree / "z.txt").chmod(0o644)  # whatever the umask is
    os.utime(tree / "empty", (0, 86400))
    gompfs("pack", "--codec", "gompresso-bit", "-q", "--owner", "123", "--group", "456789", tree, "owned.gomp")
    result = gompfs("ls", "-l", "owned.gomp", TZ="UTC")
    lines = {line.split(" 456789 ")[-1].split()[-1]: line.split() for line in result.lines}
    assert lines["empty"] == ["-rw-r-----", "1", "123/456789", "0", "1970-01-02", "00:00", "empty"]
    assert lines["z.txt"][:4] == ["-rw-r--r--", "2", "123/456789", "70000"]
    assert lines["docs/a.txt"][0] == "lrwxrwxrwx"
    assert lines["docs/a.txt"][-3:] == ["link", "->", "docs/a.txt"]


def test_ls_json(gompfs, archive, tree):
    entries = {entry["path"]: entry for entry in json.loads(gompfs("ls", "--json", "-R", archive).output)}
    assert entries["docs"]["type"] == "directory"
    assert entries["link"]["symlink_target"] == "docs/a.txt"
    status = (tree / "docs" / "a.txt").stat()
    expected = {"type": "file", "size": 33000, "mode": f"{status.st_mode & 0o7777:04o}", "nlink": 1}
    assert expected.items() <= entries["docs/a.txt"].items()
    assert entries["docs/a.txt"]["mtime_ns"] == status.st_mtime_ns
    assert entries["z.txt"]["ino"] == entries["z-again.txt"]["ino"]
    assert json.loads(gompfs("ls", "--json", archive, "docs").output)[1]["path"] == "docs/b.txt"


def test_ls_of_a_missing_path_still_lists_the_rest(gompfs, archive):
    result = gompfs("ls", archive, "nowhere", "docs")
    assert result.status == 1
    assert result.lines == ["docs/a.txt", "docs/b.txt"]
    assert result.error_line == f"{archive}: nowhere: no such file or directory"


def test_cat_writes_files_one_after_another(gompfs, archive, tree):
    result = gompfs("cat", archive, "docs/b.txt", "link", "empty", "/z.txt")
    expected = [(tree / name).read_bytes() for name in ("docs/b.txt", "docs/a.txt", "z.txt")]
    assert (result.status, result.errors) == (0, "")
    assert result.output == b"".join(expected)


def test_cat_of_a_directory_fails_and_continues(gompfs, archive, tree):
    result = gompfs("cat", archive, "docs", "z.txt")
    assert result.status == 1
    assert result.error_line == f"{archive}: docs: is a directory"
    assert result.output == (tree / "z.txt").read_bytes()


def test_cat_into_a_closed_pipe_is_silent(archive):
    names = "z.txt docs/b.txt " * 20
    pipeline = f'"{sys.executable}" -m gompfs cat "{archive}" {names} | head -c 5; exit ${{PIPESTATUS[0]}}'
    result = subprocess.run(
        ["bash", "-c", pipeline],
        capture_output=True,
        cwd=archive.parent,
        timeout=60,
        check=False,
    )
    assert (result.stdout, result.stderr, result.returncode) == (b"the l", b"", 141)


def test_extract_gives_the_tree_back(gompfs, archive, tree, tmp_path):
    assert gompfs("extract", archive, "-C", "out").status == 0
    difference = subprocess.run(
        ["diff", "-r", "--no-dereference", tree, tmp_path / "out"], capture_output=True, check=False
    )
    assert difference.stdout == b""
    assert (tmp_path / "out" / "z.txt").samefile(tmp_path / "out" / "z-again.txt")
    assert (tmp_path / "out" / "z.txt").stat().st_mtime_ns == (tree / "z.txt").stat().st_mtime_ns
    assert (tmp_path / "out" / "docs").stat().st_mtime_ns == (tree / "docs").stat().st_mtime_ns


def test_extract_extracts_only_named_paths(gompfs, archive, tmp_path):
    result = gompfs("extract", archive, "/docs/a.txt", "nowhere", "-C", "out")
    assert result.status == 1
    assert result.error_line == f"{archive}: nowhere: no such file or directory"
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == [tmp_path / "out/docs/a.txt"]


def test_the_numbers_of_info_add_up(gompfs, archive):
    facts = json.loads(gompfs("info", "--json", archive).output)
    assert facts["archive"] == str(archive)
    assert facts["archive_size"] == archive.stat().st_size
    assert (facts["generation"], facts["block_size"]) == (1, 16384)
    assert facts["content_size"] == 33000 + 3 * 16384 + 70000
    assert facts["num_inodes"] == 8  # the two names of z.txt are one inode
    mix = facts["codecs"].values()
    assert sum(codec["num_blocks"] for codec in mix) == facts["num_blocks"]
    assert sum(codec["compressed_size"] for codec in mix) == facts["segments"][0]["compressed_size"]
    assert facts["codecs"]["stored"]["num_blocks"] >= 2  # random bytes do not shrink
    assert facts["sections"] == []
    assert facts["ratio"] == pytest.approx(facts["content_size"] / facts["archive_size"], abs=1e-4)


def test_info_as_text_names_every_part(gompfs, archive):
    result = gompfs("info", archive)
    names = [line.split("  ")[0] for line in result.lines]
    assert result.status == 0
    assert names[:3] == ["archive", "uuid", "format"]
    assert {"codec stored", "codec gompresso-bit", "segment 0"} <= set(names)


STATS = [
    "binary-files", "info", "inverted_index", "ranked_inverted_index", "sequence_count", "sha256sums", "sort",
    "term_vector", "tfidf", "wordcount",
]  # fmt: skip


def test_stats_lists_its_names(gompfs, archive):
    assert gompfs("stats", archive).lines == STATS
    assert gompfs("stats", archive, "list").lines == STATS
    assert json.loads(gompfs("stats", "--json", archive).output) == STATS


def test_stats_info_is_the_virtual_file(gompfs, archive):
    facts = dict(line.split("\t") for line in gompfs("stats", archive, "info").lines)
    assert facts["archive"] == str(archive)
    assert int(facts["archive_size"]) == archive.stat().st_size
    as_json = json.loads(gompfs("stats", "--json", archive, "info").output)
    assert as_json["blocks"] == int(facts["blocks"])


@pytest.mark.parametrize("name", [name for name in STATS if name not in ("binary-files", "info")])
def test_stats_without_a_grammar(gompfs, archive, words_archive, name):
    """Statistics computed from the files are the same as those from a grammar."""
    assert gompfs("stats", archive, name).output == gompfs("stats", words_archive, name).output != b""


def test_stats_info_says_where_statistics_come_from(gompfs, archive, words_archive):
    facts = [
        dict(line.split("\t", 1) for line in gompfs("stats", path, "info").lines) for path in (archive, words_archive)
    ]
    assert [its["stats"] for its in facts] == ["computed from the content, no grammar", "computed from the grammar"]


def test_stats_count_words(gompfs, words_archive):
    expected = [b"the\t5000", b"last\t5000", b"file\t5000", b"alpha\t3000", b"beta\t3000"]
    by_word = gompfs("stats", words_archive, "sort").output.splitlines()
    assert [line for line in by_word if line in expected] == sorted(expected)
    by_count = gompfs("stats", words_archive, "wordcount").output.splitlines()
    assert by_count[:5] == [b"file\t5000", b"last\t5000", b"the\t5000", b"alpha\t3000", b"beta\t3000"]
    counts = json.loads(gompfs("stats", "--json", words_archive, "wordcount").output)
    assert counts[0] == {"word": "file", "count": 5000}
    assert len(counts) == len(by_count)


def test_stats_knows_its_names(gompfs, archive):
    result = gompfs("stats", archive, "letters")
    assert result.status == 2
    searches = ["phrase/W1 W2 W3", "search/W1 W2 W3", "word/WORD"]
    others = ", ".join([*STATS, *searches, "files/PATH/NAME", "overlap", "list"])
    assert result.error_line == f"unknown statistic 'letters'; use one of {others}, or in a mount metrics"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("word", "word needs something to search for: word/WORD"),
        ("phrase", "phrase needs something to search for: phrase/W1 W2 W3"),
        ("word/", "word/ needs something to search for: word/WORD"),
        ("metrics", "metrics exist only in a mount, as stats/metrics"),
    ],
)
def test_invalid_names_of_statistics(gompfs, archive, name, message):
    """`stats word` and `stats phrase` ended in an internal error."""
    result = gompfs("stats", archive, name)
    assert (result.status, result.error_line, result.output) == (2, message, b"")


@pytest.mark.parametrize("options", [(), ("--json",)], ids=" ".join)
@pytest.mark.parametrize("name", ["word/nowhere", "phrase/the nowhere"])
def test_words_that_no_file_has(gompfs, archive, name, options):
    """For words in no file, stats printed nothing and ended with status 0; a mount gives ENOENT."""
    result = gompfs("stats", archive, name, *options)
    assert (result.status, result.output) == (1, b"")
    assert result.error_line == f"{archive}: {name}: no file contains this"


def test_statistics_of_a_directory(gompfs, archive):
    for name in ("files/wordcount", "files//sort"):
        result = gompfs("stats", archive, name)
        assert (result.status, result.output) == (1, b"")
        assert result.error_line.endswith("not a regular file")


def test_bench_decodes_everything(gompfs, archive):
    result = gompfs("bench", "--seconds", "0", archive)
    assert result.status == 0
    assert result.lines[0].split("\t") == ["engine", "threads", "content", "compressed", "seconds", "MB/s"]
    measurements = json.loads(gompfs("bench", "--seconds", "0", "--json", archive).output)
    facts = json.loads(gompfs("info", "--json", archive).output)
    assert measurements[0]["num_threads"] == 1
    for measurement in measurements:
        assert measurement["uncompressed_size"] == facts["stream_size"]
        assert measurement["compressed_size"] == facts["segments"][0]["compressed_size"]


def test_bench_stays_within_its_memory_limit(gompfs, archive):
    measurements = json.loads(gompfs("bench", "--seconds", "0", "--json", "--max-size", "32K", archive).output)
    assert {measurement["uncompressed_size"] for measurement in measurements} == {32768}


def test_bench_decodes_text_in_parts(gompfs, tree, tmp_path):
    archive = tmp_path / "text"
    pack(archive, tree, codec=Codec.GOMPRESSO_TADOC)
    measurements = json.loads(gompfs("bench", "--seconds", "0", "--json", archive).output)
    with Archive(archive) as opened:
        parts, sizes = opened.segments[0].parts, opened.segments[0].blocks.uncompressed_sizes
        head = next(offset for offset, size in zip(parts.head_offsets, parts.head_sizes, strict=True) if size)
        tables, _ = opened.stored.heads.open(range(len(sizes)))
        block = [table is not None for table in tables].index(True)
    assert {measurement["uncompressed_size"] for measurement in measurements} == {sum(sizes)}
    content = bytearray(archive.read_bytes())
    content[head + BLOCK_HEADER_SIZE] ^= 1
    archive.write_bytes(content)
    result = gompfs("bench", "--seconds", "0", archive)
    assert result.status == 1
    assert result.error_line == f"{archive}: block {block}: {BlockStatus.BAD_CHECKSUM.reason}"


def test_info_writes_the_index_as_a_database(gompfs, archive, tmp_path):
    assert gompfs("info", archive, "--index", "index.sqlite").output == b""
    with sqlite3.connect(tmp_path / "index.sqlite") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        ((count,),) = connection.execute("SELECT COUNT(*) FROM dirent").fetchall()
        connection.execute("DELETE FROM inode")
    assert count == len(gompfs("ls", "-R", archive).lines)
    refused = gompfs("info", archive, "--index", "index.sqlite")
    assert (refused.status, refused.error_line) == (1, "index.sqlite: the file exists; use --force to replace it")
    assert gompfs("info", archive, "--index", "index.sqlite", "-f").status == 0
    with sqlite3.connect(tmp_path / "index.sqlite") as connection:
        assert connection.execute("SELECT COUNT(*) FROM inode").fetchall() != [(0,)]
    assert gompfs("info", archive, "-f").status == 2
    assert gompfs("info", archive, "--index", "other", "--json").status == 2
    assert gompfs("info", archive, "--index", "no/folder").status == 1
