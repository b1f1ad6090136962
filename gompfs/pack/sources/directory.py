"""A directory tree of the local file system, or one file of it, as a source.

The walk goes depth first, through the names of each directory in byte order. It accesses everything relative to an open
directory, so paths may be longer than PATH_MAX, and a directory that is renamed during the walk does no harm. At most
`_MAX_OPEN_DIRECTORIES` levels stay open. Closed levels are opened again through `..` and checked to be the same
directories.

The kernel is asked to read the next files of a directory while the caller works on others: waiting for each file of a
source tree in turn takes longer than packing it.
"""

from __future__ import annotations

import enum
import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from gompfs.errors import PackError, display_path
from gompfs.pack.sources.base import SourceEntry
from gompfs.pack.sources.exclude import ExcludeRules
from gompfs.pack.sources.local_file import OPEN_FLAGS, LocalFileEntry, find_data_ranges, read_xattrs

__all__ = ["DirectorySource", "FileSource"]

_MAX_OPEN_DIRECTORIES = 64
_FILES_AHEAD = 32
_BYTES_AHEAD = 1 << 20  # of each file
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY
_ENCODING = sys.getfilesystemencoding()
# Errors of opening a file that was replaced by a symlink, a socket or a FIFO after it was listed.
_TYPE_CHANGED = (errno.ELOOP, errno.ENXIO, errno.ENOTDIR)


class _Kind(enum.IntEnum):
    DIRECTORY = 0
    REGULAR = 1
    OTHER = 2


@dataclass(slots=True)
class _OpenDirectory:
    """One level of the walk: its path prefix and the remaining names. `descriptor` is -1 while it is closed."""

    prefix: bytes
    descriptor: int
    identity: tuple[int, int]
    names: Iterator[tuple[bytes, _Kind]]


class _LocalSource:
    """The common part of the local sources: turns names into entries."""

    sorted = True

    def __init__(self, root: bytes, skip_unreadable: bool) -> None:
        self.name = display_path(root)
        self.warnings: list[str] = []
        self.skip_inodes: set[tuple[int, int]] = set()
        self._root = root
        self._prefix = os.path.join(root, b"")
        self._skip_unreadable = skip_unreadable
        self._first_names: dict[tuple[int, int], bytes] = {}

    def _local_path(self, path: bytes) -> bytes:
        return self._prefix + path if path else self._root

    def _warn(self, path: bytes, text: str) -> None:
        self.warnings.append(f"{display_path(self._local_path(path))}: {text}")

    def _leave_out(self, path: bytes, error: OSError) -> None:
        """Warn of an entry that cannot be read, or raise PackError if that must stop the pack."""
        if error.errno == errno.ENOENT:
            self._warn(path, "vanished before it was read; left out")
        elif error.errno in _TYPE_CHANGED:
            self._warn(path, "changed its type before it was read; left out")
        elif self._skip_unreadable:
            self._warn(path, f"cannot read: {error.strerror}; left out")
        else:
            raise PackError(f"cannot read: {error.strerror}", path=self._local_path(path)) from error

    def _regular_entry(self, name: bytes, path: bytes, directory: int | None) -> LocalFileEntry | None:
        """Open a regular file. The caller releases the entry. Returns None, with a warning, if it is left out."""
        descriptor = -1
        try:
            descriptor = os.open(name, OPEN_FLAGS, dir_fd=directory)
            entry = self._describe_open_file(descriptor, path)
        except OSError as error:
            self._leave_out(path, error)
            entry = None
        if entry is None and descriptor >= 0:
            os.close(descriptor)
        return entry

    def _describe_open_file(self, descriptor: int, path: bytes) -> LocalFileEntry | None:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            self._warn(path, "changed its type before it was read; left out")
            return None
        if self.skip_inodes and (status.st_dev, status.st_ino) in self.skip_inodes:
            self._warn(path, "is the archive; left out")
            return None
        first_name = self._first_name(status, path) if status.st_nlink > 1 else None
        return LocalFileEntry(
            path,
            status.st_mode,
            status.st_uid,
            status.st_gid,
            status.st_mtime_ns,
            status.st_size,
            0,
            None,
            first_name,
            read_xattrs(descriptor),
            find_data_ranges(descriptor, status) if first_name is None else None,
            status.st_nlink > 1,
            descriptor,
            self._local_path(path),
            self.warnings,
            may_be_left_out=self._skip_unreadable,
        )

    def _first_name(self, status: os.stat_result, path: bytes) -> bytes | None:
        """Returns the earlier path of an inode with several names, or None if this is its first path."""
        first = self._first_names.setdefault((status.st_dev, status.st_ino), path)
        return None if first is path else first

    def _other_entry(self, name: bytes, path: bytes, directory: int | None) -> SourceEntry | None:
        """Returns the entry of a symlink, FIFO or device, or None, with a warning, if it is left out."""
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if stat.S_ISSOCK(status.st_mode):
                self._warn(path, "socket ignored")
                return None
            is_link = stat.S_ISLNK(status.st_mode)
            target = os.readlink(name, dir_fd=directory) if is_link else None
            # No call lists extended attributes relative to a directory, but its descriptor has a path in /proc.
            xattrs = read_xattrs(name if directory is None else b"/proc/self/fd/%d/%s" % (directory, name))
        except OSError as error:
            self._leave_out(path, error)
            return None
        return SourceEntry(
            path=path,
            mode=status.st_mode,
            uid=status.st_uid,
            gid=status.st_gid,
            mtime_ns=status.st_mtime_ns,
            size=0 if target is None else len(target),
            rdev=status.st_rdev,
            symlink_target=target,
            hard_link_to=self._first_name(status, path) if status.st_nlink > 1 else None,
            xattrs=xattrs,
            may_be_linked=status.st_nlink > 1,
        )


class FileSource(_LocalSource):
    """One regular file, under its base name. If `file` is a symlink, it is followed."""

    def __init__(self, file: bytes, *, skip_unreadable: bool = False) -> None:
        """`file` need not exist before `entries` is called."""
        super().__init__(os.path.dirname(file), skip_unreadable)
        self.name = display_path(file)
        self._file = file

    @property
    def total_size(self) -> int | None:
        """The size of the file, or None if it cannot be read."""
        try:
            return os.stat(self._file).st_size
        except OSError:
            return None

    def entries(self) -> Iterator[SourceEntry]:
        """Yield the file. Raises PackError if it cannot be read."""
        entry = self._regular_entry(os.path.realpath(self._file), os.path.basename(self._file), None)
        if entry is not None:
            try:
                yield entry
            finally:
                entry.release()


class DirectorySource(_LocalSource):
    """A directory with everything below it. The directory becomes the root."""

    def __init__(
        self,
        root: bytes,
        *,
        rules: ExcludeRules | None = None,
        one_file_system: bool = False,
        skip_unreadable: bool = False,
    ) -> None:
        """With `one_file_system`, mount points are packed as empty directories."""
        super().__init__(root, skip_unreadable)
        self._rules = rules or ExcludeRules()
        self._one_file_system = one_file_system
        self._total_size: int | None = None

    @property
    def total_size(self) -> int | None:
        """The total size of the regular files, counting each name. The first access walks the tree."""
        if self._total_size is None:
            self._total_size = self._measure(self._root, b"")
        return self._total_size

    def _measure(self, directory: bytes, prefix: bytes) -> int:
        total = 0
        try:
            with os.scandir(directory) as listing:
                for item in listing:
                    path = prefix + item.name
                    is_directory = item.is_dir(follow_symlinks=False)
                    if self._rules and self._rules.excludes(path, is_directory):
                        continue
                    if is_directory:
                        total += self._measure(item.path, path + b"/")
                    elif item.is_file(follow_symlinks=False):
                        total += item.stat(follow_symlinks=False).st_size
        except OSError:
            return total  # only an estimate for progress: the walk reports unreadable directories
        return total

    def entries(self) -> Iterator[SourceEntry]:
        """Yield the root first, then the tree. Raises PackError for an entry that cannot be read."""
        levels: list[_OpenDirectory] = []
        self._first_names.clear()
        try:
            root_entry = self._enter(levels, self._root, b"")
            if root_entry is None:
                raise PackError("vanished before it was read", path=self._root)
            yield root_entry
            yield from self._walk(levels)
        finally:
            for level in levels:
                _close(level)

    def _walk(self, levels: list[_OpenDirectory]) -> Iterator[SourceEntry]:
        while levels:
            level = levels[-1]
            for name, kind in level.names:
                path = level.prefix + name
                if kind is _Kind.REGULAR:
                    file = self._regular_entry(name, path, level.descriptor)
                    if file is not None:
                        try:
                            yield file
                        finally:
                            file.release()
                elif kind is _Kind.OTHER:
                    entry = self._other_entry(name, path, level.descriptor)
                    if entry is not None:
                        yield entry
                else:
                    entry = self._enter(levels, name, path)
                    if entry is not None:
                        yield entry
                        break
            else:
                self._leave(levels)

    def _enter(self, levels: list[_OpenDirectory], name: bytes, path: bytes) -> SourceEntry | None:
        """Open a directory and push it. Returns its entry, or None, with a warning, if it is left out."""
        parent = levels[-1] if levels else None
        flags = _DIRECTORY_FLAGS | (os.O_NOFOLLOW if parent else 0)
        prefix = path + b"/" if path else b""
        descriptor = -1
        try:
            descriptor = os.open(name, flags, dir_fd=parent.descriptor if parent else None)
            status = os.fstat(descriptor)
            xattrs = read_xattrs(descriptor)
            is_boundary = self._one_file_system and levels and status.st_dev != levels[0].identity[0]
            names = [] if is_boundary else self._list_names(descriptor, prefix)
        except OSError as error:
            if descriptor >= 0:
                os.close(descriptor)
            self._leave_out(path, error)
            return None
        level = _OpenDirectory(prefix, descriptor, (status.st_dev, status.st_ino), iter(()))
        level.names = _with_read_ahead(level, names)
        levels.append(level)
        if len(levels) > _MAX_OPEN_DIRECTORIES:
            _close(levels[-1 - _MAX_OPEN_DIRECTORIES])
        return SourceEntry(
            path,
            status.st_mode,
            status.st_uid,
            status.st_gid,
            status.st_mtime_ns,
            xattrs=xattrs,
            may_be_linked=False,
        )

    def _list_names(self, descriptor: int, prefix: bytes) -> list[tuple[bytes, _Kind]]:
        """Returns the names of an open directory that are not excluded."""
        names = _list_names(descriptor)
        if not self._rules:
            return names
        excludes = self._rules.excludes
        return [(name, kind) for name, kind in names if not excludes(prefix + name, kind is _Kind.DIRECTORY)]

    def _leave(self, levels: list[_OpenDirectory]) -> None:
        """Pop a finished directory, and open its parent again if that was closed."""
        done = levels.pop()
        try:
            if levels and levels[-1].descriptor < 0:
                self._reopen(levels[-1], done.descriptor)
        finally:
            _close(done)

    def _reopen(self, level: _OpenDirectory, child: int) -> None:
        path = self._local_path(level.prefix)
        try:
            level.descriptor = os.open(b"..", _DIRECTORY_FLAGS, dir_fd=child)
            status = os.fstat(level.descriptor)
        except OSError as error:
            raise PackError(f"cannot return to the directory: {error.strerror}", path=path) from error
        if (status.st_dev, status.st_ino) != level.identity:
            raise PackError("the directory was moved while it was read", path=path)


def _list_names(descriptor: int) -> list[tuple[bytes, _Kind]]:
    """Returns the names of an open directory in byte order, with the kind of each."""
    names = []
    with os.scandir(descriptor) as listing:
        for item in listing:
            if item.is_file(follow_symlinks=False):
                kind = _Kind.REGULAR
            elif item.is_dir(follow_symlinks=False):
                kind = _Kind.DIRECTORY
            else:
                kind = _Kind.OTHER
            names.append((item.name.encode(_ENCODING, "surrogateescape"), kind))
    names.sort()
    return names


def _with_read_ahead(level: _OpenDirectory, names: list[tuple[bytes, _Kind]]) -> Iterator[tuple[bytes, _Kind]]:
    """Yields the names of a directory. Has the kernel read files some time before their names are taken."""
    for index, item in enumerate(names):
        if index % _FILES_AHEAD == 0:
            start = index + _FILES_AHEAD if index else 0
            for name, kind in names[start : index + 2 * _FILES_AHEAD]:
                if kind is _Kind.REGULAR:
                    _read_ahead(level.descriptor, name)
        yield item


def _read_ahead(directory: int, name: bytes) -> None:
    with suppress(OSError):  # whoever reads the file reports what is wrong
        descriptor = os.open(name, OPEN_FLAGS, dir_fd=directory)
        try:
            os.posix_fadvise(descriptor, 0, _BYTES_AHEAD, os.POSIX_FADV_WILLNEED)
        finally:
            os.close(descriptor)


def _close(level: _OpenDirectory) -> None:
    descriptor, level.descriptor = level.descriptor, -1
    if descriptor >= 0:
        os.close(descriptor)
