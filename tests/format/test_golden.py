"""Golden archives: every engine reads what their manifests say (tests/data/README.md)."""

from __future__ import annotations

import hashlib
import re
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from manifests import GOLDEN, GOLDEN_ARCHIVES, entry_lines, frame_lines, num_links, read_manifest
from oracle.archive import count_lines, read_archive
from oracle.grammar import split_words
from tree_helpers import Seen, list_archive

from gompfs.archive import Archive
from gompfs.engine import Engine, select_engine
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source
from gompfs.statistics.tasks import compute
from gompfs.verify import verify_archive

ENGINES = ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return select_engine(request.param)


@pytest.fixture(params=GOLDEN_ARCHIVES)
def archive(request: pytest.FixtureRequest, engine: Engine) -> Iterator[Archive]:
    with Archive(GOLDEN / f"{request.param}.gomp", engine=engine) as opened:
        yield opened


def compare(archive: Archive, manifest: Path) -> None:
    """Compares all of an archive with a manifest."""
    content = Path(archive.path).read_bytes()
    seen = list_archive(archive)
    assert [
        f"archive size={len(content)} sha256={hashlib.sha256(content).hexdigest()}",
        *frame_lines(archive),
        *entry_lines(seen),
    ] == read_manifest(manifest)
    assert {path: inode.nlink for path, inode in archive.walk()} == num_links(seen)
    assert archive.warnings == []


def test_every_engine_reads_what_the_manifest_says(archive: Archive) -> None:
    compare(archive, Path(archive.path).with_suffix(".manifest"))
    assert verify_archive(archive).is_sound


def test_word_counts(archive: Archive) -> None:
    expected = Path(archive.path).with_suffix(".wordcount")
    if expected.exists():
        assert compute(b"wordcount", archive).read() == expected.read_bytes()
    else:
        assert Path(archive.path).stem == "nothing"
        assert compute(b"wordcount", archive).read() == count_words(archive)


@pytest.mark.parametrize("name", GOLDEN_ARCHIVES)
def test_the_slow_reader_reads_what_the_manifest_says(name: str) -> None:
    reading = read_archive((GOLDEN / f"{name}.gomp").read_bytes())
    paths: dict[int, bytes] = {}
    seen = {}
    for path, entry in sorted(reading.paths.items()):
        seen[path] = Seen(
            entry.mode, entry.uid, entry.gid, entry.mtime_ns, entry.rdev, entry.target,
            reading.content(entry.ino, verify=True) if stat.S_ISREG(entry.mode) else None,
            (), paths.setdefault(entry.ino, path),
        )  # fmt: skip
    manifest = [re.sub(r" xattr=.*", "", line) for line in read_manifest(GOLDEN / f"{name}.manifest")]
    assert [*entry_lines(seen)] == [line for line in manifest if line.startswith(".")]
    counts = GOLDEN / f"{name}.wordcount"
    assert count_lines(reading.counts(1)) == (counts.read_bytes() if counts.exists() else b"")


def count_words(archive: Archive) -> bytes:
    counts: Counter[bytes] = Counter()
    for _, inode in archive.walk():
        if stat.S_ISREG(inode.mode):
            content = archive.read(inode.ino, 0, inode.size)
            counts.update(split_words(content) if b"\0" not in content[:8192] else [])
    lines = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return b"".join(b"%s\t%d\n" % line for line in lines)


def test_earlier_generations(engine: Engine, tmp_path: Path) -> None:
    """Cut off after an earlier generation, an archive shows that generation.

    Cut in the middle of the next one, it also shows it, with a warning.
    """
    whole = (GOLDEN / "generations.gomp").read_bytes()
    manifests = [GOLDEN / f"generations-{number}.manifest" for number in (1, 2, 3)]
    sizes = [int(re.search(r"^archive size=(\d+)", text.read_text(), re.MULTILINE)[1]) for text in manifests]
    cut = tmp_path / "cut.gomp"
    for number, (manifest, end, next_end) in enumerate(zip(manifests, sizes, [*sizes[1:], len(whole)], strict=True), 1):
        cut.write_bytes(whole[:end])
        with Archive(cut, engine=engine) as archive:
            compare(archive, manifest)
            expected = entry_lines(list_archive(archive))
        middle = (end + next_end) // 2
        cut.write_bytes(whole[:middle])
        with Archive(cut, engine=engine) as archive:
            assert entry_lines(list_archive(archive)) == expected
            (warning,) = archive.warnings
            assert f"this is generation {number}; the {middle - end} bytes after it are ignored" in warning


@pytest.mark.parametrize("name", GOLDEN_ARCHIVES)
def test_adding_to_a_golden_archive(name: str, tmp_path: Path) -> None:
    """Everything in the archive is kept, including sections and facts unknown to this release."""
    target = tmp_path / "added.gomp"
    target.write_bytes((GOLDEN / f"{name}.gomp").read_bytes())
    (tmp_path / "more").mkdir()
    (tmp_path / "more/zz-added").write_bytes(b"added words, added")
    cpu = select_engine("cpu")
    with Archive(target, engine=cpu) as archive:
        before, meta, sections = list_archive(archive), archive.meta, archive.sections
    add_to_archive(target, [open_source(tmp_path / "more")], PackOptions(), engine=cpu)
    with Archive(target, engine=cpu) as archive:
        after = list_archive(archive)
        assert after.pop(b"zz-added").content == b"added words, added"
        assert {**after, b"": before[b""]} == before
        assert archive.meta.items() >= {**meta, "next_ino": archive.meta["next_ino"]}.items()
        places = {(section.segment, section.kind): len(section.blocks) for section in archive.sections}
        assert places.items() >= {(section.segment, section.kind): len(section.blocks) for section in sections}.items()
        assert verify_archive(archive).is_sound
        if (GOLDEN / f"{name}.wordcount").exists():
            assert b"added\t2" in compute(b"wordcount", archive).read().splitlines()


def test_features_that_golden_archives_cover() -> None:
    """Fails for features of the format that no golden archive has yet."""
    lines = "\n".join(line for path in GOLDEN.glob("*.manifest") for line in read_manifest(path))
    for word in ("1048576", "65536", "16384"):
        assert f"block_size={word} " in lines
    for codec in ("stored", "gompresso-byte", "gompresso-bit", "gompresso-tadoc", "gompresso-bit-dictionary"):
        assert re.search(rf"^block \d+ {codec}", lines, re.MULTILINE)
    for codec in ("gompresso-byte", "gompresso-bit"):
        for groups in (4, 8, 16, 32):
            for elimination in ("yes", "no"):
                assert re.search(f"{codec} .* groups={groups} elimination={elimination}", lines)
    for kind in ("data", "text", "grammar", "dictionary"):
        assert re.search(rf"^part \d+ {kind} ", lines, re.MULTILINE)
    assert set(re.findall(r"type=(\w+)", lines)) == {"file", "dir", "link", "fifo", "socket", "char", "block"}
    assert set(re.findall(r"meta words=(\w+)", lines)) == {"whitespace", "letters", "identifiers"}
    for kind in ("words", "dictionary"):
        assert f"section {kind}" in lines
    for piece in ("hardlink=", "xattr=", "mtime_ns=-", "size=0 ", "size=1 ", "data=none", "changes=3", "binary "):
        assert piece in lines
