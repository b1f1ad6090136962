"""Directory trees of the local file system, or one file of it, as a source.

The walk goes depth first, through the names of each directory in byte order; directories that are versions of each
other are walked side by side (versions.py), also if each is a SOURCE of its own. It accesses everything relative to an
open directory, so paths may be longer than PATH_MAX, and a directory that is renamed during the walk does no harm. At
most `_MAX_OPEN_LEVELS` levels of a single directory stay open. Closed levels are opened again through `..` and checked
to be the same directories.

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
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias, cast

from gompfs._native.sources import (
    AnnouncedDirectory,
    AnnouncedFiles,
    FileLoader,
    LoadedFiles,
    OpenDirectory,
    size_of_tree,
)
from gompfs.errors import PackError, display_path
from gompfs.pack.sources.base import ArchivedFile, FindArchived, Source, SourceEntry
from gompfs.pack.sources.exclude import ExcludeRules
from gompfs.pack.sources.file_run import FileRun
from gompfs.pack.sources.local_file import (
    MAX_WHOLE_SIZE,
    OPEN_FLAGS,
    LocalFileEntry,
    find_data_ranges,
    read_file_of_unknown_size,
    read_xattrs,
)
from gompfs.pack.sources.versions import Order, Step

__all__ = ["DirectorySource", "FileSource", "LocalSource"]

_MAX_OPEN_LEVELS = 64
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
class _Root:
    """A directory where a walk begins. Paths below it have `prefix_size` bytes more in the archive."""

    prefix_size: int
    device: int = 0


@dataclass(slots=True)
class _Directory:
    """A directory of the walk. `opened` is None while it is closed."""

    prefix: bytes
    root: _Root
    opened: OpenDirectory | None
    identity: tuple[int, int]
    listing: list[tuple[bytes, int]]


@dataclass(slots=True)
class _Level:
    """One level of the walk: a directory, or several that are walked side by side."""

    directories: list[_Directory]
    steps: Iterator[Step]
    unannounced: Iterator[tuple[int, bytes]]
    """The directories below that are not announced yet, as (number in `directories`, name)."""
    announced: dict[tuple[int, bytes], AnnouncedDirectory] = field(default_factory=dict)


_Pending = Callable[[], Iterator[SourceEntry | FileRun]]
"""Yields entries that were announced. Warns of those that are left out."""


class LocalSource(Source):
    """The common part of the local sources: turns names into entries."""

    sorted = True

    def __init__(self, path: bytes, name: bytes, skip_unreadable: bool) -> None:
        """`name` is the path in the archive: empty if a directory is the root of the archive."""
        self.name = display_path(path)
        self.warnings: list[str] = []
        self.skip_inodes: set[tuple[int, int]] = set()
        self._paths = {name: path}
        self._skip_unreadable = skip_unreadable
        self._first_names: dict[tuple[int, int], bytes] = {}
        self._find_archived: FindArchived = lambda _: {}

    def skip_unchanged(self, find: FindArchived) -> None:
        """See `Source.skip_unchanged`."""
        self._find_archived = find

    @property
    def names(self) -> Collection[bytes]:
        """The paths in the archive of the file or the directories that the walk begins with."""
        return self._paths.keys()

    def _local_path(self, path: bytes) -> bytes:
        name = path.partition(b"/")[0]
        name = name if name in self._paths else b""
        below = path[len(name) :].lstrip(b"/")
        return os.path.join(self._paths[name], below) if below else self._paths[name]

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


class FileSource(LocalSource):
    """One regular file, under its base name. If `file` is a symlink, it is followed."""

    def __init__(self, file: bytes, *, skip_unreadable: bool = False) -> None:
        """`file` need not exist before `entries` is called."""
        super().__init__(file, os.path.basename(file), skip_unreadable)
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


class DirectorySource(LocalSource):
    """A directory with everything below it, or several directories, each of which has a name in the archive."""

    def __init__(
        self,
        path: bytes,
        name: bytes = b"",
        *,
        rules: ExcludeRules | None = None,
        one_file_system: bool = False,
        skip_unreadable: bool = False,
    ) -> None:
        """The directory becomes the root of the archive, or the directory `name`.

        With `one_file_system`, mount points are packed as empty directories.
        """
        super().__init__(path, name, skip_unreadable)
        self._rules = rules or ExcludeRules()
        self._one_file_system = one_file_system

    @property
    def total_size(self) -> int | None:
        """The total size of the regular files. Each access walks the trees."""
        excludes = self._rules.excludes if self._rules else None
        how = self._one_file_system, sorted(self.skip_inodes), excludes, _MAX_THREADS
        return sum(size_of_tree(path, *how) for path in self._paths.values())

    def join(self, other: DirectorySource) -> None:
        """Walk the directories of `other`, too. All have names in the archive, each another."""
        self._paths |= other._paths

    def entries(self) -> Iterator[SourceEntry]:
        """Yield each directory first, then its tree. Raises PackError for an entry that cannot be read."""
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
        listing = [(name, int(_Kind.DIRECTORY)) for name in self._paths]
        for step in Order([listing], _Kind.DIRECTORY, 0).steps():
            roots: list[_Directory] = []
            for _, name in step.names:
                yield 1, self._open_root(loader, name, roots)
            levels: list[_Level] = []
            self._enter(loader, levels, roots)
            yield from self._walk_below(loader, levels, at_once)

    def _walk_below(self, loader: FileLoader, levels: list[_Level], at_once: int) -> Iterator[tuple[int, _Pending]]:
        while levels:
            level = levels[-1]
            for step in level.steps:
                if step.kind != _Kind.DIRECTORY:
                    yield from self._announce(loader, level, step, at_once)
                    continue
                below: list[_Directory] = []
                for place in step.names:
                    yield 1, self._open_below(loader, levels, place, below)
                if below:
                    self._enter(loader, levels, below)
                    break
            else:
                self._leave(levels)

    def _announce(self, loader: FileLoader, level: _Level, step: Step, at_once: int) -> Iterator[tuple[int, _Pending]]:
        """Announces entries of a directory that are no directories."""
        directory = level.directories[step.names[0][0]]
        names = [name for _, name in step.names]
        assert directory.opened is not None
        if step.kind == _Kind.OTHER:
            for name in names:
                yield 1, partial(self._other, directory.opened, name, directory.prefix + name)
            return
        archived = self._find_archived(directory.prefix.removesuffix(b"/"))
        for start in range(0, len(names), at_once):
            some = names[start : start + at_once]
            announced = loader.load(directory.opened, some, cast("dict[bytes, tuple[int, int, int]]", archived))
            yield len(some), partial(self._files, directory.prefix, announced, archived)

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

    def _open_root(self, loader: FileLoader, name: bytes, roots: list[_Directory]) -> _Pending:
        """Open a directory where the walk begins, and append it to `roots`. Returns its entry."""
        path = self._paths[name]
        root = _Root(len(name) + 1 if name else 0)
        try:
            directory, entry = self._open(loader.list(None, path), name, root)
        except OSError as error:
            self._leave_out(name, error)
            raise PackError("vanished before it was read", path=path) from error
        root.device = directory.identity[0]
        roots.append(directory)
        return partial(iter, (entry,))

    def _open_below(
        self, loader: FileLoader, levels: list[_Level], place: tuple[int, bytes], below: list[_Directory]
    ) -> _Pending:
        """Open a directory of the last level, and append it to `below`. Returns its entry, or that it is left out."""
        number, name = place
        parent = levels[-1].directories[number]
        path = parent.prefix + name
        try:
            directory, entry = self._open(self._announced_directory(loader, levels, place), path, parent.root)
        except OSError as error:
            return partial(self._left_out, path, error)
        below.append(directory)
        return partial(iter, (entry,))

    def _open(self, announced: AnnouncedDirectory, path: bytes, root: _Root) -> tuple[_Directory, SourceEntry]:
        """Returns a directory with its entry. Raises OSError."""
        error, status, has_xattrs, opened, names = announced.take()
        mode, uid, gid, seconds, nanoseconds, _, device, number = status
        if error:
            raise OSError(error, os.strerror(error))
        xattrs = read_xattrs(opened.descriptor) if has_xattrs else {}
        prefix = path + b"/" if path else b""
        if self._rules:
            excludes, below = self._rules.excludes, prefix[root.prefix_size :]
            names = [(name, kind) for name, kind in names if not excludes(below + name, kind == _Kind.DIRECTORY)]
        entry = SourceEntry(path, mode, uid, gid, seconds * 10**9 + nanoseconds, xattrs=xattrs, may_be_linked=False)
        return _Directory(prefix, root, opened, (device, number), names), entry

    def _enter(self, loader: FileLoader, levels: list[_Level], directories: list[_Directory]) -> None:
        """Push a level."""
        num_open = sum(len(level.directories) for level in levels) + len(directories)
        order = Order([directory.listing for directory in directories], _Kind.DIRECTORY, num_open)
        levels.append(_Level(directories, order.steps(), order.directories()))
        self._announce_directories(loader, levels)
        if len(levels) > _MAX_OPEN_LEVELS and len(levels[-1 - _MAX_OPEN_LEVELS].directories) == 1:
            levels[-1 - _MAX_OPEN_LEVELS].directories[0].opened = None

    def _announced_directory(
        self, loader: FileLoader, levels: list[_Level], place: tuple[int, bytes]
    ) -> AnnouncedDirectory:
        """Returns the result for the next directory of the last level, and announces those after it."""
        level = levels[-1]
        if place not in level.announced:
            self._announce_directories(loader, levels, 1)
        announced = level.announced.pop(place)
        self._announce_directories(loader, levels)
        return announced

    def _announce_directories(self, loader: FileLoader, levels: list[_Level], least: int = 0) -> None:
        """Have the loader list the next directories of the last level, at least `least`."""
        level = levels[-1]
        num_missing = max(_DIRECTORIES_AHEAD, least) - len(level.announced)
        for number, name in itertools.islice(level.unannounced, num_missing):
            directory = level.directories[number]
            assert directory.opened is not None
            device = directory.root.device if self._one_file_system else None
            level.announced[number, name] = loader.list(directory.opened, name, device)

    def _leave(self, levels: list[_Level]) -> None:
        """Pop a finished level, and open its parent again if that was closed."""
        done = levels.pop()
        if levels and levels[-1].directories[0].opened is None:
            child = done.directories[0].opened
            assert child is not None
            self._reopen(levels[-1].directories[0], child.descriptor)

    def _reopen(self, directory: _Directory, child: int) -> None:
        path = self._local_path(directory.prefix)
        try:
            directory.opened = OpenDirectory(os.open(b"..", _DIRECTORY_FLAGS, dir_fd=child))
            status = os.fstat(directory.opened.descriptor)
        except OSError as error:
            raise PackError(f"cannot return to the directory: {error.strerror}", path=path) from error
        if (status.st_dev, status.st_ino) != directory.identity:
            raise PackError("the directory was moved while it was read", path=path)
