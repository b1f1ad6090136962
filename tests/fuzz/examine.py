"""Runs the gompfs commands on one archive, in this process, and reports what they do wrong.

It runs in a forked child (see run.py), since a step may crash, never end, or use up all memory. Each step reports when
it begins and ends, and the parent watches time and memory.

A finding is:

- a signal, a traceback, "internal error", an exit status other than 0 and 1, or status 1 without a line that says why;
- more time or memory than the limits;
- a file that is returned without an error and whose bytes differ from the slow reading (oracle.py), or from the seed,
  if the mutation kept the contents that the files' checksums stand for;
- an archive that `verify` calls sound although the slow reading finds damage, or its listing, bytes or word counts
  differ from those of the slow reading, or another command refuses it.

If a mutation forges both content and checksum, wrong bytes cannot be told from right ones. In that case only the
comparison with the slow reading counts. An index whose pages contradict each other has no single meaning, so its bytes
are not compared.
"""

from __future__ import annotations

import json
import os
import random
import resource
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import FileIO, TextIOWrapper
from pathlib import Path

from examine_uses import uses
from kernel import mounted, use
from oracle.archive import MAX_SIZE, OracleError, Reading, TooMuchError, count_lines, read_archive

from gompfs.cli.application import run
from gompfs.errors import GompfsError

FORBIDDEN = (
    "Traceback",
    "internal error",
    "out of memory",
    "Exception ignored",
    "runtime error:",
    "Sanitizer",
    "assert",
)
_STATISTICS = (
    "sort",
    "inverted_index",
    "term_vector",
    "sequence_count",
    "ranked_inverted_index",
    "tfidf",
    "info",
    "list",
    "word/the",
    "phrase/of the",
    "phrase/to be or not",
)
_NO_RESULT = ("no file contains this", "take too much memory")
"""Errors that `stats` may give for a valid archive: a search finds nothing, or all paths together exceed the memory."""
_NUM_CATS = 4
_MAX_OUTPUT = 32 << 20
_MAX_PATH = 3800


@dataclass
class Outcome:
    """The output and status of one command."""

    status: int
    out: bytes
    err: str


@dataclass
class Examination:
    """One mutant under examination. `tell` receives events: (kind, text)."""

    path: Path
    scratch: Path
    number: int
    originals: dict[bytes, set[bytes]] | None
    """The contents of the seed's files by path, or None if the mutation may have changed them."""
    tell: Callable[[str, str], None]
    is_sound: bool = False
    reading: Reading | None = None
    problem: str = ""
    statuses: dict[str, int] = field(default_factory=dict)

    def steps(self) -> list[tuple[str, Callable[[], None]]]:
        """Returns all steps in order, by name. Names that contain a space are commands."""
        rng = random.Random(self.number)
        statistic = rng.choice(_STATISTICS)
        return [
            ("slow reading", self._read_slowly),
            ("verify", self._verify),
            ("info", lambda: self.say("info", "--json")),
            ("ls", self._list),
            ("ls -l", lambda: self.say("ls", "-lR")),
            ("extract", self._extract),
            ("cat", lambda: self._cat(rng)),
            ("stats wordcount", self._count_words),
            ("stats sequence_count", self._count_sequences),
            (f"stats {statistic}", lambda: self.say("stats", statistic)),
            ("stats overlap", lambda: self.say("stats", "overlap", __file__, "--n", str(rng.randrange(1, 5)))),
            ("stats --file", lambda: self._count_in_file(rng)),
            ("mount", self._mount),
            *uses(self, rng),
        ]

    def finding(self, kind: str, text: str) -> None:
        """Reports a finding."""
        self.tell("finding", f"{kind}: {text}")

    # Steps

    def _read_slowly(self) -> None:
        try:
            reading = read_archive(self.path.read_bytes())
            self.reading = reading if reading.paths else None
        except TooMuchError:
            pass
        except OracleError as error:
            self.reading, self.problem = None, str(error)

    def _verify(self) -> None:
        outcome = self.command("verify", "--json")
        if outcome.status == 0:
            self.is_sound = True
            self.tell("sound", "")
            if self.reading is None and self.problem:
                self.finding("verify passes", f"an archive that the slow reading refuses: {self.problem}")
        elif outcome.out:
            report = json.loads(outcome.out)
            if not report["damages"] and not report["problems"]:
                self.finding("no reason", "verify has status 1 and no damage")

    def say(self, *arguments: str) -> None:
        outcome = self.command(*arguments)
        if self.is_sound and outcome.status and not any(text in outcome.err for text in _NO_RESULT):
            self.finding("refused", f"{' '.join(arguments)} of an archive that verify calls sound: {outcome.err[:300]}")

    def _list(self) -> None:
        outcome = self.command("ls", "-R", "--json")
        if not (self.is_sound and self.reading) or len(outcome.out) >= _MAX_OUTPUT:
            return
        listed = {
            os.fsencode(row["path"]): (row["ino"], row["size"], row["mtime_ns"]) for row in json.loads(outcome.out)
        }
        expected = {path: (e.ino, e.size, e.mtime_ns) for path, e in self.reading.paths.items() if path}
        if listed != expected:
            self.finding("wrong listing", str([path for path in expected if listed.get(path) != expected[path]][:5]))

    def _extract(self) -> None:
        target = self.scratch / "extracted"
        outcome = self.command("extract", "--verify", "-q", "-C", str(target))
        try:
            if self.is_sound and outcome.status and not _is_of_file_system(outcome.err):
                self.finding("refused", f"extract of an archive that verify calls sound: {outcome.err[:300]}")
            left_out = outcome.err
            for full, status in files_below(os.fsencode(target)) if target.exists() else ():
                path = os.path.relpath(full, os.fsencode(target))
                is_small_file = stat.S_ISREG(status.st_mode) and status.st_size <= MAX_SIZE
                if is_small_file and os.access(full, os.R_OK) and os.fsdecode(path) not in left_out:
                    content = Path(os.fsdecode(full)).read_bytes()
                    self.compare("extract", path, content, verify=True, is_whole=outcome.status == 0)
        finally:
            remove(target)

    def _cat(self, rng: random.Random) -> None:
        if self.reading is not None:
            paths = [path for path, e in self.reading.paths.items() if stat.S_ISREG(e.mode) and e.size <= MAX_SIZE]
        else:
            paths = sorted(self.originals or {b"text/one", b"noise"})
        for path in rng.sample(paths, min(_NUM_CATS, len(paths))):
            if b"\0" in path or path.startswith(b"-"):
                continue
            with _limited_files():
                outcome = self.command("cat", "--verify", "--", os.fsdecode(path))
            if outcome.status == 0:
                self.compare("cat", path, outcome.out, verify=True)
            elif self.is_sound and self.reading is not None:
                self.finding("refused", f"cat of an archive that verify calls sound: {outcome.err[:300]}")

    def _count_words(self) -> None:
        self._count("wordcount", 1)

    def _count_sequences(self) -> None:
        self._count("sequence_count", 3)

    def _count(self, name: str, num_words: int) -> None:
        outcome = self.command("stats", name)
        if not self.is_sound:
            return
        if outcome.status:
            if not any(text in outcome.err for text in _NO_RESULT):
                self.finding("refused", f"stats {name} of an archive that verify calls sound: {outcome.err[:300]}")
        elif not self._agrees(outcome.out, num_words):
            self.finding("wrong counts", f"stats {name} of an archive that verify calls sound")

    def _agrees(self, text: bytes, num_words: int) -> bool:
        """Returns whether counts, or their beginning, agree with the slow reading, if that can count."""
        if self.reading is None or not _is_small(self.reading):
            return True
        return text == count_lines(self.reading.counts(num_words))[: len(text) if num_words == 1 else None]

    def _count_in_file(self, rng: random.Random) -> None:
        if self.reading is None:
            return
        paths = [path for path, e in self.reading.paths.items() if stat.S_ISREG(e.mode) and e.size <= MAX_SIZE]
        if not paths:
            return
        path = rng.choice(paths)
        outcome = self.command("stats", "wordcount", "--file", os.fsdecode(path))
        ino = self.reading.paths[path].ino
        if self.is_sound and self.reading.is_text(ino):
            words = self.reading.words_of(ino)
            if outcome.status or outcome.out != count_lines(Counter(words)):
                self.finding(
                    "wrong counts", f"stats wordcount --file {path!r}, which verify calls sound: {outcome.err[:200]}"
                )

    def _mount(self) -> None:
        try:
            with mounted(self.path) as (kernel, errors):
                contents, counts = use(kernel, MAX_SIZE if self.is_sound else 1 << 20)
        except GompfsError:
            if self.is_sound:
                self.finding("refused", "mount of an archive that verify calls sound")
            return
        for text in errors.found:
            self.finding("unforeseen", f"mount: {text[:300]}")
        for path, content in contents.items():
            self.compare("mount", path, content, verify=False)
        if self.is_sound and counts is not None and not self._agrees(counts, 1):
            self.finding("wrong counts", "stats/wordcount of a mount of an archive that verify calls sound")

    # Helpers

    def compare(self, command: str, path: bytes, content: bytes, *, verify: bool, is_whole: bool = True) -> None:
        """Checks the bytes of a file that was returned without an error."""
        if self.reading is not None:
            try:
                entry = self.reading.paths.get(path)
                expected = None if entry is None else self.reading.content(entry.ino, verify=verify)
            except OracleError:
                return
            if entry is None:
                self.finding("wrong name", f"{command}: {path!r}")
            elif expected is None and is_whole and (content or entry.size):
                self.finding("wrong bytes", f"{command}: {path!r}, which is damaged, came without an error")
            elif expected is not None and content != expected:
                self.finding("wrong bytes", f"{command}: {path!r}: {len(content)} bytes, not those of the slow reading")
        if verify and self.originals is not None and is_whole:
            # cat follows symbolic links. A path may be a link in one generation and a file in another.
            known = set().union(*self.originals.values()) if command == "cat" else self.originals.get(path, set())
            if content not in known:
                self.finding("wrong bytes", f"{command}: {path!r}: {len(content)} bytes, not those of the seed")

    def command(self, *arguments: str) -> Outcome:
        """Runs a gompfs command in this process, with its output redirected to files."""
        name, *rest = arguments
        options, paths = (rest[: rest.index("--")], rest[rest.index("--") + 1 :]) if "--" in rest else (rest, [])
        line = [name, str(self.path), *options] if not paths else [name, *options, "--", str(self.path), *paths]
        self.tell("command", " ".join(arguments))
        with _captured() as read:
            status = run(line)
            out, err = read()
        outcome = Outcome(status, out, err.decode("utf-8", "replace"))
        self._check(" ".join(arguments), outcome)
        return outcome

    def _check(self, command: str, outcome: Outcome) -> None:
        if "are ignored: " in outcome.err:
            # gompfs shows an older generation and says so, but the slow reading knows only the last one
            self.reading = None
        for text in FORBIDDEN:
            if text in outcome.err:
                self.finding(
                    "internal error" if text != "out of memory" else "memory", f"{command}: {outcome.err[-400:]}"
                )
                break
        statuses, silent = ((0, 1, 2), 2) if command.startswith("grep") else ((0, 1), 1)
        if outcome.status not in statuses:
            self.finding("status", f"{command}: {outcome.status}: {outcome.err[:300]}")
        elif outcome.status == silent and "verify" not in command and "gompfs: " not in outcome.err:
            self.finding("no reason", f"{command} has status 1 and says nothing")
        if any(not line.startswith("gompfs: ") for line in outcome.err.splitlines()):
            self.finding("status", f"{command}: a line that is no message: {outcome.err[:300]}")


@contextmanager
def _captured() -> Iterator[Callable[[], tuple[bytes, bytes]]]:
    """Redirects standard output and standard error to files, for C++ and Python alike.

    Yields a function that reads them.
    """
    files = [os.memfd_create(name) for name in ("out", "err")]
    saved = [os.dup(1), os.dup(2)]
    streams = sys.stdout, sys.stderr
    for number, descriptor in enumerate(files, 1):
        os.dup2(descriptor, number)
    sys.stdout, sys.stderr = (TextIOWrapper(FileIO(number, "w", closefd=False)) for number in (1, 2))

    def read() -> tuple[bytes, bytes]:
        sys.stdout.flush()
        sys.stderr.flush()
        return os.pread(files[0], _MAX_OUTPUT, 0), os.pread(files[1], 1 << 20, 0)

    try:
        yield read
    finally:
        sys.stdout.close()
        sys.stderr.close()
        sys.stdout, sys.stderr = streams
        for number, descriptor in enumerate(saved, 1):
            os.dup2(descriptor, number)
        for descriptor in (*files, *saved):
            os.close(descriptor)


@contextmanager
def _limited_files() -> Iterator[None]:
    """Makes writing more than MAX_SIZE to a file fail.

    A forged size of 2^60 bytes is a hole that no output can hold.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_SIZE, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def files_below(top: bytes, max_folders: int | None = None) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yields files below a directory, as deep as paths can name them, from at most `max_folders` directories."""
    pending = [top]
    while pending and max_folders != 0:
        folder = pending.pop()
        max_folders = None if max_folders is None else max_folders - 1
        for entry in os.scandir(folder) if len(folder) < _MAX_PATH else ():
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            else:
                yield entry.path, entry.stat(follow_symlinks=False)


def remove(folder: Path) -> None:
    """Removes a directory of any depth."""
    subprocess.run(["rm", "-rf", folder], check=True)


_FILE_SYSTEM = (
    "File name too long",
    "Operation not supported",
    "File too large",
    "Argument list too long",
    "Invalid argument",
    "No space left",
    "Permission denied",
    "Operation not permitted",
    "Numerical result out of range",
    "only root can create a device",
)


def _is_of_file_system(err: str) -> bool:
    """Returns whether all messages are about what the file system cannot store."""
    return any(text in err for text in _FILE_SYSTEM)


def _is_small(reading: Reading | None, path: bytes | None = None) -> bool:
    """Returns whether the content of a file, or of all files, is small enough to read."""
    if reading is None:
        return True
    if path is not None:
        return reading.paths[path].size <= MAX_SIZE
    return sum(entry.size for entry in reading.inodes.values() if stat.S_ISREG(entry.mode)) <= 4 * MAX_SIZE
