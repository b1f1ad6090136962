"""The commands pack and add: options, summaries, and errors."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import pytest


def test_pack_prints_a_summary(gompfs, tree):
    result = gompfs("pack", "--codec", "gompresso-bit", tree, "new.gomp")
    assert result.status == 0
    assert result.errors == ""  # no progress bar if stderr is not a terminal
    assert result.lines[0].startswith("new.gomp: 9 entries, ")
    assert gompfs("pack", "tree/docs/a.txt", "one.gomp").lines[0].startswith("one.gomp: 1 entry, ")


def test_pack_json(gompfs, tree, tmp_path):
    report = json.loads(gompfs("pack", "--codec", "gompresso-bit", "--json", tree, "new.gomp").output)
    assert report["num_entries"] == 9
    assert report["archive_size"] == (tmp_path / "new.gomp").stat().st_size
    assert report["warnings"] == []


def test_pack_replaces_only_if_forced(gompfs, tree, archive):
    before = archive.read_bytes()
    result = gompfs("pack", "--codec", "gompresso-bit", tree, archive)
    assert result.status == 1
    assert result.error_line == f"{archive}: the file exists; use --force to replace it"
    assert archive.read_bytes() == before
    assert gompfs("pack", "--codec", "gompresso-bit", "-q", "-f", tree / "docs", archive).status == 0
    assert gompfs("ls", archive).lines == ["a.txt", "b.txt"]


def test_pack_is_reproducible(gompfs, tree, tmp_path):
    options = (
        "pack",
        "--codec",
        "gompresso-bit",
        "-q",
        "--sort",
        "name",
        "--mtime",
        "@0",
        "--owner",
        "0",
        "--group",
        "0",
    )
    gompfs(*options, tree, "one.gomp")
    (tree / "z.txt").touch()
    gompfs(*options, "-j", "1", tree, "two.gomp")
    assert (tmp_path / "one.gomp").read_bytes() == (tmp_path / "two.gomp").read_bytes()


def test_pack_options_reach_the_archive(gompfs, tree):
    gompfs(
        "pack",
        "-q",
        "--codec",
        "gompresso-bit",
        "--codec",
        "gompresso-byte",
        "-b",
        "256K",
        "--exclude",
        "b.txt",
        tree,
        "o.gomp",
    )
    facts = json.loads(gompfs("info", "--json", "o.gomp").output)
    assert facts["block_size"] == 256 << 10
    assert list(facts["codecs"]) == ["gompresso-byte"]
    assert gompfs("ls", "o.gomp", "docs").lines == ["docs/a.txt"]


def test_pack_of_several_sources_keeps_their_names(gompfs, tree):
    assert gompfs("pack", "--codec", "gompresso-bit", "-q", tree / "docs", tree / "z.txt", "several.gomp").status == 0
    assert gompfs("ls", "several.gomp").lines == ["docs/", "z.txt"]


def test_pack_reads_a_tar_from_stdin(gompfs, tree, tmp_path):
    with tarfile.open(tmp_path / "tree.tar.gz", "w:gz") as tar:
        tar.add(tree, "inside")
    stdin = (tmp_path / "tree.tar.gz").read_bytes()
    assert gompfs("pack", "--codec", "gompresso-bit", "-q", "-", "tar.gomp", stdin=stdin).status == 0
    assert gompfs("cat", "tar.gomp", "inside/docs/a.txt").output == (tree / "docs/a.txt").read_bytes()


def test_add_puts_new_entries_over_old_ones(gompfs, archive, tmp_path):
    more = tmp_path / "more"
    (more / "docs").mkdir(parents=True)
    (more / "docs" / "a.txt").write_bytes(b"replaced\n")
    (more / "new.txt").write_bytes(b"new\n")
    assert gompfs("add", "--codec", "gompresso-bit", "-q", more, archive).status == 0
    assert gompfs("cat", archive, "docs/a.txt", "new.txt").output == b"replaced\nnew\n"
    assert "docs/b.txt" in gompfs("ls", "-R", archive).lines
    facts = json.loads(gompfs("info", "--json", archive).output)
    assert (facts["generation"], len(facts["segments"])) == (2, 2)
    assert gompfs("verify", "-q", archive).status == 0


def test_add_says_what_it_added(gompfs, archive, tmp_path):
    """It said that 17 bytes had become an archive of megabytes."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more/new.txt").write_bytes(b"new\n" * 10_000)
    size_before = archive.stat().st_size
    report = json.loads(gompfs("add", "--json", tmp_path / "more", archive).output)
    added = archive.stat().st_size - size_before
    assert (report["added_size"], report["archive_size"]) == (added, archive.stat().st_size)
    assert report["ratio"] == pytest.approx(40_000 / added, abs=1e-4)
    lines = gompfs("add", tmp_path / "more", archive).lines
    assert "40.0 kB -> " in lines[0]
    assert any(line.startswith("  the archive now has ") for line in lines)


def test_add_says_what_the_archive_had(gompfs, archive, tree):
    num_files = len({path.stat().st_ino for path in tree.rglob("*") if path.is_file()})
    assert f"  {num_files} unchanged files, not read" in gompfs("add", tree, archive).lines
    (tree / "z.txt").rename(tree / "moved.txt")
    report = json.loads(gompfs("add", "--json", tree, archive).output)
    assert (report["num_unchanged"], report["num_archived"], report["stream_size"]) == (num_files - 1, 1, 0)
    os.utime(tree / "moved.txt", ns=(1, 1))
    assert "  1 file with content that the archive had, not stored again" in gompfs("add", tree, archive).lines
    assert gompfs("cat", archive, "moved.txt").output == (tree / "moved.txt").read_bytes()


def test_checksum_reads_files_of_the_same_size_and_time(gompfs, archive, tree):
    path = tree / "docs/a.txt"
    status, old = path.stat(), path.read_bytes()
    path.write_bytes(b"#" * len(old))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert gompfs("add", "-q", tree, archive).status == 0
    assert gompfs("cat", archive, "docs/a.txt").output == old
    assert gompfs("add", "-q", "--checksum", tree, archive).status == 0
    assert gompfs("cat", archive, "docs/a.txt").output == b"#" * len(old)
    assert gompfs("verify", "-q", archive).status == 0
    refused = gompfs("pack", "--checksum", tree, "other.gomp")
    assert (refused.status, "--checksum" in refused.errors) == (2, True)


def test_names_that_are_not_utf_8(gompfs, tmp_path):
    root = tmp_path / "odd"
    root.mkdir()
    names = [b"\xff\xfe latin", b"new\nline", b"tab\t", "grün".encode()]
    for name in names:
        (Path(root) / Path(name.decode("utf-8", "surrogateescape"))).write_bytes(name)
    assert gompfs("pack", "--codec", "gompresso-bit", "-q", root, "odd.gomp").status == 0
    assert gompfs("ls", "-0", "odd.gomp").output.split(b"\0")[:-1] == sorted(names)
    for name in names:
        assert gompfs("cat", "odd.gomp", name).output == name
    paths = [entry["path"] for entry in json.loads(gompfs("ls", "--json", "odd.gomp").output)]
    assert sorted(path.encode("utf-8", "surrogateescape") for path in paths) == sorted(names)
    missing = gompfs("cat", "odd.gomp", b"no\xff\nsuch")
    assert missing.status == 1
    assert missing.error_line.endswith(r"no\xff\nsuch: no such file or directory")
