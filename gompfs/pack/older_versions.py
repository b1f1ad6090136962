"""Composes new files of what older versions of them in the archive have, and of new bytes.

The older version of a file is the archive's file of the same path. If there is none, it is a file whose path differs in
its numbers only: `django-4.2.2/setup.py` is a version of `django-4.2.1/setup.py`. Of several such files, it is the one
with the highest numbers that are not higher than those of the new file.

A composed file has extents in several segments. Statistics count such a file from its content, not from the words of
parts (docs/format.md), so the runs of bytes that it shares may begin and end inside words.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from gompfs._native.sources import shared_runs
from gompfs.errors import GompfsError
from gompfs.model import Extent
from gompfs.pack.archived_files import ArchivedFiles
from gompfs.pack.sources.base import ArchivedFile
from gompfs.pack.sources.local_file import MAX_WHOLE_SIZE
from gompfs.pack.sources.versions import numbers_in, without_numbers

_LEAST_RUN = 256  # an extent takes about 10 bytes in both copies of the index, and a block to read
_BYTES_OF_EXTENT = 256  # a file has at most one extent for so many bytes, so that reading it does not become slow
_LEAST_SHARED_PERCENT = 50  # of a file's bytes
_LEAST_NEW = 16  # bytes, so that a composed file is in several segments
_MAX_TRIED = 4  # directories


class Composition(NamedTuple):
    """Where the bytes of a file are: extents of bytes that the archive has, and ranges of new bytes (begin, size)."""

    shared: list[Extent]
    new: list[tuple[int, int]]


class OlderVersions:
    """The files of an archive that new files may be versions of."""

    def __init__(self, files: ArchivedFiles) -> None:
        self._files = files

    def compose(self, directory: bytes, name: bytes, content: bytes | memoryview) -> Composition | None:
        """Returns how a file can be composed, or None if no version has enough of it. Raises CorruptIndexError."""
        if not 2 * _LEAST_RUN <= len(content) <= MAX_WHOLE_SIZE:
            return None
        version = self._find(directory, name)
        if version is None or not _LEAST_RUN <= version.size <= MAX_WHOLE_SIZE:
            return None
        columns = self._files.columns
        index = columns.index_of(version.ino)
        if index is None or columns.stored_sizes[index] != version.size:
            return None
        if columns.num_extents[index] > _max_extents(version.size):
            return None
        try:
            base = self._files.archive.read(version.ino, 0, version.size)
        except GompfsError:  # a damaged file is not used
            return None
        runs = shared_runs(content, base, _LEAST_RUN)
        if 100 * sum(size for _, _, size in runs) < _LEAST_SHARED_PERCENT * len(content):
            return None
        composition = _composition(runs, len(content), columns.extents(index))
        num_extents = len(composition.shared) + len(composition.new)
        return composition if num_extents <= _max_extents(len(content)) else None

    def _find(self, directory: bytes, name: bytes) -> ArchivedFile | None:
        """Returns the older version of a file."""
        archived = self._files.find(directory)
        found = archived.get(name) or _version(archived, name)
        if found is None and any(byte in b"0123456789" for byte in directory):
            for other in self._directories_like(directory):
                archived = self._files.find(other)
                if found := archived.get(name) or _version(archived, name):
                    break
        return found

    def _directories_like(self, directory: bytes) -> Iterator[bytes]:
        """Yields directories whose paths differ from that of `directory` in their numbers only."""
        paths = self._by_path_without_numbers.get(without_numbers(directory), [])
        end = bisect_right(paths, numbers_in(directory), key=numbers_in)
        near = (*reversed(paths[:end]), *paths[end:])
        yield from [path for path in near if path != directory][:_MAX_TRIED]

    @cached_property
    def _by_path_without_numbers(self) -> dict[bytes, list[bytes]]:
        paths: dict[bytes, list[bytes]] = {}
        for path in self._files.directories:
            if (key := without_numbers(path)) != path:
                paths.setdefault(key, []).append(path)
        for of_key in paths.values():
            of_key.sort(key=numbers_in)
        return paths


def _version(archived: dict[bytes, ArchivedFile], name: bytes) -> ArchivedFile | None:
    """Returns the file of a directory whose name differs from `name` in its numbers only, or None."""
    key = without_numbers(name)
    if key == name:
        return None
    names = sorted((other for other in archived if without_numbers(other) == key), key=numbers_in)
    if not names:
        return None
    return archived[names[max(bisect_right(names, numbers_in(name), key=numbers_in) - 1, 0)]]


def _max_extents(size: int) -> int:
    return max(size // _BYTES_OF_EXTENT, 8)


def _composition(runs: list[tuple[int, int, int]], size: int, base: list[Extent]) -> Composition:
    """Returns the composition of a file of `size` bytes that shares runs with one whose extents are `base`.

    The file has new bytes, or bytes of several segments.
    """
    shared: list[Extent] = []
    new: list[tuple[int, int]] = []
    end = 0
    for begin, base_begin, count in runs:
        if begin > end:
            new.append((end, begin - end))
        shared += _extents_of_run(begin, base_begin, count, base)
        end = begin + count
    if size > end:
        new.append((end, size - end))
    if not new:
        last = shared.pop()
        kept = last.size - min(_LEAST_NEW, last.size)
        if kept:
            shared.append(last._replace(size=kept))
        new.append((last.file_offset + kept, last.size - kept))
    return Composition(shared, new)


def _extents_of_run(begin: int, base_begin: int, count: int, base: list[Extent]) -> Iterator[Extent]:
    """Yields the extents of `count` bytes which another file, whose extents are `base`, has at `base_begin`."""
    at = bisect_right(base, base_begin, key=lambda extent: extent.file_offset) - 1
    while count:
        extent = base[at]
        skip = base_begin - extent.file_offset
        size = min(extent.size - skip, count)
        yield Extent(begin, extent.stream_offset + skip, size)
        begin, base_begin, count, at = begin + size, base_begin + size, count - size, at + 1
