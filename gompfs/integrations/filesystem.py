"""The fsspec file system `gompfs`: reads archives on any store that fsspec supports, for pandas, PyArrow, DuckDB, Dask.

    fsspec.open("gompfs://docs/a.md::https://host/corpus.gomp")

fsspec finds this class by the entry point in pyproject.toml. A remote archive is read in ranges: first the end with the
footer, then the index, then the blocks that contain the requested bytes. Blocks are read whole, adjacent ones in one
request.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import IO, Any, NoReturn

from fsspec import AbstractFileSystem, filesystem

from gompfs.archive import DEFAULT_CACHE_SIZE, Archive
from gompfs.engine import select_engine
from gompfs.errors import EntryNotFoundError, EntryTypeError
from gompfs.files import ArchiveFiles
from gompfs.index.visited import VisitedDirectories
from gompfs.model import Inode
from gompfs.remote.remote_file import open_in, open_url

_TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}


class GompfsFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Reads one archive, which stays open while fsspec keeps this object.

    fsspec returns the same object for the same arguments. To see an archive that was replaced, call `close` first, or
    pass `skip_instance_cache=True`.
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

        The other arguments are those of gompfs.open. Raises GompfsError if the archive is damaged, and the errors of
        the file system that stores it.
        """
        super().__init__(**options)
        if not fo:
            raise ValueError("no archive given: use gompfs://PATH::URL or fo=URL")
        if target_protocol is None:
            file = open_url(fo, target_options or {})
        else:
            store = filesystem(target_protocol, **(target_options or {}))
            file = open_in(store, store._strip_protocol(fo))
        self.fo = fo
        self.files = ArchiveFiles(
            Archive(
                fo,
                file=file,
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
        """Close the archive. fsspec opens it again for the next caller with the same arguments."""
        if self._cache.get(self._fs_token) is self:
            del self._cache[self._fs_token]
        self.files.close()

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Returns name, size, type, mode, owner, times and inode number of an entry. Links are followed."""
        name = self._strip_protocol(path)
        inode = self.files.inode(name, follow_symlinks=False)
        return self._info(name, inode, self.files.inode(name) if stat.S_ISLNK(inode.mode) else inode)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """Lists a directory, or a single file, sorted by name. A link to a directory has the type `link`."""
        name = self._strip_protocol(path)
        inode = self.files.inode(name)
        infos = list(self._listing(name, inode)) if stat.S_ISDIR(inode.mode) else [self.info(name)]
        return infos if detail else [info["name"] for info in infos]

    def walk(self, path: str, *arguments: Any, **options: Any) -> Iterator[Any]:
        """See fsspec. Raises CorruptIndexError if a directory has two names, because the walk might never end."""
        visited = options.setdefault("visited", VisitedDirectories(self.files.archive.path))
        try:
            visited.enter(self._inode(path).ino, os.fsencode(self._strip_protocol(path)))
        except (EntryNotFoundError, EntryTypeError):
            pass  # fsspec handles the error as its parameter `on_error` says
        yield from super().walk(path, *arguments, **options)

    def _listing(self, name: str, directory: Inode) -> Iterator[dict[str, Any]]:
        for child, inode in self.files.archive.index.directory(directory.ino):
            path = os.path.join(name, os.fsdecode(child))
            yield self._info(path, inode, self._target_file(path) if stat.S_ISLNK(inode.mode) else inode)

    def _target_file(self, path: str) -> Inode:
        """Returns the file that a link points to, or the link itself if it is dangling or points to a directory.

        Links to directories are not followed, because a walk might then never end.
        """
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
        """Returns the modification time of an entry, in UTC."""
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self._inode(path).mtime_ns // 1000)

    def created(self, path: str) -> datetime:
        """Returns the modification time, because an archive does not store when a file was created."""
        return self.modified(path)

    def ukey(self, path: str) -> str:
        """Returns a key that changes whenever the content of the file changes."""
        archive = self.files.archive
        return f"{archive.superblock.uuid_text}-{archive.footer.generation}-{self._inode(path).ino}"

    def _inode(self, path: str) -> Inode:
        return self.files.inode(self._strip_protocol(path))

    def _open(self, path: str, mode: str = "rb", **_: Any) -> IO[bytes]:
        return self.files.open(self._strip_protocol(path), mode)

    def _refuse(self, path: Any, *_: Any, **__: Any) -> NoReturn:
        """Raises OSError (EROFS): archives are read-only."""
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    mkdir = makedirs = rmdir = rm = rm_file = cp_file = mv = touch = put_file = pipe_file = _refuse
