"""A directory tree of the local file system, or one file of it, as a source.

The walk goes depth first, through the names of each directory in byte order. It accesses everything relative to an open
directory, so paths may be longer than PATH_MAX, and a directory that is renamed during the walk does no harm. At most
`_MAX_OPEN_DIRECTORIES` levels stay open. Closed levels are opened again through `..` and checked to be the same
directories.

The walk is ahead of the entries that the caller takes: threads of a FileLoader open, read and hash the next files, and
list the next directories. Files that are taken as unchanged are only opened. Waiting for each file of a source tree in
turn takes longer than packing it, above all if the tree is on another machine. Files that follow each other in a
directory are announced and taken together.
"""

from __future__ import annotations

import enum
import errno
import itertools
import os
import resource
import stat
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import TypeAlias, cast

from gompfs._native.sources import (
    AnnouncedDirectory,
    AnnouncedFiles,
    FileLoader,
    LoadedFiles,
    OpenDirectory,
    TreeContent,
)
from gompfs.errors import PackError, display_path
from gompfs.pack.sources.base import ArchivedFile, FileContent, FindArchived, Source, SourceEntry
from gompfs.pack.sources.exclude import ExcludeRules
from gompfs.pack.sources.file_run import FileRun
from gompfs.pack.sources.local_file import (
    MAX_WHOLE_SIZE,
    OPEN_FLAGS,
    LocalFileEntry,
    file_content,
    find_data_ranges,
    read_file_of_unknown_size,
    read_xattrs,
)

__all__ = ["DirectorySource", "FileSource"]

_MAX_OPEN_DIRECTORIES = 64
_ENTRIES_AHEAD = 256
_FILES_AT_ONCE = 64
_DIRECTORIES_AHEAD = 8  # of each level
_BYTES_AHEAD = 64 << 20
_MAX_THREADS = 64
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY
# Errors of opening a file that was replaced by a symlink, a socket or a FIFO after it was listed.
_TYPE_CHANGED = (errno.ELOOP, errno.ENXIO, errno.ENOTDIR)

_Status: TypeAlias = tuple[int, int, int, int, int, int, int, int]
_OddFile: TypeAlias = tuple[
    bytes, int, _Status, bool, bool, int, dict[bytes, bytes], memoryview | None, bytes | None, int
]  # see gompfs._native.sources.AnnouncedFiles.take


class _Kind(enum.IntEnum):
    DIRECTORY = 0
    REGULAR = 1
    OTHER = 2


@dataclass(slots=True)
class _Level:
    """One level of the walk. `directory` is None while it is closed."""

    prefix: bytes
    directory: OpenDirectory | None
    identity: tuple[int, int]
    groups: Iterator[tuple[int, list[bytes]]]
    """Kinds and names of the entries, in order. Only regular files are in groups of several."""
    directories: Iterator[bytes]
    """The names of directories that are not announced yet."""
    announced: dict[bytes, AnnouncedDirectory] = field(default_factory=dict)


_Pending = Callable[[], Iterator[SourceEntry | FileRun]]
"""Yields entries that were announced. Warns of those that are left out."""


class _LocalSource(Source):
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
        self._find_archived: FindArchived = lambda _: {}

    def skip_unchanged(self, find: FindArchived) -> None:
        """See `Source.skip_unchanged`."""
        self._find_archived = find

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
            entry = self._describe_open_file(descriptor, path, self._archived(path))
        except OSError as error:
            self._leave_out(path, error)
            entry = None
        if entry is None and descriptor >= 0:
            os.close(descriptor)
        return entry

    def _archived(self, path: bytes) -> ArchivedFile | None:
        directory, _, name = path.rpartition(b"/")
        return self._find_archived(directory).get(name)

    def _describe_open_file(self, descriptor: int, path: bytes, archived: ArchivedFile | None) -> LocalFileEntry | None:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            self._warn(path, "changed its type before it was read; left out")
            return None
        if self._is_skipped(status.st_dev, status.st_ino, path):
            return None
        first_name = self._first_name(status, path) if status.st_nlink > 1 else None
        content = read_file_of_unknown_size(descriptor) if status.st_size == 0 and first_name is None else None
        is_unchanged = archived is not None and content is None and archived[:2] == (status.st_size, status.st_mtime_ns)
        return LocalFileEntry(
            path,
            status.st_mode,
            status.st_uid,
            status.st_gid,
            status.st_mtime_ns,
            status.st_size if content is None else len(content),
            0,
            None,
            first_name,
            read_xattrs(descriptor),
            find_data_ranges(descriptor, status) if first_name is None and not is_unchanged else None,
            status.st_nlink > 1,
            archived_ino=archived.ino if archived is not None and is_unchanged else None,
            file_descriptor=descriptor,
            local_path=self._local_path(path),
            warnings=self.warnings,
            may_be_left_out=self._skip_unreadable,
            content=content,
        )

    def _is_skipped(self, device: int, number: int, path: bytes) -> bool:
        if (device, number) not in self.skip_inodes:
            return False
        self._warn(path, "is the archive; left out")
        return True

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

    def files(self) -> Iterator[FileContent]:
        """See Source.files."""
        size = self.total_size
        return iter([] if size is None else [file_content(os.path.realpath(self._file), size)])

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
        self._content: tuple[frozenset[tuple[int, int]], TreeContent] | None = None

    @property
    def total_size(self) -> int | None:
        """The total size of the regular files. The first access walks the tree."""
        return self._tree_content().size

    def files(self) -> Iterator[FileContent]:
        """See Source.files."""
        content = self._tree_content()
        yield FileContent(content.size, content.read)

    def _tree_content(self) -> TreeContent:
        """Walks the tree, again if other files are to be left out than the last time."""
        skipped = frozenset(self.skip_inodes)
        if self._content is None or self._content[0] != skipped:
            excludes = self._rules.excludes if self._rules else None
            how = self._one_file_system, sorted(skipped), excludes, _MAX_THREADS
            self._content = skipped, TreeContent(self._root, *how)
        return self._content[1]

    def entries(self) -> Iterator[SourceEntry]:
        """Yield the root first, then the tree. Raises PackError for an entry that cannot be read."""
        for item in self.items():
            if isinstance(item, FileRun):
                yield from item.entries()
            else:
                yield item

    def items(self) -> Iterator[SourceEntry | FileRun]:
        """See Source.items."""
        self._first_names.clear()
        most_open, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        num_ahead = _ENTRIES_AHEAD if most_open < 0 else min(_ENTRIES_AHEAD, most_open // 4)
        at_once = max(1, min(_FILES_AT_ONCE, num_ahead // 4))
        loader = FileLoader(MAX_WHOLE_SIZE, _BYTES_AHEAD, _MAX_THREADS, list(self.skip_inodes))
        pending: deque[tuple[int, _Pending]] = deque()
        num_pending = 0
        for num_entries, announced in self._walk(loader, at_once):
            pending.append((num_entries, announced))
            num_pending += num_entries
            while num_pending > max(num_ahead - at_once, 0):
                num_taken, first = pending.popleft()
                num_pending -= num_taken
                yield from first()
        while pending:
            yield from pending.popleft()[1]()

    def _walk(self, loader: FileLoader, at_once: int) -> Iterator[tuple[int, _Pending]]:
        """Yields numbers of entries, and the entries. At most `at_once` files are announced together."""
        levels: list[_Level] = []
        try:
            yield 1, partial(iter, (self._enter(loader, levels, self._root, b""),))
        except OSError as error:
            self._leave_out(b"", error)
            raise PackError("vanished before it was read", path=self._root) from error
        while levels:
            level = levels[-1]
            for kind, names in level.groups:
                if kind != _Kind.DIRECTORY:
                    yield from self._announce(loader, level, kind, names, at_once)
                    continue
                path = level.prefix + names[0]
                try:
                    entry = self._enter(loader, levels, names[0], path)
                except OSError as error:
                    yield 1, partial(self._left_out, path, error)
                    continue
                yield 1, partial(iter, (entry,))
                break
            else:
                self._leave(levels)

    def _announce(
        self, loader: FileLoader, level: _Level, kind: int, names: list[bytes], at_once: int
    ) -> Iterator[tuple[int, _Pending]]:
        """Announces entries of a directory that are no directories."""
        assert level.directory is not None
        if kind == _Kind.OTHER:
            yield 1, partial(self._other, level.directory, names[0], level.prefix + names[0])
            return
        archived = self._find_archived(level.prefix.removesuffix(b"/"))
        for start in range(0, len(names), at_once):
            some = names[start : start + at_once]
            announced = loader.load(level.directory, some, cast("dict[bytes, tuple[int, int, int]]", archived))
            yield len(some), partial(self._files, level.prefix, announced, archived)

    def _left_out(self, path: bytes, error: OSError) -> Iterator[SourceEntry]:
        self._leave_out(path, error)
        return iter(())

    def _other(self, directory: OpenDirectory, name: bytes, path: bytes) -> Iterator[SourceEntry]:
        entry = self._other_entry(name, path, directory.descriptor)
        return iter(() if entry is None else (entry,))

    def _files(
        self, prefix: bytes, announced: AnnouncedFiles, archived: dict[bytes, ArchivedFile]
    ) -> Iterator[SourceEntry | FileRun]:
        while (taken := announced.take()) is not None:
            if isinstance(taken, LoadedFiles):
                yield FileRun(prefix.removesuffix(b"/"), taken)
            elif (entry := self._odd_entry(prefix, taken, archived)) is not None:
                try:
                    yield entry
                finally:
                    entry.release()

    def _odd_entry(self, prefix: bytes, taken: _OddFile, archived: dict[bytes, ArchivedFile]) -> LocalFileEntry | None:
        """Returns the entry of a file that cannot be in a run, or None, with a warning, if it is left out."""
        name, error, status, has_xattrs, has_changed, descriptor, xattrs, content, sha256, archived_ino = taken
        path = prefix + name
        mode, uid, gid, seconds, nanoseconds, size, device, number = status
        entry = None
        try:
            if error:
                raise OSError(error, os.strerror(error))
            if content is None and not archived_ino:
                entry = self._describe_open_file(descriptor, path, archived.get(name))
            elif not self._is_skipped(device, number, path):
                mtime_ns = seconds * 10**9 + nanoseconds
                xattrs = read_xattrs(descriptor) if has_xattrs else xattrs
                entry = LocalFileEntry(path, mode, uid, gid, mtime_ns, size, xattrs=xattrs, may_be_linked=False)
                entry.sha256, entry.content, entry.has_changed = sha256, content, has_changed
                entry.archived_ino = archived_ino or None
                entry.local_path, entry.warnings = self._local_path(path), self.warnings
        except OSError as failure:
            self._leave_out(path, failure)
        finally:
            if descriptor >= 0 and (entry is None or entry.file_descriptor < 0):
                os.close(descriptor)
        return entry

    def _enter(self, loader: FileLoader, levels: list[_Level], name: bytes, path: bytes) -> SourceEntry:
        """Open a directory and push it. Returns its entry. Raises OSError."""
        prefix = path + b"/" if path else b""
        announced = self._announced_directory(loader, levels, name)
        error, status, has_xattrs, directory, names = announced.take()
        mode, uid, gid, seconds, nanoseconds, _, device, number = status
        if error:
            raise OSError(error, os.strerror(error))
        xattrs = read_xattrs(directory.descriptor) if has_xattrs else {}
        if self._rules:
            excludes = self._rules.excludes
            names = [(name, kind) for name, kind in names if not excludes(prefix + name, kind == _Kind.DIRECTORY)]
        directories = iter([name for name, kind in names if kind == _Kind.DIRECTORY])
        levels.append(_Level(prefix, directory, (device, number), _groups(names), directories))
        self._announce_directories(loader, levels)
        if len(levels) > _MAX_OPEN_DIRECTORIES:
            levels[-1 - _MAX_OPEN_DIRECTORIES].directory = None
        return SourceEntry(path, mode, uid, gid, seconds * 10**9 + nanoseconds, xattrs=xattrs, may_be_linked=False)

    def _announced_directory(self, loader: FileLoader, levels: list[_Level], name: bytes) -> AnnouncedDirectory:
        """Returns the result for the next directory of the last level, and announces those after it."""
        if not levels:
            return loader.list(None, name)
        level = levels[-1]
        if name not in level.announced:
            self._announce_directories(loader, levels, 1)
        announced = level.announced.pop(name)
        self._announce_directories(loader, levels)
        return announced

    def _announce_directories(self, loader: FileLoader, levels: list[_Level], least: int = 0) -> None:
        """Have the loader list the next directories of the last level, at least `least`."""
        level = levels[-1]
        assert level.directory is not None
        device = levels[0].identity[0] if self._one_file_system else None
        num_missing = max(_DIRECTORIES_AHEAD, least) - len(level.announced)
        for name in itertools.islice(level.directories, num_missing):
            level.announced[name] = loader.list(level.directory, name, device)

    def _leave(self, levels: list[_Level]) -> None:
        """Pop a finished directory, and open its parent again if that was closed."""
        done = levels.pop()
        if levels and levels[-1].directory is None:
            assert done.directory is not None
            self._reopen(levels[-1], done.directory.descriptor)

    def _reopen(self, level: _Level, child: int) -> None:
        path = self._local_path(level.prefix)
        try:
            level.directory = OpenDirectory(os.open(b"..", _DIRECTORY_FLAGS, dir_fd=child))
            status = os.fstat(level.directory.descriptor)
        except OSError as error:
            raise PackError(f"cannot return to the directory: {error.strerror}", path=path) from error
        if (status.st_dev, status.st_ino) != level.identity:
            raise PackError("the directory was moved while it was read", path=path)


def _groups(names: list[tuple[bytes, int]]) -> Iterator[tuple[int, list[bytes]]]:
    """Yields kinds and names: regular files that follow each other together, all else one by one."""
    for kind, group in itertools.groupby(names, key=itemgetter(1)):
        if kind == _Kind.REGULAR:
            yield kind, [name for name, _ in group]
        else:
            for name, _ in group:
                yield kind, [name]
