"""Files that an `add` composes of what the archive has of an older version, and of new bytes."""

from __future__ import annotations

import random
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from coreutils_oracle import run_gompfs
from forged_index import forge_index
from host_device import HostDevice
from native_builds import kernel_library
from tree_helpers import add, list_archive, list_directory, pack, write_files

from gompfs._native.sources import shared_runs
from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.pack import older_versions
from gompfs.pack.sources.local_file import MAX_WHOLE_SIZE
from gompfs.statistics.gpu.resident_text import ResidentText
from gompfs.statistics.query import EVERYTHING
from gompfs.statistics.resident_answers import ANSWERS
from gompfs.statistics.traversal import PhaseTimes
from gompfs.verify import verify_archive

TADOC = Codec.GOMPRESSO_TADOC
LEAST = older_versions._LEAST_RUN
TASKS = ("wordcount", "sort", "inverted_index", "term_vector", "sequence_count", "ranked_inverted_index", "tfidf")


def text(seed: str, num_lines: int = 120) -> bytes:
    """Returns lines of words, some of them with characters of several bytes."""
    rng = random.Random(seed)
    words = [f"word{number}" for number in range(300)] + ["naïve", "größe", "語", "x"]
    return "".join(" ".join(rng.choices(words, k=9)) + "\n" for _ in range(num_lines)).encode()


def in_middle(content: bytes, new: bytes, without: int = 0) -> bytes:
    half = len(content) // 2
    return content[:half] + new + content[half + without :]


EDITS: dict[str, Callable[[bytes], bytes]] = {
    "appended": lambda old: old + b"the end\n",
    "in front": lambda old: b"begin" + old,
    "in a word": lambda old: old.replace(b" word1", b" word1new", 3),
    "words joined": lambda old: in_middle(old, b"", 7),
    "in a character": lambda old: in_middle(old, "ß".encode(), 0).replace("語".encode(), b"\xe8\xaa", 1),
    "only removed": lambda old: old[:3000] + old[3600:],
    "lines moved": lambda old: old[2000:] + old[:2000],
    "a NUL": lambda old: b"\0" + old,
}


def composed(archive: Archive) -> set[bytes]:
    """Returns the paths of the files that have extents in several segments."""
    ends = [(each.first_block + len(each.blocks)) * archive.block_size for each in archive.segments]
    fields = archive.index.all_extents()
    segments: dict[int, set[int]] = {}
    for ino, offset in zip(fields[::4], fields[2::4], strict=True):
        segments.setdefault(ino, set()).add(sum(end <= offset for end in ends))
    return {archive.path_of(ino) for ino, numbers in segments.items() if len(numbers) > 1}


def check(archive: Path, tree: Path) -> set[bytes]:
    """The archive has exactly what is in the tree, and is sound. Returns the paths of composed files."""
    with Archive(archive, verify=True) as opened:
        assert list_archive(opened) == list_directory(tree)
        assert verify_archive(opened).is_sound
        return composed(opened)


@pytest.mark.parametrize(
    ("codec", "words"),
    [(TADOC, "identifiers"), (TADOC, "whitespace"), (TADOC, "letters"), (Codec.GOMPRESSO_BIT, "identifiers")],
)
def test_edited_files(tmp_path: Path, codec: Codec, words: str) -> None:
    """Statistics and searches give what they give for the same tree, packed at once."""
    tree, archive, fresh = tmp_path / "tree", tmp_path / "a.gomp", tmp_path / "fresh.gomp"
    options = {"codec": codec, "words": words}
    write_files(tree, {name: text(name) for name in EDITS} | {"other": text("other"), "binary": b"\0" + text("b")})
    pack(archive, tree, **options)
    for round_ in range(2):
        for name, edit in EDITS.items():
            (tree / name).write_bytes(edit((tree / name).read_bytes()))
        (tree / "binary").write_bytes(text("b") if round_ else in_middle((tree / "binary").read_bytes(), b"new"))
        report = add(archive, tree, **options)
        assert 0 < report.stream_size < 600
        assert check(archive, tree) == {name.encode() for name in [*EDITS, "binary"]}
    # The same content again, under another name and in a tar.
    shutil.copy(tree / "in a word", tree / "copy")
    (tree / "other").write_bytes(in_middle(text("other"), b"new"))
    with tarfile.open(tmp_path / "more.tar", "w") as file:
        for name in ("copy", "other"):
            file.add(tree / name, name)
    report = add(archive, tmp_path / "more.tar", **options)
    assert (report.num_archived, report.stream_size) == (1, 3)
    pack(fresh, tree, **options)
    phrase = b" ".join(text("lines moved").split()[40:42]).decode()
    for task in (*TASKS, "binary-files", "word/word7", f"phrase/{phrase}", "files/in a word/wordcount"):
        assert run_gompfs("stats", archive, task) == run_gompfs("stats", fresh, task), task
    for pattern in ("word1new", "end$", r"word\d+new\d* word", "ß", "beginbegin"):
        of_archive, of_fresh = (run_gompfs("grep", "-n", "-C1", "--column", pattern, each) for each in (archive, fresh))
        assert sorted(of_archive.splitlines()) == sorted(of_fresh.splitlines()), pattern


def test_statistics_on_a_device(tmp_path: Path) -> None:
    write_files(tmp_path / "tree", {name: text(name, 20) for name in ("a", "b")})
    archive = tmp_path / "a.gomp"
    pack(archive, tmp_path / "tree", codec=TADOC)
    (tmp_path / "tree/a").write_bytes(in_middle(text("a", 20), b"new word"))
    add(archive, tmp_path / "tree", codec=TADOC)
    with Archive(archive) as opened:
        assert composed(opened) == {b"a"}
        resident = ResidentText.load(opened, [HostDevice(kernel_library())], 64 << 20, PhaseTimes())
        for name in ("wordcount", "sequence_count"):
            answer = b"".join(ANSWERS[name](resident, EVERYTHING))
            assert answer == run_gompfs("stats", archive, name)
        resident.release()


@pytest.mark.parametrize(("size", "found"), [(2 * LEAST - 1, False), (2 * LEAST, True), (2 * LEAST + 1, True)])
def test_small_files(tmp_path: Path, size: int, found: bool) -> None:
    content = text("small")[:size]
    write_files(tmp_path / "tree", {"file": content})
    pack(tmp_path / "a.gomp", tmp_path / "tree", codec=TADOC)
    (tmp_path / "tree/file").write_bytes(content[:-1] + b"!")
    add(tmp_path / "a.gomp", tmp_path / "tree", codec=TADOC)
    assert check(tmp_path / "a.gomp", tmp_path / "tree") == ({b"file"} if found else set())


@pytest.mark.parametrize(("more", "found"), [(-1, True), (0, True), (1, False)])
def test_large_files(tmp_path: Path, more: int, found: bool) -> None:
    """Those of more than MAX_WHOLE_SIZE bytes are stored whole; so are versions of such files."""
    old = random.Random(2).randbytes(MAX_WHOLE_SIZE - 4)
    write_files(tmp_path / "tree", {"grows": old, "shrinks": old + bytes(4 + more)})
    pack(tmp_path / "a.gomp", tmp_path / "tree", codec=Codec.STORED)
    write_files(tmp_path / "tree", {"grows": old + b"four"[: 4 + more] + b"!" * max(more, 0), "shrinks": old[1:]})
    add(tmp_path / "a.gomp", tmp_path / "tree", codec=Codec.STORED)
    assert check(tmp_path / "a.gomp", tmp_path / "tree") == ({b"grows", b"shrinks"} if found else set())


@pytest.mark.parametrize(("num_new", "found"), [(3999, True), (4000, True), (4001, False)])
def test_half_of_a_file_must_be_shared(tmp_path: Path, num_new: int, found: bool) -> None:
    write_files(tmp_path / "tree", {"file": text("old")[:4000]})
    pack(tmp_path / "a.gomp", tmp_path / "tree", codec=TADOC)
    new = random.Random(1).randbytes(num_new).replace(b"\0", b"a")
    (tmp_path / "tree/file").write_bytes(new + text("old")[:4000])
    add(tmp_path / "a.gomp", tmp_path / "tree", codec=TADOC)
    assert check(tmp_path / "a.gomp", tmp_path / "tree") == ({b"file"} if found else set())


@pytest.mark.parametrize(("most", "found"), [(4, False), (5, True), (6, True)])
def test_the_number_of_extents(tmp_path: Path, most: int, found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two edits make five extents. A file with many of them is stored as a whole."""
    monkeypatch.setattr(older_versions, "_max_extents", lambda _size: most)
    old = text("old")[:5000]
    write_files(tmp_path / "tree", {"file": old})
    pack(tmp_path / "a.gomp", tmp_path / "tree", codec=TADOC)
    (tmp_path / "tree/file").write_bytes(old[:1000] + b"new" + old[1000:3000] + b"newer" + old[3000:])
    add(tmp_path / "a.gomp", tmp_path / "tree", codec=TADOC)
    assert check(tmp_path / "a.gomp", tmp_path / "tree") == ({b"file"} if found else set())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lib-1.2/file", "lib-1.3/file"),
        ("lib-1.2/file-1.2", "lib-1.3/file-1.3"),
        ("file-9", "file-10"),
        ("a1/b2/file", "a2/b10/file"),
    ],
)
def test_paths_that_differ_in_numbers(tmp_path: Path, old: str, new: str) -> None:
    write_files(tmp_path / "old", {old: text("old"), "other/file": text("other")})
    write_files(tmp_path / "new", {new: in_middle(text("old"), b"new")})
    pack(tmp_path / "a.gomp", tmp_path / "old", codec=TADOC)
    assert add(tmp_path / "a.gomp", tmp_path / "new", codec=TADOC).stream_size == 3
    with Archive(tmp_path / "a.gomp", verify=True) as opened:
        assert verify_archive(opened).is_sound
        assert composed(opened) == {new.encode()}


def test_the_nearest_version(tmp_path: Path) -> None:
    """It is the last one that is not newer."""
    for version in (1, 2, 3, 10):
        write_files(tmp_path / "tree", {f"v{version}/file": text("first") + text(f"v{version}")})
    pack(tmp_path / "a.gomp", tmp_path / "tree", codec=TADOC)
    write_files(tmp_path / "new", {"v4/file": text("first") + text("v3") + b"new"})
    assert add(tmp_path / "a.gomp", tmp_path / "new", codec=TADOC).stream_size == 3


@pytest.mark.parametrize(
    "statement", ["UPDATE extent SET stream_offset = stream_offset + 1000", "DELETE FROM extent WHERE file_offset = 0"]
)
def test_a_damaged_version_is_not_used(tmp_path: Path, statement: str) -> None:
    old = text("old")
    write_files(tmp_path / "tree", {"file": old})
    pack(tmp_path / "a.gomp", tmp_path / "tree", codec=TADOC)
    forge_index(tmp_path / "a.gomp", statement)
    (tmp_path / "tree/file").write_bytes(in_middle(old, b"new"))
    assert add(tmp_path / "a.gomp", tmp_path / "tree", codec=TADOC).stream_size == len(old) + 3
    assert check(tmp_path / "a.gomp", tmp_path / "tree") == set()


def test_shared_runs() -> None:
    """They are in the order of the content, do not overlap, and have at least the wanted size."""
    rng = random.Random(5)
    for _ in range(200):
        base = rng.randbytes(rng.choice([0, 10, 31, 32, 33, 500, 3000])) * rng.choice([1, 1, 3])
        pieces = []
        for _ in range(rng.randrange(6)):
            begin = rng.randrange(len(base) + 1)
            pieces += [base[begin : begin + rng.randrange(400)], rng.randbytes(rng.choice([0, 1, 50]))]
        content, least = b"".join(pieces), rng.choice([32, 33, 64])
        end = 0
        for begin, base_begin, size in shared_runs(content, base, least):
            assert begin >= end
            assert size >= least
            assert content[begin : begin + size] == base[base_begin : base_begin + size]
            assert len(base) >= base_begin + size
            end = begin + size
    for size, count in ((31, 0), (32, 1), (33, 1)):
        assert len(shared_runs(bytes(range(size)), bytes(range(size)), 32)) == count
    assert shared_runs(bytes(100_000), bytes(70_000), 32) == [(0, 0, 70_000), (70_000, 0, 30_000)]
