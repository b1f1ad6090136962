"""Files that are taken from a source together: most files of a tree, for which Python does no work one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gompfs._native.sources import LoadedFiles
from gompfs.pack.sources.local_file import LocalFileEntry

__all__ = ["FileRun"]


@dataclass(slots=True)
class FileRun:
    """Regular files of one directory, in the order of their names. Their contents are in memory, or in the archive.

    They have no other names. Those in memory have no holes, and did not change while they were read.
    """

    directory: bytes
    files: LoadedFiles

    def entries(self) -> Iterator[LocalFileEntry]:
        """Yields an entry for each file. Its content can be read until the next entry is taken."""
        prefix = self.directory + b"/" if self.directory else b""
        for name, status, xattrs, content, sha256, archived_ino in self.files.describe():
            mode, uid, gid, seconds, nanoseconds, size, *_ = status
            mtime_ns = seconds * 10**9 + nanoseconds
            entry = LocalFileEntry(prefix + name, mode, uid, gid, mtime_ns, size, xattrs=xattrs, may_be_linked=False)
            entry.content, entry.sha256, entry.archived_ino = content, sha256, archived_ino or None
            try:
                yield entry
            finally:
                entry.release()
