"""Chooses the source for a path."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from gompfs.errors import OptionError, PackError, display_path
from gompfs.model import MAX_NAME_SIZE
from gompfs.pack.sources.base import FindArchived, Source, SourceEntry
from gompfs.pack.sources.directory import DirectorySource, FileSource, LocalSource
from gompfs.pack.sources.exclude import ExcludeRules, read_patterns
from gompfs.pack.sources.file_run import FileRun

__all__ = ["STANDARD_INPUT", "PrefixedSource", "open_source", "open_sources"]

STANDARD_INPUT = "-"
_TAR_SUFFIXES = (
    *(".tar", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst"),
    *(".tgz", ".tbz", ".tbz2", ".tb2", ".txz", ".tzst"),
)
_ZIP_SUFFIX = ".zip"
_BUFFER_SIZE = 1 << 20


class PrefixedSource(Source):
    """A source whose root becomes the directory `prefix`."""

    def __init__(self, source: Source, prefix: bytes) -> None:
        self.name = source.name
        self.sorted = source.sorted
        self.warnings = source.warnings
        self.skip_inodes = source.skip_inodes
        self._source = source
        self._prefix = prefix

    @property
    def total_size(self) -> int | None:
        """See `Source.total_size`."""
        return self._source.total_size

    def skip_unchanged(self, find: FindArchived) -> None:
        """See `Source.skip_unchanged`."""
        self._source.skip_unchanged(lambda path: find(self._path(path)))

    def entries(self) -> Iterator[SourceEntry]:
        """Yield the entries with their new paths."""
        return map(self._with_prefix, self._source.entries())

    def items(self) -> Iterator[SourceEntry | FileRun]:
        """See `Source.items`."""
        for item in self._source.items():
            if isinstance(item, FileRun):
                item.directory = self._path(item.directory)
                yield item
            else:
                yield self._with_prefix(item)

    def _with_prefix(self, entry: SourceEntry) -> SourceEntry:
        entry.path = self._path(entry.path)
        if entry.hard_link_to is not None:
            entry.hard_link_to = self._path(entry.hard_link_to)
        return entry

    def _path(self, path: bytes) -> bytes:
        return self._prefix + b"/" + path if path else self._prefix


def open_source(
    spec: str | os.PathLike[str],
    *,
    alone: bool = True,
    exclude: Sequence[str | bytes] = (),
    exclude_from: Sequence[str | os.PathLike[str]] = (),
    one_file_system: bool = False,
    skip_unreadable: bool = False,
    prefix: str | os.PathLike[str] | None = None,
) -> Source:
    """Returns the source for a directory, a file, an archive to unpack (.tar of any compression, .zip) or `-`.

    A directory that is packed `alone` becomes the root; with other sources, it keeps its base name. Members of tar and
    zip archives always keep their own names. `-`, or a path of a pipe, is a tar of any compression. `exclude` are
    patterns, `exclude_from` pattern files (see `gompfs.pack.sources.exclude`); they apply to the entries of a directory
    or an archive. With `one_file_system`, mount points stay empty. With `skip_unreadable`, an unreadable local file is
    only a warning. With a `prefix`, a relative path, all entries are below that directory, which takes the place of the
    root. Raises PackError if nothing is at `spec`, OptionError for a bad pattern or prefix.
    """
    directory = None if prefix is None else clean_prefix(prefix)
    source = _open_source(spec, alone, exclude, exclude_from, one_file_system, skip_unreadable)
    return source if directory is None else PrefixedSource(source, directory)


def open_sources(
    specs: Sequence[str | os.PathLike[str]], *, sort: str, prefix: str | os.PathLike[str] | None = None, **how: Any
) -> list[Source]:
    """Returns the sources for `specs`, in their order (`sort` is "source"), or by their names ("name").

    Directories are one source, so that versions are walked side by side. `how` has the arguments of open_source.
    Raises OptionError if a source has an order of its own, and as open_source.
    """
    if sort == "name":
        specs = sorted(specs, key=lambda spec: os.path.basename(os.path.abspath(os.fsencode(spec))))
    elif sort != "source":
        raise OptionError(f"sort must be 'source' or 'name', not {sort!r}")
    directory = None if prefix is None else clean_prefix(prefix)
    sources = _side_by_side([open_source(spec, alone=len(specs) == 1, **how) for spec in specs])
    for source in sources:
        if sort == "name" and not source.sorted:
            raise OptionError(
                "--sort name is not possible: the entries of this source keep their own order", path=source.name
            )
    return sources if directory is None else [PrefixedSource(source, directory) for source in sources]


def _side_by_side(sources: Sequence[Source]) -> list[Source]:
    """Returns the sources with each directory joined to an earlier one, if no path can be in both or between them."""
    joined: list[Source] = []
    first: DirectorySource | None = None
    names: set[bytes] = set()
    for source in sources:
        own = set(source.names) if isinstance(source, LocalSource) else {b""}
        if b"" in own | names or own & names:
            first, names = None, set()
        names |= own
        if isinstance(source, DirectorySource):
            if first is not None:
                first.join(source)
                continue
            first = source
        joined.append(source)
    return joined


def is_packable_archive(path: str) -> bool:
    """Returns whether a path has the name of a tar or a zip."""
    return path.lower().endswith((*_TAR_SUFFIXES, _ZIP_SUFFIX))


def clean_prefix(prefix: str | os.PathLike[str]) -> bytes:
    """Returns a prefix as paths of entries are: without empty parts, and `.`. Raises OptionError."""
    path = os.fsencode(prefix)
    parts = [part for part in path.split(b"/") if part not in (b"", b".")]
    if path.startswith(b"/") or b".." in parts or not parts:
        raise OptionError("the prefix must be a relative path of a directory, without '..'", path=prefix)
    if b"\0" in path or any(len(part) > MAX_NAME_SIZE for part in parts):
        raise OptionError(f"the prefix has a name of more than {MAX_NAME_SIZE} bytes, or a NUL", path=prefix)
    return b"/".join(parts)


def _open_source(
    spec: str | os.PathLike[str],
    alone: bool,
    exclude: Sequence[str | bytes],
    exclude_from: Sequence[str | os.PathLike[str]],
    one_file_system: bool,
    skip_unreadable: bool,
) -> Source:
    rules = ExcludeRules([*exclude, *(pattern for file in exclude_from for pattern in read_patterns(file))])
    if os.fspath(spec) == STANDARD_INPUT:
        from gompfs.pack.sources.tar import TarSource

        return TarSource(_open_standard_input, "standard input", rules=rules)
    local_path = os.fsencode(spec)
    try:
        mode = os.stat(local_path).st_mode
    except OSError as error:
        raise PackError(f"cannot read: {error.strerror}", path=spec) from error
    if stat.S_ISDIR(mode):
        name = b"" if alone else os.path.basename(os.path.realpath(local_path))
        return DirectorySource(
            local_path, name, rules=rules, one_file_system=one_file_system, skip_unreadable=skip_unreadable
        )
    suffixed = local_path.decode("utf-8", "replace").lower()
    if stat.S_ISFIFO(mode) or (stat.S_ISREG(mode) and suffixed.endswith(_TAR_SUFFIXES)):
        from gompfs.pack.sources.tar import TarSource

        return TarSource(lambda: open(local_path, "rb", _BUFFER_SIZE), display_path(local_path), rules=rules)
    if not stat.S_ISREG(mode):
        raise PackError("is neither a file nor a directory", path=spec)
    if suffixed.endswith(_ZIP_SUFFIX):
        from gompfs.pack.sources.zip import ZipSource

        return ZipSource(os.fsdecode(local_path), rules=rules)
    return FileSource(local_path, skip_unreadable=skip_unreadable)


def _open_standard_input() -> BinaryIO:
    if sys.stdin is None or sys.stdin.isatty():
        raise PackError("standard input is a terminal, not a tar")
    return open(sys.stdin.fileno(), "rb", _BUFFER_SIZE, closefd=False)
