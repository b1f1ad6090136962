"""The Python interface that `gompfs.open` returns: the files of an archive by path, with methods named as in `os`."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, AnyStr, Literal, TypeVar, overload

from gompfs.archive import Archive
from gompfs.archive.entries import names_in
from gompfs.archive.file_reader import FileReader, read_file
from gompfs.errors import (
    EntryIsDirectoryError,
    EntryNotDirectoryError,
    EntryNotFoundError,
    EntryTypeError,
    OptionError,
    SymlinkLoopError,
    display_path,
)
from gompfs.index.image import connect
from gompfs.index.visited import VisitedDirectories
from gompfs.model import Inode

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

    from gompfs.arrays import ArrayReader, Arrays
    from gompfs.arrays.ranges import FileOrRange
    from gompfs.options import GpuOptions
    from gompfs.search.matches import LineMatch
    from gompfs.search.search_memory import SearchMemory
    from gompfs.statistics.records import Record

Name = TypeVar("Name", bound=str | bytes)
AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class ArchiveFiles:
    """The files of an open archive. Paths start at its root, with or without a leading slash.

    Symbolic links are followed inside the archive. Several threads may call methods at the same time. Methods raise
    EntryNotFoundError (a FileNotFoundError), EntryIsDirectoryError, EntryNotDirectoryError, SymlinkLoopError,
    CorruptIndexError, and ValueError when the archive is closed.
    """

    def __init__(self, archive: Archive, gpu: GpuOptions | None = None) -> None:
        """Serve the files of `archive`. `close` closes the archive too.

        `gpu` says what `read_many` may use of a GPU that is not the archive's engine; by default, blocks stay there.
        """
        self._archive = archive
        self._gpu = gpu

    @property
    def archive(self) -> Archive:
        """The underlying archive with its inodes, blocks, segments and sections. Raises ValueError if it is closed."""
        if self._archive.is_closed:
            raise ValueError("the archive is closed")
        return self._archive

    def close(self) -> None:
        """Close the archive. Open files of it cannot be read afterwards. A second call does nothing."""
        self._archive.close()

    def __enter__(self) -> ArchiveFiles:
        if self._archive.is_closed:
            raise ValueError("the archive is closed")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed archive" if self._archive.is_closed else "archive"
        return f"<{type(self).__name__} of the {state} {self._archive.path!r}>"

    def sqlite(self) -> sqlite3.Connection:
        """Returns a connection that reads a copy of the index as a SQLite database, which the caller closes.

        It is in memory or, if it is large, in a temporary file.
        Its tables, such as `inode` and `dirent`, are those of docs/format.md, section 3.
        """
        return connect(self.archive.index_columns())

    def exists(self, path: AnyPath) -> bool:
        """Returns whether a path exists; False for a dangling symbolic link."""
        return self._mode(path) is not None

    def isdir(self, path: AnyPath) -> bool:
        """Returns whether a path is a directory, or a symbolic link to one."""
        return stat.S_ISDIR(self._mode(path) or 0)

    def isfile(self, path: AnyPath) -> bool:
        """Returns whether a path is a regular file, or a symbolic link to one."""
        return stat.S_ISREG(self._mode(path) or 0)

    def _mode(self, path: AnyPath) -> int | None:
        """Returns the mode of the entry at a path after following links, or None if there is no entry."""
        try:
            return self.inode(path).mode
        except (EntryNotFoundError, EntryNotDirectoryError, SymlinkLoopError):
            return None

    def listdir(self, path: AnyStr | os.PathLike[AnyStr] = "") -> list[AnyStr]:  # type: ignore[assignment]
        """Returns the names in a directory in byte order, as bytes if the path is bytes."""
        name = os.fspath(path)
        names = [entry.name for entry in self.archive.index.directory(self._directory(name).ino)]
        return [_like(name, entry) for entry in names]

    def stat(self, path: AnyPath = "", *, follow_symlinks: bool = True) -> os.stat_result:
        """Returns the attributes of an entry like os.stat. All three times are the modification time."""
        inode = self.inode(path, follow_symlinks=follow_symlinks)
        return stat_result(inode, self.archive.stored_size(inode))

    def readlink(self, path: AnyStr | os.PathLike[AnyStr]) -> AnyStr:
        """Returns the target of a symbolic link. Raises EntryTypeError for other entries."""
        name = os.fspath(path)
        target = self.inode(name, follow_symlinks=False).symlink_target
        if target is None:
            raise EntryTypeError("not a symbolic link", archive=self.archive.path, path=name)
        return _like(name, target)

    def walk(
        self,
        top: AnyStr | os.PathLike[AnyStr] = "",  # type: ignore[assignment]
    ) -> Iterator[tuple[AnyStr, list[AnyStr], list[AnyStr]]]:
        """Yields (directory, names of directories in it, names of other entries in it), from `top` down, like os.walk.

        Directories whose names the caller removes from the list are not visited. Links to directories are not followed.
        """
        name = os.fspath(top)
        pending = [(os.fsencode(name), self._directory(name).ino)]
        visited = VisitedDirectories(self.archive.path)
        while pending:
            path, ino = pending.pop()
            visited.enter(ino, path)
            entries = self.archive.index.directory(ino)
            below = {_like(name, entry.name): entry for entry in entries if stat.S_ISDIR(entry.inode.mode)}
            others = [_like(name, entry.name) for entry in entries if not stat.S_ISDIR(entry.inode.mode)]
            directories = list(below)
            yield _like(name, path), directories, others
            left = [below[directory] for directory in directories if directory in below]
            pending += [(os.path.join(path, entry.name), entry.inode.ino) for entry in reversed(left)]

    def open(
        self,
        path: AnyPath,
        mode: str = "r",
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """Open a file for reading as text (`r`) or bytes (`rb`), like the builtin open. The file can seek.

        Reading a damaged block raises CorruptBlockError. Raises OSError (EROFS) for a mode that writes, ValueError for
        a mode that the builtin open does not know.
        """
        if set(mode) - set("rwaxbt+") or len(set(mode)) < len(mode):
            raise ValueError(f"invalid mode: {mode!r}")
        if len(set(mode) & set("rwax")) != 1 or {"b", "t"} <= set(mode):
            raise ValueError(f"a mode must have exactly one of r, w, a and x, and not both b and t: {mode!r}")
        if "b" in mode and (encoding, errors, newline) != (None, None, None):
            raise ValueError("a binary mode does not take encoding, errors or newline")
        if "r" not in mode or "+" in mode:
            raise OSError(errno.EROFS, f"archives are read-only, mode {mode!r}", display_path(os.fspath(path)))
        binary = FileReader(self.archive, self.file_inode(path), os.fspath(path))
        if "b" in mode:
            return binary
        return io.TextIOWrapper(binary, io.text_encoding(encoding), errors, newline)

    def read(self, path: AnyPath) -> bytes:
        """Returns the whole content of a file. Raises CorruptBlockError, and MemoryError if it is too large."""
        return read_file(self.archive, self.file_inode(path), os.fspath(path))

    def read_many(
        self,
        files: Iterable[FileOrRange] | NDArray[np.integer],
        device: str = "cpu",
        *,
        out: Any = None,
        stream: Any = None,
    ) -> Arrays:
        """Returns the contents of many files, one after another in one array of bytes.

        Each item of `files` is a path, an inode number (`stat(path).st_ino`), or a range (file, start, stop), with None
        as in a slice. An array of integers has inode numbers, or rows of inode number, start and stop; for many small
        files, this is the fastest way. Bytes that a file does not have are left out, holes are zeros.

        `device` says where the array is: `cpu`, decoded by all threads, or `cuda:0`, decoded by that GPU, without a
        copy through the host. `out` is an array or buffer to use, which is contiguous and large enough. With `stream`,
        a CUDA stream of CuPy, PyTorch or others, the call returns before the data are complete: work that is queued on
        that stream afterwards finds them, and `Arrays.wait` raises the error if blocks are damaged, whose bytes are
        zeros.

        Raises CorruptBlockError for the first damaged file, the errors of `read`, ValueError for a range or buffer that
        cannot be used, EngineUnavailableError, OptionError, and MemoryError.
        """
        if self._archive.is_closed:
            raise ValueError("the archive is closed")
        return self._arrays.read(files, device, out, stream)

    def read_many_on(self, files: Iterable[FileOrRange] | NDArray[np.integer], devices: Sequence[str]) -> list[Arrays]:
        """Returns the contents of many files, spread over several devices, such as `["cuda:0", "cuda:1"]`.

        `files` are those of `read_many`. They are cut into runs of about equal size, in their order, and a thread for
        each device reads a run into an array there. Returns one result for each device; together they have all items in
        order. A block that holds bytes of two runs is decoded on both devices.

        Raises the errors of `read_many`.
        """
        if self._archive.is_closed:
            raise ValueError("the archive is closed")
        return self._arrays.read_on(files, devices)

    @cached_property
    def _arrays(self) -> ArrayReader:
        from gompfs.arrays import ArrayReader
        from gompfs.options import GpuOptions

        gpu = self._gpu or GpuOptions()
        return ArrayReader(self._archive, lambda path: self.file_inode(path).ino, gpu)

    @overload
    def stats(
        self,
        name: str,
        *,
        file: AnyPath | None = None,
        top: int = 0,
        ngram_length: int = 0,
        documents: Iterable[tuple[bytes, bytes]] = (),
        as_table: Literal[False] = False,
    ) -> Iterator[Record]: ...

    @overload
    def stats(
        self,
        name: str,
        *,
        file: AnyPath | None = None,
        top: int = 0,
        ngram_length: int = 0,
        documents: Iterable[tuple[bytes, bytes]] = (),
        as_table: Literal[True],
    ) -> pyarrow.Table: ...

    @overload
    def stats(
        self,
        name: str,
        *,
        file: AnyPath | None = None,
        top: int = 0,
        ngram_length: int = 0,
        documents: Iterable[tuple[bytes, bytes]] = (),
        as_table: Literal["batches"],
    ) -> pyarrow.RecordBatchReader: ...

    def stats(
        self,
        name: str,
        *,
        file: AnyPath | None = None,
        top: int = 0,
        ngram_length: int = 0,
        documents: Iterable[tuple[bytes, bytes]] = (),
        as_table: bool | Literal["batches"] = False,
    ) -> Iterator[Record] | pyarrow.Table | pyarrow.RecordBatchReader:
        """Yields the lines of a statistic as the objects that `gompfs stats --json` prints: dicts, or strings.

        `name` is a task (`wordcount`, `tfidf`, ...), `word/WORD`, `phrase/W1 W2 W3`, or `info` (one dict). `file`
        restricts the statistic to one file. `top` above 0 limits the output to the first lines, to the first words of
        each term vector, or to the first files of each n-gram or document. `ngram_length` is the length of n-grams, 1
        to 5, or 1 to 255 in `overlap`; 0 stands for 3, or 13 in `overlap`, which takes `documents` as pairs of name and
        text. A search without results yields nothing.

        With `as_table=True`, returns a pyarrow.Table with the columns of `gompfs stats --format parquet`; with
        `as_table="batches"`, a pyarrow.RecordBatchReader of the same rows, for a table that is larger than memory.

        Raises OptionError (a ValueError), also without pyarrow; StatsUnavailableError, CorruptBlockError.
        """
        from gompfs.statistics.documents import Document
        from gompfs.statistics.formats import record_batches
        from gompfs.statistics.query import StatsQuery
        from gompfs.statistics.records import records
        from gompfs.statistics.tasks import compute, task_of

        try:
            task = task_of(name)
            ino = None if file is None else self.file_inode(file).ino
            query = StatsQuery(
                ino,
                ngram_length or task.ngram_length,
                top,
                documents=(Document(name, text) for name, text in documents),
            )
        except OptionError as error:
            error.archive = str(self.archive.path)
            raise
        report = compute(os.fsencode(name), self.archive, query)
        if not as_table:
            return records(task.columns, report)
        batches = record_batches(report, task.columns)
        return batches if as_table == "batches" else batches.read_all()

    def grep(
        self,
        *patterns: str | bytes,
        path: AnyPath = "",
        **options: Any,
    ) -> Iterator[LineMatch]:
        """Yields the lines at and below `path` that match one of the patterns, as they are found.

        `options` are those of `gompfs grep` that say what is found, by their long names, with _ for -:

        - for the patterns, `fixed_strings`, `ignore_case`, `smart_case`, `word_regexp`, `line_regexp`, `invert_match`,
          `multiline`, `pcre2`, `crlf`: true or false;
        - for the files, `glob`, `type`, `type_not`, `ignore_file`: one value or several; `ignore`, `max_depth`; `text`
          and `encoding` for what is in them; and `sort`: "path", the default, for the order of their paths, or "none"
          for that of their content in the archive, which is the fastest;
        - for the lines, `max_count`, and `context`, `before_context`, `after_context`: numbers. Lines of context are
          yielded too.

        Each match has `path`, `line_number`, `offset` in the file, `line` as bytes, `spans` of the matches in the line,
        and `is_context`. Raises OptionError for values that cannot be used, TypeError for other options, OSError for an
        ignore file, and at the end the error of a file that could not be read.
        """
        from gompfs.search.matches import line_matches
        from gompfs.search.query import OPTIONS, query_of
        from gompfs.search.search import ArchiveSearch

        for name in options:
            if name not in OPTIONS or OPTIONS[name].is_for_output:
                raise TypeError(f"grep() has no option {name!r}")
        query = query_of(patterns, {"sort": "path", **options, "json": True, "line_number": True})
        prefix = b"/".join(names_in(os.fspath(path)))
        roots = [(prefix, self.inode(path).ino)]
        return line_matches(ArchiveSearch(self.archive, query, roots, memory=self._search_memory))

    @cached_property
    def _search_memory(self) -> SearchMemory:
        from gompfs.search.search_memory import SearchMemory

        return SearchMemory(self._archive)

    def inode(self, path: AnyPath, *, follow_symlinks: bool = True) -> Inode:
        """Returns the inode at a path: all stored attributes of the entry."""
        return self.archive.resolve(os.fspath(path), follow=follow_symlinks)

    def _directory(self, path: AnyPath) -> Inode:
        inode = self.inode(path)
        if not stat.S_ISDIR(inode.mode):
            raise EntryNotDirectoryError("not a directory", archive=self.archive.path, path=os.fspath(path))
        return inode

    def file_inode(self, path: AnyPath) -> Inode:
        """Returns the inode of a regular file. Raises EntryIsDirectoryError or EntryTypeError for another entry."""
        inode = self.inode(path)
        if stat.S_ISDIR(inode.mode):
            raise EntryIsDirectoryError("is a directory", archive=self.archive.path, path=os.fspath(path))
        if not stat.S_ISREG(inode.mode):
            raise EntryTypeError("is not a regular file", archive=self.archive.path, path=os.fspath(path))
        return inode


def _like(path: AnyStr, raw: bytes) -> AnyStr:
    """Returns bytes of the archive as the type of `path`: bytes or text."""
    return raw if isinstance(path, bytes) else os.fsdecode(raw)


def stat_result(inode: Inode, stored_size: int) -> os.stat_result:
    """Returns an inode as os.stat returns it. `stored_size` is the number of bytes that are not in holes."""
    seconds, nanoseconds = divmod(inode.mtime_ns, 1_000_000_000)
    fields = (inode.mode, inode.ino, 0, inode.nlink, inode.uid, inode.gid, inode.size, seconds, seconds, seconds)
    times = [f"st_{which}time" for which in "amc"]
    more: dict[str, object] = {"st_blksize": 4096, "st_blocks": -(-stored_size // 512), "st_rdev": inode.rdev}
    more |= dict.fromkeys(times, seconds + 1e-9 * nanoseconds)  # the same rounding as in os.stat
    more |= {f"{time}_ns": inode.mtime_ns for time in times}
    return os.stat_result(fields, more)
