"""Writes entries of an archive into a directory, as tar -x does."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from gompfs.archive.archive import Archive
from gompfs.errors import ExtractError, GompfsError, display_path
from gompfs.model import Inode

_COPY_SIZE = 4 << 20


class Extractor:
    """Extracts into one directory; nothing is ever written outside it.

    Entries go through descriptors of their parent directories, opened without following symlinks, so that a
    symlink of a hostile archive cannot lead a later entry elsewhere.
    """

    def __init__(
        self, archive: Archive, target: Path, *, progress: Callable[[int], None] | None = None
    ) -> None:
        """Extract below `target`, which is made if it is not there; `progress` is told of bytes written."""
        self._archive = archive
        self._target = target
        self._progress = progress
        self._first_paths: dict[int, bytes] = {}
        self._directories: list[tuple[bytes, Inode]] = []
        self._is_root = os.geteuid() == 0
        self.damaged: list[GompfsError] = []

    def extract(self, paths: Iterable[bytes]) -> None:
        """Extract each path with what is below it, directories' times last. Raises ExtractError.

        Files with damaged blocks are skipped and listed in `damaged`.
        """
        self._target.mkdir(parents=True, exist_ok=True)
        for path in paths or [b""]:
            for place, inode in self._archive.walk(path):
                self._extract_entry(place, inode)
        for place, inode in reversed(self._directories):
            self._with_parent(place, partial(self._set_attributes, inode=inode))

    def _with_parent(self, place: bytes, action: Callable[[int, bytes], None]) -> None:
        parts = place.split(b"/") if place else []
        descriptor = os.open(self._target, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for part in parts[:-1]:
                try:
                    os.mkdir(part, 0o755, dir_fd=descriptor)
                except FileExistsError:
                    pass
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
                child = os.open(part, flags, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = child
            action(descriptor, parts[-1] if parts else b".")
        except GompfsError:
            raise
        except OSError as error:
            raise ExtractError(error.strerror or str(error), path=place) from error
        finally:
            os.close(descriptor)

    def _extract_entry(self, place: bytes, inode: Inode) -> None:
        try:
            self._with_parent(place, lambda parent, name: self._create(parent, name, place, inode))
        except ExtractError:
            raise
        except GompfsError as error:
            error.path = error.path or display_path(place)
            self.damaged.append(error)
            self._first_paths.pop(inode.ino, None)  # a further name has nothing to be linked to

    def _create(self, parent: int, name: bytes, place: bytes, inode: Inode) -> None:
        kind = stat.S_IFMT(inode.mode)
        if kind == stat.S_IFDIR:
            if name != b".":
                self._make_directory(parent, name)
            self._directories.append((place, inode))
            return
        first = self._first_paths.setdefault(inode.ino, place)
        if first != place:
            self._remove(parent, name)
            self._with_parent(
                first,
                lambda other, old: os.link(
                    old, name, src_dir_fd=other, dst_dir_fd=parent, follow_symlinks=False
                ),
            )
            return
        self._remove(parent, name)
        if kind == stat.S_IFREG:
            self._write_file(parent, name, inode)
        elif kind == stat.S_IFLNK:
            os.symlink(inode.symlink_target or b"", name, dir_fd=parent)
        elif kind == stat.S_IFIFO:
            os.mkfifo(name, 0o600, dir_fd=parent)
        elif self._is_root:
            os.mknod(name, inode.mode, inode.rdev, dir_fd=parent)
        else:
            raise ExtractError("only root can make a device", path=place)
        self._set_attributes(parent, name, inode)

    @staticmethod
    def _make_directory(parent: int, name: bytes) -> None:
        try:
            os.mkdir(name, 0o700, dir_fd=parent)
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode):
                os.unlink(name, dir_fd=parent)
                os.mkdir(name, 0o700, dir_fd=parent)

    @staticmethod
    def _remove(parent: int, name: bytes) -> None:
        try:
            os.unlink(name, dir_fd=parent)
        except FileNotFoundError:
            pass

    def _write_file(self, parent: int, name: bytes, inode: Inode) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(name, flags, 0o600, dir_fd=parent)
        try:
            for extent in self._archive.extents(inode.ino):
                for start in range(0, extent.size, _COPY_SIZE):
                    size = min(_COPY_SIZE, extent.size - start)
                    position = extent.file_offset + start
                    for piece in self._archive.read_pieces(inode.ino, position, size):
                        view = memoryview(piece)
                        while view:
                            written = os.pwrite(descriptor, view, position)
                            view, position = view[written:], position + written
                    if self._progress is not None:
                        self._progress(size)
            os.ftruncate(descriptor, inode.size)
        except GompfsError:
            os.unlink(name, dir_fd=parent)
            raise
        finally:
            os.close(descriptor)

    def _set_attributes(self, parent: int, name: bytes, inode: Inode) -> None:
        if self._is_root:
            os.chown(name, inode.uid, inode.gid, dir_fd=parent, follow_symlinks=False)
        if not stat.S_ISLNK(inode.mode):
            os.chmod(name, stat.S_IMODE(inode.mode), dir_fd=parent)
        xattrs = self._archive.xattrs(inode.ino)
        if xattrs:
            place = b"/proc/self/fd/%d/" % parent + name
            for key, value in xattrs.items():
                os.setxattr(place, key, value, follow_symlinks=False)
        os.utime(name, ns=(inode.mtime_ns, inode.mtime_ns), dir_fd=parent, follow_symlinks=False)
