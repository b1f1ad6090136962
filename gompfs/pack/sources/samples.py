"""Samples of the content of sources, taken before it is packed.

Content that can be read twice is sampled evenly. Of other sources, such as a tar on standard input, the first entries
are read ahead into a temporary file, from which they are packed later.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields

from gompfs.errors import UnreadableFileError
from gompfs.pack.sources.base import FileContent, SourceEntry

__all__ = ["ReadAhead", "sample_files"]

_WINDOW = 1 << 20
_MIN_SAMPLE, _MAX_SAMPLE = 16 << 20, 64 << 20
_SHARE = 64  # a sample is this part of the content, within the limits above
_MAX_AHEAD = 128 << 20
_MAX_ENTRIES_AHEAD = 1 << 16


def _windows(total: int) -> Iterator[tuple[int, int]]:
    """Yields begin and end of the ranges of `total` bytes that a sample consists of: windows at equal distances."""
    sample = min(max(total // _SHARE, _MIN_SAMPLE), _MAX_SAMPLE)
    if total <= sample:
        yield 0, total
        return
    distance = -(-total * _WINDOW // sample)
    for begin in range(0, total, distance):
        yield begin, min(begin + _WINDOW, total)


def sample_files(files: Iterable[FileContent], total: int) -> list[bytes]:
    """Returns a sample of files with `total` bytes, as if they were one file: the pieces of files in its windows."""
    windows = _windows(total)
    begin, end = next(windows)
    samples: list[bytes] = []
    start = 0
    for file in files:
        stop = start + file.size
        while begin < stop:
            first = max(begin, start)
            samples.append(file.read_at(first - start, min(end, stop) - first))
            if end > stop:
                break
            window = next(windows, None)
            if window is None:
                return samples
            begin, end = window
        start = stop
    return samples


class ReadAhead:
    """The first entries of sources, with their content in a temporary file, and the entries after them.

    At most 128 MiB and 65,536 entries are read ahead. Of a file that is larger, the rest is read when it is packed.
    """

    def __init__(self, entries: Iterator[SourceEntry]) -> None:
        """Reads ahead. Raises PackError for an entry that cannot be read, OSError if the file cannot be written."""
        self._entries = entries
        self._file = tempfile.TemporaryFile(prefix="gompfs-pack-")  # noqa: SIM115 - `entries` closes it
        self._ahead: list[SourceEntry] = []
        self.size = 0
        """The number of bytes that were read ahead."""
        try:
            for entry in entries:
                self._ahead.append(self._save(entry) if entry.has_content else entry)
                if self.size >= _MAX_AHEAD or len(self._ahead) >= _MAX_ENTRIES_AHEAD:
                    break
        except BaseException:
            self._file.close()
            raise

    def sample(self) -> list[bytes]:
        """Returns a sample of what was read ahead."""
        return [self._read(begin, end - begin) for begin, end in _windows(self.size)]

    def entries(self) -> Iterator[SourceEntry]:
        """Yields all entries, once."""
        try:
            yield from self._ahead
            self._ahead.clear()
            yield from self._entries
        finally:
            self._file.close()

    def _save(self, entry: SourceEntry) -> SourceEntry:
        """Copies the content of an entry to the file, up to the limit. Returns the entry with that content."""
        saved = _SavedEntry(**{each.name: getattr(entry, each.name) for each in fields(SourceEntry)})
        saved.read_saved = self._read
        try:
            for file_offset, data in entry.read_pieces():
                saved.starts.append(file_offset)
                saved.runs.append((file_offset, self.size, len(data)))
                self._file.write(data)
                self.size += len(data)
                if self.size >= _MAX_AHEAD and file_offset + len(data) < entry.size:
                    saved.rest = entry
                    break
        except UnreadableFileError as error:
            saved.error = error
        self._file.flush()
        return saved

    def _read(self, offset: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, offset)


@dataclass(slots=True)
class _SavedEntry(SourceEntry):
    """An entry whose content, or the beginning of it, was copied.

    `runs` has file_offset, offset in the copy, and size of each run of bytes, in order, and `starts` the first of
    these. `rest` is the entry that reads what comes after the last run. `error` says why the content cannot be read.
    """

    read_saved: Callable[[int, int], bytes] | None = None
    starts: list[int] = field(default_factory=list)
    runs: list[tuple[int, int, int]] = field(default_factory=list)
    rest: SourceEntry | None = None
    error: UnreadableFileError | None = None

    @property
    def can_reopen(self) -> bool:
        """See SourceEntry.can_reopen."""
        return self.rest is None

    def read_at(self, file_offset: int, size: int) -> bytes:
        """See SourceEntry.read_at."""
        assert self.read_saved is not None
        if self.error is not None:
            raise self.error
        end = file_offset + size
        pieces = []
        for index in range(max(bisect_right(self.starts, file_offset) - 1, 0), len(self.runs)):
            start, saved_at, count = self.runs[index]
            begin, stop = max(file_offset, start), min(end, start + count)
            if begin < stop:
                pieces.append(bytes(begin - file_offset))  # a hole
                pieces.append(self.read_saved(saved_at + begin - start, stop - begin))
                file_offset = stop
            elif start >= end:
                break
        if file_offset < end:
            missing = end - file_offset
            pieces.append(bytes(missing) if self.rest is None else self.rest.read_at(file_offset, missing))
        return b"".join(pieces)
