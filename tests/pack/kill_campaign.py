"""Kills `repack -f` and `add` with SIGKILL at random moments, and checks what is left.

    python -m tests.pack.kill_campaign NUMBER [SEED]

The packed tree has a file that contains generations made by an attacker. After each kill, the archive is either exactly
as before, or as the command would have made it. `repair` followed by the same command gives the latter. After that, no
temporary file is left.

Commands run in forks of this process, so that a kill hits the work, not the start of an interpreter.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import random
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    import tests.rooms  # noqa: F401

from command_forks import fork
from hostile_chain import EVIL_NAME, hostile_chain, payload_offset

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.engine import select_engine
from gompfs.format import GENERATION_HEADER_SIZE, SUPERBLOCK_SIZE, align

BLOCK_SIZE = 64 << 10
COMMANDS = ("repack", "add")


@dataclass
class Outcome:
    """The number of kills by command and by resulting state: old, new or torn."""

    kills: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def num_kills(self) -> int:
        return sum(count for (_, state), count in self.kills.items() if state != "finished")

    def __str__(self) -> str:
        return ", ".join(f"{command} {state} {count}" for (command, state), count in sorted(self.kills.items()))


class Campaign:
    """A working folder with the archive, the trees, and a folder for temporary files."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.outcome = Outcome()
        self._rng = random.Random(seed)
        self._archive = folder / "work/a.gomp"
        self._archive.parent.mkdir()
        self._before, self._temporary = folder / "before.gomp", folder / "tmp"
        self._temporary.mkdir()
        self._first, self._second = folder / "first", folder / "second"
        for tree, size in ((self._first, 200_000), (self._second, 10_000_000)):
            tree.mkdir()
            (tree / "noise").write_bytes(self._rng.randbytes(size))
            (tree / "text").write_text(" ".join(self._rng.choices(["to", "be", "or", "not", "that", "is"], k=20_000)))
        packed = folder / "second.gomp"
        self._prepare(packed)
        self._arguments = {
            "repack": ["repack", "-q", "-f", "--codec", "stored", packed, self._archive],
            "add": ["add", "-q", "--codec", "stored", self._second, self._archive],
        }
        self._old = self._listing(self._before)
        self._new, self._seconds = {}, {}
        for command in COMMANDS:
            shutil.copy(self._before, self._archive)
            started = time.monotonic()
            self._run(*self._arguments[command])
            self._seconds[command] = time.monotonic() - started
            self._new[command] = self._listing(self._archive)
        assert len({str(state) for state in (self._old, *self._new.values())}) == 3

    def _prepare(self, packed: Path) -> None:
        """Makes the archive before, the attacker's file, and an archive of the second tree."""
        self._run("pack", "-q", "--codec", "stored", self._first, self._before)
        with open(self._before, "rb") as file:
            uuid = file.read(SUPERBLOCK_SIZE)[16:32]
        size = self._before.stat().st_size
        start = align(size, GENERATION_HEADER_SIZE)
        place = payload_offset(start + GENERATION_HEADER_SIZE)
        chain = hostile_chain(BLOCK_SIZE, place, uuid, first=2, start=start, previous_footer=size - 96)
        (self._second / "aaa").write_bytes(chain.content)
        self._run("pack", "--codec", "stored", self._second, packed)

    def kill(self, command: str) -> None:
        """Runs a command, kills it, and checks the archive."""
        shutil.copy(self._before, self._archive)
        process = self._start(self._arguments[command])
        time.sleep(self._seconds[command] * self._rng.random())
        os.kill(process, signal.SIGKILL)
        if os.waitpid(process, 0)[1] == 0:
            self.outcome.kills[command, "finished"] += 1
            assert self._listing(self._archive) == self._new[command]
            return
        found = self._listing(self._archive)
        state = "old" if found == self._old else "new"
        assert found in (self._old, self._new[command]), (command, found)
        content = self._archive.read_bytes()
        if state == "old" and content != self._before.read_bytes():
            assert command != "repack"
            state = "torn"
            assert content.startswith(self._before.read_bytes())
        self.outcome.kills[command, state] += 1
        self._run("repair", "-q", "--discard", self._archive)
        assert self._listing(self._archive) in (self._old, self._new[command])
        if state != "new" and self._listing(self._archive) == self._old:
            assert self._archive.read_bytes() == self._before.read_bytes()
            self._run(*self._arguments[command])
            assert self._listing(self._archive) == self._new[command]
        else:
            self._run("add", "-q", self._first / "text", self._archive)
        # The next command has removed what the killed process left.
        assert os.listdir(self._archive.parent) == ["a.gomp"]
        assert os.listdir(self._temporary) == []

    def _start(self, arguments: list[str | Path]) -> int:
        return fork(lambda: run([*map(str, arguments)]), str(self._temporary))

    def _run(self, *arguments: str | Path) -> None:
        status = os.waitpid(self._start([*arguments]), 0)[1]
        assert status == 0, (arguments, status)

    def _listing(self, path: Path) -> tuple[object, ...]:
        """Calls `listing` in a fork, since it starts threads."""
        reader, writer = os.pipe()

        def answer() -> int:
            with open(writer, "wb") as file:
                pickle.dump(listing(path), file)
            return 0

        process = fork(answer, str(self._temporary))
        os.close(writer)
        with open(reader, "rb") as file:
            content = file.read()
        assert os.waitpid(process, 0)[1] == 0
        return tuple(pickle.loads(content))


def listing(path: Path) -> tuple[object, ...]:
    """Returns the generation of an archive, its entries with digests of their contents, and its sections."""
    with Archive(path, verify=True, engine=select_engine("cpu")) as archive:
        entries = []
        for name, inode in archive.walk():
            content = archive.read(inode.ino, 0, inode.size) if stat.S_ISREG(inode.mode) else b""
            entries.append((name, inode.mode, hashlib.sha256(content).hexdigest()))
        assert EVIL_NAME not in [name for name, *_ in entries]
        return archive.footer.generation, entries, [(section.segment, section.kind) for section in archive.sections]


def run_campaign(folder: Path, number: int, seed: int) -> Outcome:
    """Runs commands until `number` of them were killed."""
    campaign = Campaign(folder, seed)
    turn = 0
    while campaign.outcome.num_kills < number:
        campaign.kill(COMMANDS[turn % len(COMMANDS)])
        turn += 1
        if turn % 50 == 0 and __name__ == "__main__":
            print(campaign.outcome, flush=True)  # noqa: T201
    return campaign.outcome


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        print(run_campaign(Path(name), *map(int, [*sys.argv[1:], "1"][:2])))  # noqa: T201
