"""Packs a tree and compares everything that can be read from the archive with the files, by plain Python and programs.

A finding is a line that begins with its kind. Every step takes the archive from the disk.
"""

from __future__ import annotations

import os
import random
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import statistics_oracle as oracle
from nasty_trees import Tree
from tree_helpers import list_archive, list_directory, without_inodes

import gompfs
from gompfs.archive import Archive
from gompfs.archive.extract import Extractor
from gompfs.engine import select_engine
from gompfs.light_types import replaced
from gompfs.options import PackOptions
from gompfs.pack import PackReport, add_to_archive, open_source, pack_archive
from gompfs.repack import repack_archive
from gompfs.statistics.query import StatsQuery
from gompfs.statistics.tasks import compute
from gompfs.verify import verify_archive

Tell = Callable[[str, str], None]
_BINARY_PROBE_SIZE = 8_192
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_TOP = 5
_LONGEST_PATTERN = 16_000  # PCRE2 compiles literals of 32 KiB


class Check:
    """The steps for one tree. `tell` gets ("command", name) as a command begins, and ("finding", text)."""

    def __init__(self, tree: Tree, scratch: Path, tell: Tell, *, processes: bool = False, mount: bool = False) -> None:
        """With `processes`, the commands run too, and `rg`; with `mount`, a real mount is compared."""
        self._tree = tree
        self._scratch = scratch
        self._root = scratch / "tree"
        self._archive = scratch / "a.gomp"
        self._tell = tell
        self._processes = processes
        self._mount = mount
        self._words = tree.options["words"]
        self.last_words: str = self._words

    def run(self) -> None:
        """Performs all steps; what fails is told, not raised."""
        self._root.mkdir()
        self._tree.write(self._root, self._tree.files)
        with self._step("pack"):
            self._pack()
        if not self._archive.exists():
            return
        self._check(self._tree.files, is_final=not self._tree.added and self._tree.repacked is None)
        if self._tree.added:
            with self._step("add"):
                self._add()
            self._check(self._tree.final, is_final=self._tree.repacked is None)
        if self._tree.repacked is not None:
            with self._step("repack"):
                self._repack()
            self._check(self._tree.final, is_final=True)

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        self._tell("command", name)
        try:
            yield
        except Exception as error:
            self._tell("finding", f"{name}: {type(error).__name__}: {str(error)[:500]}")

    def _expect(self, name: str, found: object, expected: object) -> None:
        if found != expected:
            self._tell("finding", f"{name}: {_difference(found, expected)}")

    def _options(self) -> PackOptions:
        return PackOptions(**self._tree.options)

    def _pack(self) -> None:
        report = pack_archive([open_source(self._root)], self._archive, self._options(), engine=select_engine("cpu"))
        self._check_report(report)

    def _add(self) -> None:
        source = self._scratch / "added"
        self._tree.write(source, self._tree.added)
        options = self._options()
        if options.dictionary_size is not None:
            options = replaced(options, dictionary_size=None)
        self._check_report(add_to_archive(self._archive, [open_source(source)], options, engine=select_engine("cpu")))
        self._tree.write(self._root, self._tree.added)

    def _repack(self) -> None:
        target = self._scratch / "b.gomp"
        with Archive(self._archive) as archive:
            report = repack_archive(archive, target, jobs=self._tree.options["jobs"], **(self._tree.repacked or {}))
        self._check_report(report)
        target.rename(self._archive)

    def _check_report(self, report: PackReport) -> None:
        # A codec that did not give back what it got is a defect, though the archive is whole in spite of it.
        self._expect("warnings", report.warnings, [])

    def _check(self, files: dict[bytes, bytes], *, is_final: bool) -> None:
        """Reads everything; of statistics, only `wordcount` before the last step."""
        with self._step("verify"), Archive(self._archive) as archive:
            verification = verify_archive(archive)
            if not verification.is_sound:
                self._tell("finding", f"verify: {verification}"[:500])
        with self._step("read"):
            self._read_all(files)
        with self._step("read ranges"):
            self._read_ranges(files)
        with self._step("statistics"):
            self._count(files, 3 if is_final else 1)
        with self._step("grep"):
            self._search(files)
        if self._processes:
            with self._step("extract"):
                self._extract()
            with self._step("process: commands"):
                self._run_commands(files)
        if self._mount:
            with self._step("process: mount"):
                self._compare_mount()

    def _read_all(self, files: dict[bytes, bytes]) -> None:
        with Archive(self._archive, verify=True) as archive:
            read = {
                path: archive.read(inode.ino, 0, inode.size)
                for path, inode in archive.walk()
                if stat.S_ISREG(inode.mode)
            }
            targets = {path: inode.symlink_target for path, inode in archive.walk() if stat.S_ISLNK(inode.mode)}
        self._expect("paths", sorted(read), sorted(files))
        for path in read.keys() & files:
            self._expect(f"read {path!r}", read[path], files[path])
        self._expect("links", targets, self._tree.links)

    def _read_ranges(self, files: dict[bytes, bytes]) -> None:
        """Reads pieces in random order, with a cache of a few blocks."""
        rng = random.Random(self._tree.number)
        with Archive(self._archive, cache_size=rng.choice((0, 1 << 18, 64 << 20))) as archive:
            for path in rng.sample(sorted(files), min(3, len(files))):
                content, ino = files[path], archive.resolve(os.fsdecode(path)).ino
                for _ in range(3):
                    offset, size = rng.randint(0, len(content)), rng.choice((1, 100, 70_000))
                    found = archive.read(ino, offset, size)
                    self._expect(f"range {offset} of {path!r}", found, content[offset : offset + size])

    def _count(self, files: dict[bytes, bytes], ngram_length: int) -> None:
        expected = expected_statistics(files, self._words, ngram_length)
        with Archive(self._archive) as archive:
            for name, text in expected.items():
                query = StatsQuery(top=_TOP) if name == "tfidf" else StatsQuery()
                self._expect(f"statistics {name}", compute(name.encode(), archive, query).read(), text)

    def _search(self, files: dict[bytes, bytes]) -> None:
        """Searches for tokens, and for a piece of each, in the archive as it is."""
        tokens = [token for token in self._tree.tokens if b"\n" not in token]
        pieces = [token[-40:] for token in tokens]
        patterns = [(piece, b"(?-u)" + b"".join(b"\\x%02x" % byte for byte in piece)) for piece in pieces]
        searched = {path: content for path, content in files.items() if not content.startswith(_MARKS)}
        with gompfs.open(self._archive, engine="cpu") as opened:
            for token, pattern in patterns:
                found = {
                    (match.path, match.line_number)
                    for match in opened.grep(pattern, text=True)
                    if match.path in searched
                }
                expected = {
                    (path, number)
                    for path, content in searched.items()
                    for number, line in enumerate(_lines(content), 1)
                    if token in line
                }
                self._expect(f"grep for {token!r}", sorted(found), sorted(expected))

    def _extract(self) -> None:
        target = self._scratch / "extracted"
        errors: list[Exception] = []
        with Archive(self._archive) as archive:
            Extractor(archive, target, on_error=errors.append).extract([])
        self._expect("errors of extract", errors, [])
        # Directories of the tree get a new time when files are added to them.
        found, expected = (
            {path: item._replace(mtime_ns=0) for path, item in list_directory(root).items() if path}
            for root in (target, self._root)
        )
        self._expect("extracted paths", sorted(found), sorted(expected))
        for path in expected:
            self._expect(f"extracted {path!r}", found.get(path), expected[path])
        with Archive(self._archive) as archive:
            listed = without_inodes(list_archive(archive))
        self._expect(
            "contents that are listed",
            {p: listed[p].content for p in expected},
            {p: expected[p].content for p in expected},
        )
        subprocess.run(["rm", "-rf", str(target)], check=True)

    def _run_commands(self, files: dict[bytes, bytes]) -> None:
        """`verify`, `cat` and `grep` as processes; `rg` is the oracle of `grep`."""
        done = _gompfs("verify", "-q", self._archive)
        self._expect("status of verify", (done.returncode, done.stderr), (0, b""))
        path = random.Random(self._tree.number).choice(sorted(files))
        done = _gompfs("cat", self._archive, path)
        self._expect(f"cat {path!r}", (done.returncode, done.stdout), (0, files[path]))
        for token in self._tree.tokens:
            pattern = token[:_LONGEST_PATTERN]
            if not _can_be_pattern_of_rg(pattern):
                continue
            patterns = self._scratch / "patterns"
            patterns.write_bytes(pattern + b"\n")
            options = ["-F", "-f", str(patterns), "-c", "--sort", "path", "-H"]
            expected = subprocess.run(
                ["rg", "-uu", "--no-mmap", *options, "."], capture_output=True, cwd=self._root, check=False
            )
            done = _gompfs("grep", *options, self._archive)
            lines = re.sub(rb"(?m)^\./", b"", expected.stdout)
            self._expect("grep and rg", (done.returncode, done.stdout), (expected.returncode, lines))

    def _compare_mount(self) -> None:
        mountpoint = self._scratch / "mount"
        mountpoint.mkdir(exist_ok=True)
        done = _gompfs("mount", self._archive, mountpoint)
        self._expect("status of mount", (done.returncode, done.stderr), (0, b""))
        if done.returncode:
            return
        try:
            compared = subprocess.run(
                ["diff", "-r", "--no-dereference", "-x", "stats", str(self._root), str(mountpoint)],
                capture_output=True,
                check=False,
            )
            self._expect("diff -r of the mount", (compared.returncode, compared.stdout + compared.stderr), (0, b""))
        finally:
            _gompfs("umount", mountpoint)


def expected_statistics(files: dict[bytes, bytes], words: str, ngram_length: int) -> dict[str, bytes]:
    """Returns the text of each statistic, counted from the contents of files by path; for length 1, of one only."""
    texts = [
        (path.replace(b"\\", b"\\\\").replace(b"\t", b"\\t").replace(b"\n", b"\\n"), content)
        for path, content in files.items()
        if b"\0" not in content[:_BINARY_PROBE_SIZE]
    ]
    of_words = oracle.ngrams_of(texts, 1, words)
    by_count = oracle.sequence_count(of_words)
    if ngram_length == 1:
        return {"wordcount": by_count}
    of_ngrams = oracle.ngrams_of(texts, ngram_length, words)
    by_word = sorted(line.split(b"\t") for line in by_count.split(b"\n")[:-1])
    return {
        "wordcount": by_count,
        "sort": b"".join(b"%s\t%s\n" % (word, count) for word, count in by_word),
        "inverted_index": oracle.inverted_index(of_words),
        "term_vector": oracle.term_vector(of_words),
        "sequence_count": oracle.sequence_count(of_ngrams),
        "ranked_inverted_index": oracle.ranked_inverted_index(of_ngrams),
        "tfidf": oracle.tfidf(of_words, _TOP),
    }


def _difference(found: object, expected: object) -> str:
    """Says in a line where two values differ."""
    if isinstance(found, bytes) and isinstance(expected, bytes):
        place = next((at for at, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]), None)
        place = min(len(found), len(expected)) if place is None else place
        begin = max(0, place - 20)
        seen, wanted = found[begin : place + 40], expected[begin : place + 40]
        return f"{len(found)} bytes, not {len(expected)}; from {begin} on {seen!r}, not {wanted!r}"
    return f"{str(found)[:300]}, not {str(expected)[:300]}"


def _lines(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def _can_be_pattern_of_rg(token: bytes) -> bool:
    """Patterns of `-f` are lines of UTF-8. With a NUL it depends on the command where a file is binary."""
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return not set(b"\n\r\0") & set(token)


def _gompfs(*arguments: str | bytes | Path) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-P", "-m", "gompfs", *arguments]
    return subprocess.run(command, capture_output=True, check=False)
