"""What was fetched of a remote file, in a sparse file in the user's cache folder.

The file has a table with the XXH3-64 of each chunk, and after the table the chunks, each at its place. A chunk is
written first, its checksum after it. A chunk counts only if it matches its checksum, whenever it is read. So a process
may be killed while it writes, a disk may lose what was not written yet, several processes may write the same chunk, and
another process may empty the file at any time: each chunk is either right or missing.

The cached files of a user together have a limit. A process that exceeds it empties those that were opened longest ago.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from contextlib import suppress
from struct import pack, unpack

from xxhash import xxh3_64_intdigest

from gompfs.options import parse_size

CHUNK_SIZE = 64 << 10
_ENTRY_SIZE = 8
_PAGE = 4096
_DEFAULT_LIMIT = "10G"
_CHECKED_AFTER = 16 << 20  # bytes that a process adds between two checks of the limit, at most


class ChunkCache:
    """The cached chunks of one file of `size` bytes. Thread-safe, and safe for several processes.

    `key` names all that the content depends on. If it is None, nothing says whether a file is the same as another time,
    so what is cached belongs to this object alone.
    """

    def __init__(self, key: str | None, size: int) -> None:
        """Open the file in the cache folder, or a file without a name if `key` is None or there is no folder."""
        self._size = size
        num_chunks = -(-size // CHUNK_SIZE)
        self._data_start = -(-num_chunks * _ENTRY_SIZE // _PAGE) * _PAGE
        self._limit = parse_size(os.environ.get("GOMPFS_CACHE_SIZE", _DEFAULT_LIMIT), "GOMPFS_CACHE_SIZE")
        self._unchecked = 0
        self._folder = cache_folder()
        self._descriptor = -1 if key is None else self._open(hashlib.sha256(key.encode()).hexdigest()[:40])
        if self._descriptor < 0:
            with tempfile.TemporaryFile() as file:
                self._descriptor = os.dup(file.fileno())
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)  # see _empty_oldest
        self._identity = os.fstat(self._descriptor).st_ino

    def _open(self, name: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            status = os.stat(self._folder)
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                return -1  # of another user, whose content is not trusted: root may have the home of a user, by sudo
            descriptor = os.open(os.path.join(self._folder, name), flags, 0o600)
            os.utime(descriptor)
        except OSError:
            return -1  # a home that is read-only, or full
        return descriptor

    def load(self, first: int, end: int) -> list[bytes | None]:
        """Returns the chunks from `first` to before `end`; None for those that are missing."""
        sums = self._sums(first, end)
        chunks: list[bytes | None] = []
        for number, checksum in enumerate(sums, first):
            chunk = None
            if checksum:
                with suppress(OSError):
                    chunk = os.pread(self._descriptor, self.chunk_size(number), self._position(number))
            chunks.append(chunk if chunk is not None and _checksum(chunk) == checksum else None)
        return chunks

    def missing(self, first: int, end: int) -> list[int]:
        """Returns the chunks from `first` to before `end` that were never written. Others may be missing too."""
        return [number for number, checksum in enumerate(self._sums(first, end), first) if not checksum]

    def store(self, number: int, chunk: bytes | memoryview) -> None:
        """Write a chunk. If the disk is full, it stays missing."""
        with suppress(OSError):
            os.pwrite(self._descriptor, chunk, self._position(number))
            os.pwrite(self._descriptor, pack("<Q", _checksum(chunk)), number * _ENTRY_SIZE)
        self._unchecked += len(chunk)
        if self._unchecked >= min(_CHECKED_AFTER, self._limit // 8):
            self._unchecked = 0
            self._keep_limit()

    def chunk_size(self, number: int) -> int:
        """Returns the size of a chunk: the last one may be shorter."""
        return min(CHUNK_SIZE, self._size - number * CHUNK_SIZE)

    def close(self) -> None:
        """Release the file. A second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _position(self, number: int) -> int:
        return self._data_start + number * CHUNK_SIZE

    def _sums(self, first: int, end: int) -> tuple[int, ...]:
        try:
            table = os.pread(self._descriptor, (end - first) * _ENTRY_SIZE, first * _ENTRY_SIZE)
        except OSError:
            table = b""
        return unpack(f"<{end - first}Q", table.ljust((end - first) * _ENTRY_SIZE, b"\0"))

    def _keep_limit(self) -> None:
        """Empty files until all together have at most nine tenths of the limit: first others, then this one."""
        with suppress(OSError):
            os.utime(self._descriptor)
        own = _disk_size(os.fstat(self._descriptor))
        total, others = own, []
        with suppress(OSError), os.scandir(self._folder) as scan:
            for entry in scan:
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_ino != self._identity:
                        others.append((status.st_mtime_ns, entry.path, _disk_size(status)))
                        total += _disk_size(status)
        if total <= self._limit:
            return
        for _, path, size in sorted(others):
            if total > self._limit * 9 // 10:
                _empty(path)
                total -= size
        if total > self._limit:
            with suppress(OSError):
                os.ftruncate(self._descriptor, 0)


def cache_folder() -> str:
    """Returns the folder for chunks of remote archives, whether it exists or not."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join("/", base, "gompfs", "remote")  # from the root directory if there is no home


def _checksum(chunk: bytes | memoryview) -> int:
    return xxh3_64_intdigest(chunk) or 1  # 0 stands for none


def _disk_size(status: os.stat_result) -> int:
    return status.st_blocks * 512


def _empty(path: str) -> None:
    """Free the disk space of a cached file, and remove it unless a process has it open."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.ftruncate(descriptor, 0)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        finally:
            os.close(descriptor)
