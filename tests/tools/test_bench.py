"""The tables of tools/bench on tiny data: the benchmarks run, and their results are plausible."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tree_helpers import PACKAGE_PARENT, pack

from gompfs.codec import Codec

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "examples" / "corpus"
NOT_INSTALLED = "not installed"


def run(tmp_path: Path, *arguments: str | Path) -> list[dict[str, Any]]:
    """Returns the tables that a command writes as JSON. Its printed output must name each table and the machine."""
    result = tmp_path / "result.json"
    command = [sys.executable, "-m", "tools.bench", *arguments, "--json", result]
    environment = {**os.environ, "PYTHONPATH": PACKAGE_PARENT, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text(), "a mount is left"
    assert not list(tmp_path.glob("gompfs-bench-*")), "scratch files are left"
    written = json.loads(result.read_text())
    for fact in ("cpu", "kernel", "python", "commit", "date"):
        assert done.stdout.count(f"{fact}: {written['origin'][fact]}") == len(written["tables"])
    assert written["origin"]["gompfs"].endswith(f"{PACKAGE_PARENT}/gompfs")
    for table in written["tables"]:
        assert table["title"] in done.stdout
        for name in table["rows"]:
            assert name in done.stdout
    return list(written["tables"])


def test_ratio(tmp_path: Path) -> None:
    zeros = tmp_path / "zeros"
    zeros.write_bytes(bytes(200_000))
    (table,) = run(tmp_path, "ratio", zeros, CORPUS)
    for codec in ("gompresso-bit", "gompresso-byte", "zlib-6"):
        assert table["rows"]["zeros"][codec] > 10
        assert 1.5 < table["rows"]["corpus"][codec] < 4
    corpus = table["rows"]["corpus"]
    assert corpus["gompresso-bit / zlib-6"] == corpus["gompresso-bit"] / corpus["zlib-6"]


def test_compress(tmp_path: Path) -> None:
    text = CORPUS / "carroll" / "alice29.txt"
    only = [word for name in ("gompresso-bit-1", "gompresso-byte-6", "tadoc", "zlib-6") for word in ("--only", name)]
    (table,) = run(tmp_path, "compress", text, "--rounds", "1", "--device", "cpu", *only)
    rows = table["rows"]
    assert list(rows) == ["gompresso-bit-1", "gompresso-byte-6", "gompresso-tadoc", "zlib-6"]
    assert 1 < rows["gompresso-byte-6"]["ratio"] < rows["zlib-6"]["ratio"] < rows["zlib-6"]["whole: ratio"] < 4
    for name in ("gompresso-bit-1", "gompresso-byte-6", "gompresso-tadoc", "zlib-6"):
        assert all(speed > 0 for column, speed in rows[name].items() if column.startswith("MB/s"))
    assert rows["gompresso-bit-1"]["whole: ratio"] is None


def test_stats(tmp_path: Path) -> None:
    """All ways to compute a statistic agree, including coreutils, on files with many kinds of ends."""
    (tmp_path / "tree/dir").mkdir(parents=True)
    text = b" ".join(b"%d" % (number * number % 97) for number in range(4000))
    contents = {"cut": b"to be or", "empty": b"", "one": b"to", "dir/text": text}
    contents["dir/lines"] = text.replace(b" ", b"\n")
    contents["code"] = b"\tif (to->lock_t[0x7f] == 'caf\xc3\xa9') { lock_t = \x1f\xff; }\n\n--"
    for name, content in (contents | {"binary": b"\0a b"}).items():
        (tmp_path / "tree" / name).write_bytes(content)
    compared, phases, mounted = run(tmp_path, "stats", tmp_path / "tree", "--rounds", "1")
    tasks = set(compared["rows"])
    assert tasks == {"inverted_index", "ranked_inverted_index", "sequence_count", "sort", "term_vector", "wordcount"}
    assert tasks == set(phases["rows"]) == set(mounted["rows"])
    for row in compared["rows"].values():
        assert min(row["CPU"], row["CPU, no grammar"], row["coreutils"]) > 0
        assert row["coreutils / CPU"] == row["coreutils"] / row["CPU"]
    for row in mounted["rows"].values():
        assert 0 < row["first byte"] <= row["last byte"]
        assert row["peak memory MB"] > 10
    assert compared["rows"]["inverted_index"]["CPU bottom-up"] > 0
    only, *_ = run(tmp_path, "stats", tmp_path / "tree", "--rounds", "1", "--only", "sort", "--no-scripts")
    assert list(only["rows"]) == ["sort"]
    assert "coreutils" not in only["rows"]["sort"]


@pytest.mark.parametrize("words", ["whitespace", "letters"])
def test_stats_of_an_archive_with_other_words(tmp_path: Path, words: str) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/code").write_bytes(b"if (to->lock_t[0x7f] == 'caf\xc3\xa9') { don't }\n" * 50)
    archive = tmp_path / "tree.gomp"
    pack(archive, tmp_path / "tree", words=words, codec=Codec.GOMPRESSO_TADOC)
    options = ("--archive", archive, "--rounds", "1", "--only", "wordcount", "--only", "sequence_count")
    compared, phases, _ = run(tmp_path, "stats", tmp_path / "tree", *options)
    for rows in (compared["rows"], phases["rows"]):
        assert set(rows) == {"wordcount", "sequence_count"}
    assert all(("coreutils" in row) == (words == "whitespace") for row in compared["rows"].values())


def test_decode(tmp_path: Path) -> None:
    (table,) = run(tmp_path, "decode", "--rounds", "2", CORPUS)
    rows = table["rows"]
    num_threads = len(os.sched_getaffinity(0))
    for codec in ("gompresso-bit", "gompresso-byte", "gompresso-tadoc", "zlib-6"):
        assert 1.5 < rows[codec]["ratio"] < 4
        assert rows[codec]["1 thread"] > 0
        assert rows[codec]["scaling"] == rows[codec][f"{num_threads} threads"] / rows[codec]["1 thread"]
    for codec in ("lz4", "zstd-3", "libdeflate-6"):
        assert rows[codec]["ratio"] == NOT_INSTALLED or rows[codec]["1 thread"] > 0


def test_pack(tmp_path: Path) -> None:
    (table,) = run(tmp_path, "pack", CORPUS)
    rows = table["rows"]
    assert rows["gompfs"]["ratio"] > rows["gompfs --codec gompresso-bit"]["ratio"] > 1.5
    assert rows["tar | gzip -6"]["seconds"] > 0
    # gzip needs very little memory, however much the benchmark itself uses.
    assert rows["tar | gzip -6"]["peak memory MB"] < 20 < rows["gompfs --codec gompresso-bit"]["peak memory MB"]
    for peer in ("tar | zstd -3 -T0", "mksquashfs zstd"):
        assert rows[peer]["seconds"] == NOT_INSTALLED or rows[peer]["ratio"] > 1.5


def test_mount(tmp_path: Path) -> None:
    big = CORPUS / "carroll" / "alice29.txt"
    options = ("--keep-caches", "--pattern", "Alice", "--rounds", "1", "--big", big)
    tree, cat = run(tmp_path, "mount", CORPUS, *options)
    for name in ("gompfs", "not packed"):
        assert all(tree["rows"][name][job] > 0 for job in ("mount and ls", "find", "grep -r", "tar"))
        assert cat["rows"][name]["GB/s"] > 0
    for name in ("gompfs", "bare FUSE, from memory", "gompfs / bare FUSE, from memory"):
        assert cat["rows"][name]["four readers, archive cached"] > 0
    for peer in set(tree["rows"]) - {"gompfs", "not packed", "ratarmount tar.zst / gompfs"}:
        assert tree["rows"][peer]["archive MB"] == NOT_INSTALLED or tree["rows"][peer]["find"] > 0
    assert not [note for note in tree["notes"] if "DISAGREE" in note or "failed" in note]


def test_size(tmp_path: Path) -> None:
    chosen = ("gompresso-tadoc", "tar.gz -6", "tar.zst -3", "128 KiB", "erofs", "DwarFS -l7", "not packed")
    options = [option for name in chosen for option in ("--only", name)]
    (table,) = run(tmp_path, "size", CORPUS, "--keep-caches", "--reads", "2", *options)
    rows = table["rows"]
    assert len(rows) == len(chosen)
    assert all(any(text in name for text in chosen) for name in rows)
    expected = {"gompfs, gompresso-tadoc": "gompfs", "tar.gz -6": "tar", "not packed": "disk"}
    assert expected.items() <= {name: row["read by"] for name, row in rows.items()}.items()
    for name, row in rows.items():
        if row["MB"] == NOT_INSTALLED or row["read by"] == NOT_INSTALLED:
            continue
        assert min(row["first read ms"], row["random 4 KiB us"], row["sequential MB/s"]) > 0
        if name != "not packed":
            assert row["ratio"] > 1
            assert min(row["pack s"], row["pack peak MB"]) > 0
    assert not [note for note in table["notes"] if "failed" in note]
    assert "WARM" in table["title"]
    assert [(plot["kind"], plot["columns"]) for plot in table["plots"]] == [("points", ["MB", "random 4 KiB us"])]


def test_dask(tmp_path: Path) -> None:
    (table,) = run(tmp_path, "dask", CORPUS, "--archives", "3", "--workers", "1", "--only", "sort", "--rounds", "1")
    assert table["rows"]["Dask, 1 worker"]["sort"] > 0
    assert table["rows"]["Dask, 1 worker"]["speed-up"] == 1


def test_start(tmp_path: Path) -> None:
    commands, mounts = run(tmp_path, "start", CORPUS, "--rounds", "1")
    assert {"python -c pass", "gompfs --version", "gompfs ls", "gompfs cat"} <= set(commands["rows"])
    assert all(row["wall"] > 1 and row["CPU"] > 1 for row in commands["rows"].values())
    assert mounts["rows"]["gompfs"]["wall"] > 1
    for row in mounts["rows"].values():
        assert row["archive MB"] == NOT_INSTALLED or row["wall / gompfs"] > 0


def test_files(tmp_path: Path) -> None:
    (table,) = run(tmp_path, "files", "--count", "1500")
    assert all(value > 0 for value in table["rows"]["1,500 files"].values())


def test_grep(tmp_path: Path) -> None:
    times, made = run(tmp_path, "grep", CORPUS, "--rounds", "1", "--pattern", "the", "--pattern", r"\bwords?\b")
    assert not times["notes"] or all("not installed" in note for note in times["notes"])
    assert all(seconds > 0 for seconds in times["rows"]["gompfs grep"].values())
    assert made["rows"]["gompfs grep"]["MB"] > 0


def test_arrays(tmp_path: Path) -> None:
    (table,) = run(tmp_path, "arrays", CORPUS, "--files", "2", "--workers", "2", "--rounds", "1", "--only", "bit")
    assert table["title"].startswith("2 files of corpus")
    rows = table["rows"]
    loader = rows["files of the tree, DataLoader, 2 workers"]
    if find_spec("torch") is None:
        assert loader["GB/s"] == NOT_INSTALLED
        del rows["files of the tree, DataLoader, 2 workers"]
    expected = {"files of the tree"}
    for archive in ("gompresso-bit", "gompresso-bit with dictionary"):
        expected |= {f"{archive}, {way}" for way in ("one by one", "read_many", "read_many by number")}
    assert expected <= set(rows)
    assert all(row["GB/s"] > 0 and row["ms"] > 0 for row in rows.values())
    assert rows["gompresso-bit, read_many"]["ratio"] > 1.5


def test_epoch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (table,) = run(tmp_path, "epoch", CORPUS, "--workers", "2", "--batch", "2", "--rounds", "1", "--only", "byte")
    assert {"gompresso-byte", "gompfs, mounted", "the files themselves"} <= set(table["rows"])
    assert all(row["files/s"] > 0 for row in table["rows"].values() if row["files/s"] != NOT_INSTALLED)
