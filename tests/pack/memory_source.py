"""Sources in memory: entries with given content, and a source that fails after some of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from gompfs.pack.sources import Source, SourceEntry


class FailingSource(Source):
    """Yields a few valid entries, enough for compression to begin, and then raises an error."""

    name = "failing"
    sorted = True
    total_size = None

    def __init__(self, error: BaseException) -> None:
        self.warnings: list[str] = []
        self.skip_inodes: set[tuple[int, int]] = set()
        self._error = error

    def entries(self) -> Iterator[SourceEntry]:
        yield SourceEntry(b"", stat.S_IFDIR | 0o755)
        for number in range(12):
            yield MemoryEntry(b"%d" % number, stat.S_IFREG | 0o644, size=2 << 20, content=os.urandom(2 << 20))
        raise self._error


class MemoryEntry(SourceEntry):
    """A regular file with the given bytes."""

    def __init__(self, *arguments: object, content: bytes, **fields: object) -> None:
        super().__init__(*arguments, **fields)  # type: ignore[arg-type]
        self._content = content

    def read_at(self, file_offset: int, size: int) -> bytes:
        return self._content[file_offset : file_offset + size]
