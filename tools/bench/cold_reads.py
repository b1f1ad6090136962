"""Reads pages of a tree through a mount, or out of a compressed tar, and times them.

The pages are random, but spread: the tree's bytes, all files one after another, are cut into as many equal stretches as
there are pages, and each stretch has one. So two pages are seldom in one block of an archive, and a page is not already
decoded because of another one, as long as stretches are larger than blocks. A small tree therefore has few pages for
each mount.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from .blocks import regular_files
from .decode import WrongContentError
from .programs import environment, pipeline, tar_of
from .servers import Server, drop_caches, mounted, run

PAGE_SIZE = 4096
_STRETCH = 2 << 20
_MAX_PAGES = 101
MAX_EXTRACTIONS = 4  # each decompresses the archive up to its page
_DISCARD: list[str | Path] = ["sh", "-c", "exec cat > /dev/null"]


@dataclass(frozen=True)
class Page:
    """A page of a file: the file's path below the tree, the offset, and the content, which is shorter at its end."""

    path: str
    offset: int
    content: bytes


class PageSampler:
    """Chooses pages of the regular files of a tree; each byte has about the same chance."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        status = [(file, file.stat()) for file in regular_files(tree)]
        # tar extracts nothing for the second name of a file.
        files = [(file, found.st_size) for file, found in status if found.st_size and found.st_nlink == 1]
        self._files = [file for file, _ in files]
        self._ends = list(accumulate(size for _, size in files))
        self.size = self._ends[-1] if files else 0

    @property
    def num_pages(self) -> int:
        """How many pages to read in one mount: the first, and one or more others."""
        return min(max(self.size // _STRETCH, 2), _MAX_PAGES)

    def choose(self, seed: int) -> list[Page]:
        """Returns `num_pages` pages in random order. Equal seeds give equal pages."""
        rng = random.Random(seed)
        count = self.num_pages
        positions = [rng.randrange(self.size * i // count, self.size * (i + 1) // count) for i in range(count)]
        rng.shuffle(positions)
        return [self._page_at(position) for position in positions]

    def _page_at(self, position: int) -> Page:
        number = bisect_right(self._ends, position)
        file = self._files[number]
        offset = position - (self._ends[number - 1] if number else 0)
        offset -= offset % PAGE_SIZE
        with file.open("rb") as opened:
            return Page(str(file.relative_to(self._tree)), offset, os.pread(opened.fileno(), PAGE_SIZE, offset))


@dataclass(frozen=True)
class MountReader:
    """Reads through fresh mounts of a server, or from the tree itself."""

    server: Server
    tree: Path
    mount_point: Path
    cold: bool

    @property
    def name(self) -> str:
        """The name of the program that answers the reads."""
        return self.server.name

    def try_mount(self) -> None:
        """Mount once, and raise an error if that fails."""
        with mounted(self.server, self.tree, self.mount_point, cold=False):
            pass

    def read_pages(self, pages: Sequence[Page]) -> list[float]:
        """Returns seconds: from the mount command to the first page, then for each other page, in an open file."""
        with mounted(self.server, self.tree, self.mount_point, cold=self.cold) as (directory, waited):
            started = time.perf_counter()
            _read_page(directory, pages[0])
            first = waited + time.perf_counter() - started
            return [first, *(_read_page(directory, page) for page in pages[1:])]

    def read_all(self) -> float:
        """Returns the seconds to read all files once, with one reader, in a fresh mount."""
        with mounted(self.server, self.tree, self.mount_point, cold=self.cold) as (directory, _):
            return _time(pipeline(tar_of(directory), _DISCARD))


@dataclass(frozen=True)
class TarReader:
    """Reads out of a compressed tar, which `decompress` writes to standard output."""

    decompress: tuple[str | Path, ...]
    cold: bool
    name = "tar"

    def read_pages(self, pages: Sequence[Page]) -> list[float]:
        """Returns for some of the pages the seconds to extract the file until the page is there."""
        return [self._extract(page) for page in pages[:MAX_EXTRACTIONS]]

    def read_all(self) -> float:
        """Returns the seconds to extract all files once, to nowhere."""
        self._prepare()
        return _time(pipeline(self.decompress, ["tar", "-xOf", "-"], _DISCARD))

    def _extract(self, page: Page) -> float:
        self._prepare()
        started = time.perf_counter()
        command = pipeline(self.decompress, ["tar", "-xOf", "-", "--", f"./{page.path}"])
        # A session of its own: tar reads its input to the end, so it must be killed with the program that feeds it.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            start_new_session=True,
        )
        assert process.stdout is not None
        with process:
            try:
                content = process.stdout.read(page.offset + len(page.content))[page.offset :]
                seconds = time.perf_counter() - started
            finally:
                os.killpg(process.pid, signal.SIGKILL)
        _check(page, content)
        return seconds

    def _prepare(self) -> None:
        if self.cold:
            drop_caches()


def _read_page(directory: Path, page: Page) -> float:
    """Returns the seconds to read the page; the file is opened before."""
    file = os.open(directory / page.path, os.O_RDONLY)
    try:
        started = time.perf_counter()
        content = os.pread(file, PAGE_SIZE, page.offset)
        seconds = time.perf_counter() - started
    finally:
        os.close(file)
    _check(page, content)
    return seconds


def _check(page: Page, content: bytes) -> None:
    if content != page.content:
        raise WrongContentError(f"{page.path} differs at offset {page.offset}")


def _time(command: Sequence[str | Path]) -> float:
    started = time.perf_counter()
    run(tuple(command))
    return time.perf_counter() - started
