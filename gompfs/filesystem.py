"""The fsspec file system `gompfs`: archives on any store that fsspec knows, for pandas, PyArrow, DuckDB, Dask.

    fsspec.open("gompfs://docs/a.md::https://host/corpus.gomp")

fsspec finds it by the entry point in pyproject.toml. Of an archive that is elsewhere, ranges are read: the end, which
holds the footer, the index, and then the blocks under what is asked for, whole blocks only, neighbours in one request.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import IO, Any, NoReturn

from fsspec import AbstractFileSystem, filesystem
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from gompfs.archive import DEFAULT_CACHE_SIZE, Archive
from gompfs.engine import select_engine
from gompfs.errors import CorruptIndexError, EntryNotFoundError, EntryTypeError
from gompfs.files import ArchiveFiles
from gompfs.forks import call_in_child
from gompfs.model import Inode

_TAIL_SIZE = 64 << 10
_TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}


class GompfsFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Reads from one archive, which stays open as long as fsspec keeps this object.

    fsspec gives the same object for the same arguments: an archive that was replaced is seen after `close`, or with
    `skip_instance_cache=True`.
    """

    protocol = "gompfs"
    root_marker = ""

    def __init__(
        self,
        fo: str = "",
        target_protocol: str | None = None,
        target_options: dict[str, Any] | None = None,
        *,
        engine: str = "auto",
        verify: bool = False,
        cache_size: int = DEFAULT_CACHE_SIZE,
        **options: Any,
    ) -> None:
        """Open the archive at `fo`, a path or URL of the file system `target_protocol` with `target_options`.

        The other arguments are those of gompfs.open. Raises GompfsError for an archive that is damaged, and what the
        file system of the archive raises.
        """
        super().__init__(**options)
        if not fo:
            raise ValueError("which archive? gompfs://PATH::URL of the archive, or fo=URL")
        if target_protocol is None:
            store, path = url_to_fs(fo, **(target_options or {}))
        else:
            store = filesystem(target_protocol, **(target_options or {}))
            path = store._strip_protocol(fo)
        local = isinstance(store, LocalFileSystem)
        self.fo = fo
        self.files = ArchiveFiles(
            Archive(
                path,
                file=None if local else StoredFile(store, path),
                engine=select_engine(engine),
                verify=verify,
                cache_size=cache_size,
            )
        )

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        stripped = super()._strip_protocol(path)
        return stripped.strip("/") if isinstance(stripped, str) else stripped

    def close(self) -> None:
        """Close the archive; fsspec opens it anew for who asks with the same arguments."""
        if self._cache.get(self._fs_token) is self:
            del self._cache[self._fs_token]
        self.files.close()

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Name, size, type, mode, owner, times and inode number of an entry; links are followed."""
        name = self._strip_protocol(path)
        inode = self.files.inode(name, follow_symlinks=False)
        return self._info(name, inode, self.files.inode(name) if stat.S_ISLNK(inode.mode) else inode)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """What is in a directory, or the file itself, by name; a link to a directory is of the type `link`."""
        name = self._strip_protocol(path)
        inode = self.files.inode(name)
        infos = list(self._listing(name, inode)) if stat.S_ISDIR(inode.mode) else [self.info(name)]
        return infos if detail else [info["name"] for info in infos]

    def walk(self, path: str, *arguments: Any, **options: Any) -> Iterator[Any]:
        """As fsspec has it; CorruptIndexError where a directory has two names, as that might never end."""
        seen = options.setdefault("seen", set())
        try:
            ino = self._inode(path).ino
        except (EntryNotFoundError, EntryTypeError):
            ino = 0  # what is to be done then is said by `on_error`
        if ino in seen:
            reason = "the index is damaged: a directory has two names"
            raise CorruptIndexError(reason, archive=self.files.archive.path, path=self._strip_protocol(path))
        seen.add(ino)
        yield from super().walk(path, *arguments, **options)

    def _listing(self, name: str, directory: Inode) -> Iterator[dict[str, Any]]:
        for child, inode in self.files.archive.list_directory(directory.ino):
            path = os.path.join(name, os.fsdecode(child))
            yield self._info(path, inode, self._target_file(path) if stat.S_ISLNK(inode.mode) else inode)

    def _target_file(self, path: str) -> Inode:
        """What a link leads to; the link itself if it leads nowhere, or to a directory: walking would not end."""
        try:
            target = self.files.inode(path)
        except (EntryNotFoundError, EntryTypeError):
            target = None
        return self.files.inode(path, follow_symlinks=False) if target is None or stat.S_ISDIR(target.mode) else target

    def _info(self, name: str, inode: Inode, target: Inode) -> dict[str, Any]:
        info = {
            "name": name,
            "size": target.size,
            "type": _TYPES.get(stat.S_IFMT(target.mode), "other"),
            "islink": stat.S_ISLNK(inode.mode),
            "mode": target.mode,
            "uid": target.uid,
            "gid": target.gid,
            "mtime": target.mtime_ns / 1e9,
            "ino": target.ino,
            "nlink": target.nlink,
        }
        if inode.symlink_target is not None:
            info["destination"] = os.fsdecode(inode.symlink_target)
        return info

    def modified(self, path: str) -> datetime:
        """When an entry was last changed, in UTC."""
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self._inode(path).mtime_ns // 1000)

    def created(self, path: str) -> datetime:
        """The same, as an archive does not keep when a file was made."""
        return self.modified(path)

    def ukey(self, path: str) -> str:
        """What changes with the content of a file."""
        archive = self.files.archive
        return f"{archive.superblock.uuid}-{archive.footer.generation}-{self._inode(path).ino}"

    def _inode(self, path: str) -> Inode:
        return self.files.inode(self._strip_protocol(path))

    def _open(self, path: str, mode: str = "rb", **_: Any) -> IO[bytes]:
        return self.files.open(self._strip_protocol(path), mode)

    def _refuse(self, path: Any, *_: Any, **__: Any) -> NoReturn:
        """An archive is never changed: OSError (EROFS)."""
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    mkdir = makedirs = rmdir = rm = rm_file = cp_file = mv = touch = put_file = pipe_file = _refuse


class StoredFile:
    """An archive on a store of fsspec, read by ranges; see ArchiveFile.

    Its end is read at once and kept, as the footer is there, and of a small archive the index too.
    """

    def __init__(self, store: AbstractFileSystem, path: str) -> None:
        """The file at `path` of `store`; raises what the store raises."""
        self._store = store
        self._path = path
        size = store.info(path)["size"]
        if size is None:
            raise OSError(errno.ESPIPE, "the store does not say how large the archive is", path)
        self._size = int(size)
        self._tail_start = max(self._size - _TAIL_SIZE, 0)
        self._is_inherited = False
        self._tail = self._fetch(self._tail_start, self._size)
        call_in_child(self, StoredFile._inherit)

    def _inherit(self) -> None:
        """Called in a child of a fork, where stores that use threads refuse to work."""
        self._is_inherited = True

    def size(self) -> int:
        """See ArchiveFile.size."""
        return self._size

    def read(self, size: int, archive_offset: int) -> bytes:
        """See ArchiveFile.read; one request, but none for the end of the file."""
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
            reason = f"{len(content)} bytes came where {end - start} were asked for: no ranges, or the archive changed"
            raise OSError(errno.EIO, reason, self._path)
        return content
