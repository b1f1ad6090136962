"""Reads files of a mount with random system calls, and compares every byte with the source files, as fsx does.

    python random_reader.py SOURCE MOUNTED [--operations N] [--seconds S] [--seed S]

SOURCE and MOUNTED are both files or both trees. Of a tree, files are read one after another in random order. The
program ends with status 0 and prints the numbers of operations and bytes, or it ends with a traceback that names file,
operation and seed.
"""

from __future__ import annotations

import argparse
import errno
import mmap
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# block and page sizes; errors are most likely near their multiples
_PLACES = (4096, 16 << 10, 64 << 10, 128 << 10, 1 << 20)
_MAX_PIPE = 64 << 10
_STEPS_IN_A_FILE = 12


class RandomReader:
    """One open file of a mount, and its expected content."""

    def __init__(self, expected: bytes | mmap.mmap, path: Path, rng: random.Random) -> None:
        self._expected = expected
        self._path = path
        self._rng = rng
        self._size = len(expected)
        self._last_end = 0
        self._buffered = os.open(path, os.O_RDONLY)
        self._direct = os.open(path, os.O_RDONLY | os.O_DIRECT)
        self._copy = os.memfd_create("copy")
        self._pipe = os.pipe()
        self.num_bytes = 0

    def close(self) -> None:
        for descriptor in (self._buffered, self._direct, self._copy, *self._pipe):
            os.close(descriptor)

    def step(self) -> None:
        """Performs one operation. Raises AssertionError or OSError, with a note that names the operation."""
        operation = self._rng.choice(_OPERATIONS)
        start, size = self._range()
        try:
            operation(self, start, size)
        except Exception as error:
            error.add_note(f"{operation.__name__.strip('_')} of {size} bytes at {start} of {self._path}")
            raise
        self._last_end = min(start + size, self._size)

    def _range(self) -> tuple[int, int]:
        """Returns an offset and a size to read.

        The offset is random, or continues or goes back from the last read, or is near a block boundary or the end of
        the file.
        """
        rng = self._rng
        size = int(2 ** rng.uniform(0, 18.5))
        start = rng.randrange(self._size + 1)
        match rng.randrange(8):
            case 0 | 1:
                start = self._last_end
            case 2:
                start = self._last_end - 2 * size
            case 3:
                start += rng.choice(_PLACES) - start % rng.choice(_PLACES) + rng.randrange(-2, 3)
            case 4:
                start = self._size - rng.randrange(2 * size)
            case 5:
                start = self._size + rng.randrange(-3, 10_000)
        return max(start, 0), size

    def _check(self, found: bytes | bytearray | memoryview, start: int, size: int) -> None:
        expected = self._expected[start : start + size]
        self.num_bytes += len(expected)
        if expected == found:
            return
        assert len(found) == len(expected), f"{len(found)} bytes came instead of {len(expected)}"
        place = next(index for index, (a, b) in enumerate(zip(found, expected, strict=True)) if a != b)
        raise AssertionError(f"the byte at {start + place} is {found[place]} instead of {expected[place]}")

    def _pread(self, start: int, size: int) -> None:
        self._check(os.pread(self._buffered, size, start), start, size)

    def _pread_directly(self, start: int, size: int) -> None:
        self._check(os.pread(self._direct, size, start), start, size)

    def _pread_aligned_directly(self, start: int, size: int) -> None:
        start -= start % 4096
        with mmap.mmap(-1, -(-size // 4096) * 4096) as buffer:
            count = os.preadv(self._direct, [buffer], start)
            self._check(buffer[:count], start, len(buffer))

    def _read(self, start: int, size: int) -> None:
        assert os.lseek(self._buffered, start, os.SEEK_SET) == start
        for _ in range(3):
            self._check(os.read(self._buffered, size), start, size)
            start = min(start + size, max(self._size, start))
            assert os.lseek(self._buffered, 0, os.SEEK_CUR) == start

    def _readv(self, start: int, size: int) -> None:
        buffers = [bytearray(self._rng.randrange(size + 1)) for _ in range(self._rng.randrange(1, 6))]
        count = os.preadv(self._rng.choice((self._buffered, self._direct)), buffers, start)
        total = sum(map(len, buffers))
        self._check(b"".join(buffers)[:count], start, total)

    def _map(self, start: int, size: int) -> None:
        if start >= self._size:
            return
        first = start - start % mmap.ALLOCATIONGRANULARITY
        length = min(start + size, self._size) - first
        with mmap.mmap(self._buffered, length, mmap.MAP_SHARED, mmap.PROT_READ, offset=first) as view:
            if self._rng.random() < 0.3:
                view.madvise(self._rng.choice((mmap.MADV_RANDOM, mmap.MADV_SEQUENTIAL, mmap.MADV_WILLNEED)))
            self._check(view[start - first :], start, size)

    def _sendfile(self, start: int, size: int) -> None:
        os.lseek(self._copy, 0, os.SEEK_SET)
        self._copied(start, size, lambda at, left: os.sendfile(self._copy, self._buffered, at, left))

    def _copy_file_range(self, start: int, size: int) -> None:
        os.lseek(self._copy, 0, os.SEEK_SET)
        try:
            self._copied(start, size, lambda at, left: os.copy_file_range(self._buffered, self._copy, left, at))
        except OSError as error:  # most kernels refuse to copy between file systems
            if error.errno not in (errno.EXDEV, errno.EINVAL):
                raise

    def _copied(self, start: int, size: int, copy: Callable[[int, int], int]) -> None:
        done = 0
        while done < size and (count := copy(start + done, size - done)):
            done += count
        self._check(os.pread(self._copy, done, 0), start, size)

    def _splice(self, start: int, size: int) -> None:
        size = min(size, _MAX_PIPE)
        count = os.splice(self._buffered, self._pipe[1], size, offset_src=start)
        found = b""
        while len(found) < count:
            found += os.read(self._pipe[0], count - len(found))
        self._check(found, start, count)
        assert count > 0 or start >= self._size

    def _advise(self, start: int, size: int) -> None:
        advices = (os.POSIX_FADV_NORMAL, os.POSIX_FADV_SEQUENTIAL, os.POSIX_FADV_RANDOM, os.POSIX_FADV_WILLNEED)
        os.posix_fadvise(self._buffered, start, size, self._rng.choice(advices))

    def _drop(self, start: int, size: int) -> None:
        """Drops pages from the page cache, so that the mount has to answer again."""
        os.posix_fadvise(self._buffered, *self._rng.choice(((0, 0), (start, size))), os.POSIX_FADV_DONTNEED)

    def _reopen(self, _start: int, _size: int) -> None:
        os.close(self._buffered)
        self._buffered = os.open(self._path, os.O_RDONLY)

    def _measure(self, start: int, _size: int) -> None:
        assert os.fstat(self._buffered).st_size == self._size
        assert os.lseek(self._buffered, 0, os.SEEK_END) == self._size
        if start < self._size:
            assert os.lseek(self._buffered, start, os.SEEK_DATA) >= start


_OPERATIONS: tuple[Callable[[RandomReader, int, int], None], ...] = (
    RandomReader._pread,
    RandomReader._pread,
    RandomReader._pread_directly,
    RandomReader._pread_aligned_directly,
    RandomReader._read,
    RandomReader._readv,
    RandomReader._map,
    RandomReader._sendfile,
    RandomReader._copy_file_range,
    RandomReader._splice,
    RandomReader._advise,
    RandomReader._drop,
    RandomReader._reopen,
    RandomReader._measure,
)


@contextmanager
def _content(path: Path) -> Iterator[bytes | mmap.mmap]:
    with open(path, "rb") as file:
        if os.path.getsize(path) == 0:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
            yield view


def read_at_random(
    source: Path, mounted: Path, *, operations: int | None = None, seconds: float | None = None, seed: int = 0
) -> tuple[int, int]:
    """Reads until `operations` or `seconds` are used up. Returns the numbers of operations and bytes."""
    rng = random.Random(seed)
    whole = source.is_file()
    names = [Path()] if whole else sorted(path.relative_to(source) for path in _files(source))
    deadline = None if seconds is None else time.monotonic() + seconds
    done = num_bytes = 0
    while (operations is None or done < operations) and (deadline is None or time.monotonic() < deadline):
        name = rng.choice(names)
        with _content(source / name) as expected:
            reader = RandomReader(expected, mounted / name, rng)
            try:
                for _ in range(1000 if whole else _STEPS_IN_A_FILE):
                    reader.step()
                    done += 1
            except Exception as error:
                error.add_note(f"operation {done} of seed {seed}")
                raise
            finally:
                reader.close()
        num_bytes += reader.num_bytes
    return done, num_bytes


def _files(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        yield from (path for name in names if (path := Path(folder, name)).is_file() and not path.is_symlink())


def main() -> None:
    """Runs the command line described at the head of this file."""
    parser = argparse.ArgumentParser(description="Compare a mount with its source.")
    parser.add_argument("source", type=Path)
    parser.add_argument("mounted", type=Path)
    parser.add_argument("--operations", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    done, num_bytes = read_at_random(
        options.source,
        options.mounted,
        operations=options.operations,
        seconds=options.seconds,
        seed=options.seed,
    )
    print(done, num_bytes)  # noqa: T201 - the result of the program


if __name__ == "__main__":
    main()
