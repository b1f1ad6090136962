"""Archives on a remote store, such as a web server: what fsspec supports, read in ranges."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from gompfs.forks import call_in_child
from gompfs.format import ArchiveFile, LocalFile

_TAIL_SIZE = 64 << 10


def open_url(url: str, options: Mapping[str, Any]) -> tuple[str, ArchiveFile]:
    """Returns the path of an archive in the store of a URL, and its opened file. `options` are those of the store.

    Raises the errors of the store, and ArchiveFormatError if it is no regular file.
    """
    store, path = url_to_fs(url, **options)
    return path, open_in(store, path)


def open_in(store: AbstractFileSystem, path: str) -> ArchiveFile:
    """Opens the archive at `path` of `store`: as a local file if the store is that of local files."""
    return LocalFile.open(path) if isinstance(store, LocalFileSystem) else RemoteFile(store, path)


class RemoteFile:
    """An archive on an fsspec store, read in ranges. Implements ArchiveFile.

    The end of the file is read on opening and kept, because it has the footer, and in a small archive the index too.
    """

    def __init__(self, store: AbstractFileSystem, path: str) -> None:
        """Open the file at `path` of `store`. Raises the errors of the store."""
        self._store = store
        self._path = path
        size = store.info(path)["size"]
        if size is None:
            raise OSError(errno.ESPIPE, "the store does not report the size of the archive", path)
        self._size = int(size)
        self._tail_start = max(self._size - _TAIL_SIZE, 0)
        self._is_inherited = False
        self._tail = self._fetch(self._tail_start, self._size)
        call_in_child(self, RemoteFile._inherit)

    def _inherit(self) -> None:
        """Called in a child of a fork, where stores that use threads do not work: a new store is needed."""
        self._is_inherited = True

    def size(self) -> int:
        """See ArchiveFile.size."""
        return self._size

    def read(self, size: int, archive_offset: int) -> bytes:
        """See ArchiveFile.read. Sends one request, or none if the range is in the kept end of the file."""
        end = min(archive_offset + size, self._size)
        middle = min(end, self._tail_start)
        content = self._fetch(archive_offset, middle) if archive_offset < middle else b""
        if end > self._tail_start:
            content += self._tail[max(archive_offset - self._tail_start, 0) : end - self._tail_start]
        return content

    def read_into(self, buffer: memoryview, archive_offset: int) -> int:
        """See ArchiveFile.read_into."""
        content = self.read(len(buffer), archive_offset)
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        """See ArchiveFile.close; the store belongs to fsspec."""

    def _fetch(self, start: int, end: int) -> bytes:
        if self._is_inherited:
            self._store = type(self._store)(*self._store.storage_args, **self._store.storage_options)
            self._is_inherited = False
        content: bytes = self._store.cat_file(self._path, start=start, end=end)
        if len(content) != end - start:
            sizes = f"{len(content)} bytes received instead of {end - start}"
            reason = f"{sizes}: the store ignores ranges, or the archive changed"
            raise OSError(errno.EIO, reason, self._path)
        return content
