"""Regular files of the local file system: metadata from an open descriptor, content, holes, extended attributes.

A file is opened before its entry is created, so one that has vanished or cannot be read is detected before its entry is
yielded. Its content is in memory, or it is closed when the next entry is taken.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from typing import BinaryIO, cast

from gompfs._native.sources import read_range
from gompfs.errors import PackError, UnreadableFileError, display_path
from gompfs.pack.sources.base import ContentStream, SourceEntry
from gompfs.threads import default_threads

__all__ = [
    "MAX_WHOLE_SIZE",
    "OPEN_FLAGS",
    "LocalFileEntry",
    "find_data_ranges",
    "read_file_of_unknown_size",
    "read_xattrs",
]

MAX_WHOLE_SIZE = 4 << 20
"""Files of up to this size are read whole."""

_MAX_UNKNOWN_SIZE = 256 << 20
_PIECE_SIZE = 1 << 20
# O_NONBLOCK and O_NOFOLLOW: the name may have become a FIFO or a symlink since the directory was listed.
OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
STAT_BLOCK_SIZE = 512
_NO_XATTRS = (errno.ENOTSUP, errno.ENODATA, errno.EPERM, errno.EACCES)


@dataclass(slots=True)
class LocalFileEntry(SourceEntry):
    """A regular file, open as `file_descriptor` until `release`, or with its `content` in memory.

    `has_changed` says whether the file changed while its content was read; `read_end` is where a read has met the end
    of the file, if it came too early. If `may_be_left_out` is set, a failed read raises UnreadableFileError instead of
    PackError.
    """

    file_descriptor: int = -1
    local_path: bytes = b""
    warnings: list[str] = field(default_factory=list)
    was_read: bool = False
    may_be_left_out: bool = False
    content: memoryview | None = None
    has_changed: bool = False
    read_end: int | None = None

    @property
    def can_reopen(self) -> bool:
        """Always True."""
        return True

    def read_at(self, file_offset: int, size: int) -> bytes:
        """See `SourceEntry.read_at`. If the file has shrunk since it was opened, the missing bytes are zeros."""
        if self.content is not None:
            self.was_read = True
            return bytes(self.content[file_offset : file_offset + size])
        if self.file_descriptor < 0:
            raise PackError("was not read before the next entry was taken", path=self.local_path)
        self.was_read = True
        data = self._read_some(file_offset, size)
        if len(data) == size:
            return data
        pieces = [data]
        missing = size - len(data)
        while missing and data:
            data = self._read_some(file_offset + size - missing, missing)
            pieces.append(data)
            missing -= len(data)
        if missing:
            self._note_end(file_offset + size - missing)
            pieces.append(bytes(missing))
        return b"".join(pieces)

    def read_all(self) -> bytes | memoryview:
        """Returns the whole content, with one system call if it is not in memory."""
        if self.content is None:
            return self.read_at(0, self.size)
        self.was_read = True
        return self.content

    def read_into(self, file_offset: int, memory: memoryview) -> int:
        """Writes the bytes from `file_offset` on to `memory`, on several threads. Returns their number.

        `memory` must not reach beyond the end of the file. If the file has shrunk, the missing bytes are zeros.
        """
        if self.content is not None or self.file_descriptor < 0:
            data = self.read_at(file_offset, min(len(memory), _PIECE_SIZE))
            memory[: len(data)] = data
            return len(data)
        self.was_read = True
        try:
            missing = read_range(self.file_descriptor, file_offset, memory, default_threads())
        except OSError as error:
            raise self._unreadable(error) from error
        if missing:
            self._note_end(file_offset + len(memory) - missing)
        return len(memory)

    def open(self) -> BinaryIO:
        """See `SourceEntry.open`."""
        if not self.has_content:
            return SourceEntry.open(self)
        return cast(BinaryIO, ContentStream(self.read_at, self.size, self.read_into))

    def _read_some(self, file_offset: int, size: int) -> bytes:
        try:
            return os.pread(self.file_descriptor, size, file_offset)
        except OSError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: OSError) -> PackError:
        kind = UnreadableFileError if self.may_be_left_out else PackError
        return kind(f"cannot read: {error.strerror}", path=self.local_path)

    def _note_end(self, file_offset: int) -> None:
        self.read_end = file_offset if self.read_end is None else min(self.read_end, file_offset)

    def _warn(self, text: str) -> None:
        self.warnings.append(f"{display_path(self.local_path)}: {text}")

    def release(self) -> None:
        """Close the file. Warn if it has changed since its metadata was read."""
        has_known_size = self.content is None
        descriptor, self.file_descriptor, self.content = self.file_descriptor, -1, None
        if descriptor >= 0:
            now = os.fstat(descriptor)
            os.close(descriptor)
            if has_known_size:
                self.has_changed = now.st_mtime_ns != self.mtime_ns or now.st_size != self.size
        if self.read_end is not None:
            self._warn(f"file shrank by {self.size - self.read_end} bytes; padded with zeros")
            self.read_end = None
        if self.was_read and self.has_changed:
            self._warn("file changed as we read it")


def read_file_of_unknown_size(descriptor: int) -> memoryview | None:
    """Returns the content of a file whose size is 0 in its metadata, as in /proc; None if it has none, as usual.

    Raises OSError (EFBIG) if there is more of it than fits into memory well.
    """
    try:
        has_content = bool(os.pread(descriptor, 1, 0))
    except OSError:  # such as EAGAIN of a file that has nothing to read now
        has_content = False
    if not has_content:
        return None
    content = bytearray()
    while piece := os.pread(descriptor, _PIECE_SIZE, len(content)):
        content += piece
        if len(content) > _MAX_UNKNOWN_SIZE:
            raise OSError(errno.EFBIG, "its size is given as 0, but it has more than 256 MiB")
    return memoryview(content)


def find_data_ranges(descriptor: int, status: os.stat_result) -> list[tuple[int, int]] | None:
    """Returns the (file_offset, size) of the data ranges of a sparse file, or None if the whole file may hold data."""
    size = status.st_size
    if status.st_blocks * STAT_BLOCK_SIZE >= size:
        return None
    ranges: list[tuple[int, int]] = []
    range_end = 0
    while range_end < size:
        try:
            range_start = os.lseek(descriptor, range_end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole up to the end
                break
            if error.errno == errno.EINVAL:  # the file system does not support SEEK_DATA
                return None
            raise
        range_end = min(os.lseek(descriptor, range_start, os.SEEK_HOLE), size)
        if range_start < range_end:
            ranges.append((range_start, range_end - range_start))
    return None if ranges == [(0, size)] else ranges


def read_xattrs(target: int | bytes) -> dict[bytes, bytes]:
    """Returns all readable extended attributes of an open file, or of a path without following symlinks."""
    follow = isinstance(target, int)
    try:
        names = os.listxattr(target, follow_symlinks=follow)
    except OSError as error:
        if error.errno in _NO_XATTRS:
            return {}
        raise
    xattrs = {}
    for name in names:
        try:
            xattrs[os.fsencode(name)] = os.getxattr(target, name, follow_symlinks=follow)
        except OSError as error:
            if error.errno not in _NO_XATTRS:
                raise
    return xattrs
