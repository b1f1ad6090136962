r"""The statistic `sha256sums`: the SHA-256 of each regular file, as the program sha256sum writes and checks it.

No sum is stored: it would take more bytes than all the rest of the index, and would say what the bytes were when they
were packed, where the sum of the decoded bytes says what a reader gets. See docs/decisions/0039-sums-on-demand.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from gompfs._native.blocks import ReadFailure
from gompfs.errors import StatsUnavailableError, display_path
from gompfs.statistics.paths import sum_line
from gompfs.statistics.report import FirstLines, FixedReport, Report
from gompfs.threads import default_threads

if TYPE_CHECKING:
    from gompfs.archive import Archive
    from gompfs.statistics.query import StatsQuery
    from gompfs.statistics.source import StatsSource

_HEX_SIZE = 64
_NAMES_AT_ONCE = 4096
_FILES_AT_ONCE = 65536
_MOST_BYTES, _MOST_OF_BYTE = 1 << 40, 1 << 10  # in all, and for each byte of the archive: holes cost a file nothing


def sha256sums(source: StatsSource, query: StatsQuery) -> Report:
    """Returns a line for each regular file, sorted by path. A file with several names has a line for each.

    Raises what sums_of raises.
    """
    archive = source.archive
    if query.ino is not None:
        path = archive.path_of(query.ino) if query.path is None else query.path
        size = archive.inode(query.ino).size
        return FixedReport(sum_line(path, sums_of(archive, [(query.ino, size)])[query.ino]))
    report = _Sha256Sums(archive, query.prefix)
    return FirstLines(report, query.top) if query.top else report


def sums_of(archive: Archive, files: Sequence[tuple[int, int]]) -> dict[int, bytes]:
    """Returns the SHA-256 of files by inode number, in hexadecimal digits.

    `files` are pairs of an inode number and a size. Raises CorruptBlockError, CorruptIndexError, and
    StatsUnavailableError for files of tebibytes, which are mostly holes.
    """
    num_bytes = sum(size for _, size in files)
    if num_bytes > _MOST_BYTES + _MOST_OF_BYTE * archive.size:
        raise StatsUnavailableError(f"files of {num_bytes:,} bytes are too large to hash", archive=archive.path)
    sums: dict[int, bytes] = {}
    for first in range(0, len(files), _FILES_AT_ONCE):
        some = files[first : first + _FILES_AT_ONCE]
        found = archive.blocks.reader.hash_files(some, archive.engine.num_threads or default_threads())
        for (ino, _), digest in zip(some, found, strict=True):
            if isinstance(digest, ReadFailure):
                error = archive.read_error(ino, digest)
                error.path = display_path(archive.path_of(ino))
                raise error
            sums[ino] = digest.hex().encode()
    return sums


class _Sha256Sums(Report):
    """The lines of all files. The sums are computed once, in the order of the stream, when the first line is made."""

    def __init__(self, archive: Archive, prefix: bytes) -> None:
        """Paths begin with `prefix`."""
        self._archive = archive
        self._sizes = {ino: size for rows in archive.index.file_sizes() for ino, size in rows}
        paths = archive.paths()
        directories = {ino: prefix + (path + b"/" if path else b"") for ino, path in paths.items()}
        self._names = sorted(
            (directories[parent] + name, ino)
            for parent, name, ino in archive.index.names()
            if ino in self._sizes and parent in directories
        )

    @cached_property
    def size(self) -> int:
        """See Report.size."""
        empty = bytes(_HEX_SIZE)
        return sum(len(sum_line(path, empty)) for path, _ in self._names)

    @cached_property
    def _sums(self) -> dict[int, bytes]:
        from gompfs.archive.index_arrays import in_stream_order

        inos, same = in_stream_order(self._archive, {ino for _, ino in self._names})
        sums = sums_of(self._archive, [(ino, self._sizes[ino]) for ino in inos])
        return {ino: sums[other] for ino, other in same.items()}

    def __iter__(self) -> Iterator[bytes]:
        sums = self._sums
        for first in range(0, len(self._names), _NAMES_AT_ONCE):
            names = self._names[first : first + _NAMES_AT_ONCE]
            yield b"".join([sum_line(path, sums[ino]) for path, ino in names])
