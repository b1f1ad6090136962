"""Writes entries of an archive into a directory, as tar -x does.

Another user may own the target directory and swap its entries at any time. So attributes are set through the descriptor
that created a file, never through its name. A file is written under a temporary name in the same directory, and renamed
when it is complete: an error or an interrupt leaves no incomplete file under a real name.
"""

from __future__ import annotations

import itertools
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gompfs.archive.archive import Archive
from gompfs.archive.entries import names_in
from gompfs.archive.interrupts import Deferral
from gompfs.archive.target_tree import FULL, TargetTree, file_identity
from gompfs.errors import ExtractError, GompfsError, display_path, is_disk_error
from gompfs.model import Inode

_COPY_SIZE = 4 << 20
_MAX_VECTORS = 512
_SET_ID_BITS = stat.S_ISUID | stat.S_ISGID

_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Extractor:
    """Extracts into one directory; nothing is ever written outside it.

    An entry that cannot be written is reported and left out, and the rest is extracted:

    - A file with damaged blocks, or an entry that the file system or the user's rights do not allow: an error.
    - A directory that cannot be made: one error; everything below it is skipped.
    - An owner, mode or time that cannot be set: an error; the entry stays, without setuid and setgid bits if its
      owner is wrong.
    - An extended attribute that cannot be set: a warning, as in tar.

    A file, symlink or device replaces an existing entry of the same name, except for a directory that is not empty. A
    directory replaces an existing entry too; if that is a directory, both are merged. All of this is as in tar -x.

    A file system that is full ends the extraction: every file after that would be one more error.
    """

    def __init__(
        self,
        archive: Archive,
        target: Path,
        *,
        progress: Callable[[int], None] | None = None,
        on_error: Callable[[GompfsError], None] | None = None,
        on_warning: Callable[[GompfsError], None] | None = None,
    ) -> None:
        """Extract below `target`, which is created if it does not exist.

        `progress` is called with the number of bytes of each write, `on_error` with each error, `on_warning` with each
        warning.
        """
        self._archive = archive
        self._target = target
        self._progress = progress
        self._on_error = on_error
        self._on_warning = on_warning
        self._is_root = os.geteuid() == 0
        # Of each file with several names, by inode number: the first path, and the extracted file's identity.
        self._first_names: dict[int, tuple[bytes, tuple[int, int]]] = {}
        self._deferral = Deferral()
        self._temporary_prefix = f".gompfs-{secrets.token_hex(6)}-".encode()
        self._numbers = itertools.count()
        self.num_errors = 0

    def extract(self, paths: Iterable[bytes]) -> None:
        """Extract each path with everything below it, or the whole archive if there are no paths.

        Raises OSError if the target cannot be made or opened, or if its file system or the user's quota is full.
        """
        self._target.mkdir(parents=True, exist_ok=True)
        tree = TargetTree(self._target, self._set_attributes, self._report)
        with self._deferral:
            try:
                for path in _outermost(self._archive, list(paths) or [b""]):
                    self._extract_path(tree, path)
            finally:
                with self._deferral.held:
                    tree.leave_all()

    def _extract_path(self, tree: TargetTree, path: bytes) -> None:
        if b".." in path.split(b"/"):
            self._report(ExtractError("a path with .. is not extracted", path=path))
            return
        try:
            for entry_path, inode in self._archive.walk(path):
                parent, _, name = entry_path.rpartition(b"/")
                is_directory = stat.S_ISDIR(inode.mode)
                with self._deferral.held:
                    directory = tree.go_to(parent)
                    if is_directory and directory is not None:
                        tree.enter(entry_path, inode)
                if not is_directory and directory is not None:
                    self._extract_entry(tree, directory, name, entry_path, inode)
        except GompfsError as error:
            self._report(error)

    def _report(self, error: GompfsError) -> None:
        self.num_errors += 1
        if self._on_error is not None:
            self._on_error(error)

    def _extract_entry(self, tree: TargetTree, directory: int, name: bytes, path: bytes, inode: Inode) -> None:
        try:
            if inode.ino in self._first_names:
                self._link(tree, directory, name, inode)
            else:
                self._create(directory, name, path, inode)
        except GompfsError as error:
            error.path = error.path or display_path(path)
            self._report(error)
        except (OSError, ValueError) as error:  # ValueError: a zero byte in the target of a symlink
            if isinstance(error, OSError) and error.errno in FULL:
                raise OSError(error.errno, error.strerror, display_path(path)) from error
            reason = error.strerror if isinstance(error, OSError) else None
            self._report(ExtractError(reason or str(error), path=path))

    def _create(self, directory: int, name: bytes, path: bytes, inode: Inode) -> None:
        identity = None
        with self._temporary_name(directory, name) as temporary:
            if stat.S_ISREG(inode.mode):
                descriptor = os.open(temporary, _CREATE_FLAGS, 0o600, dir_fd=directory)
            else:
                descriptor = self._make_special(directory, temporary, inode)
            try:
                if stat.S_ISREG(inode.mode):
                    self._write_content(descriptor, inode)
                    self._set_attributes(descriptor, path, inode)
                else:
                    # The path in /proc also works for a descriptor that only refers to an inode (O_PATH).
                    self._set_attributes(b"/proc/self/fd/%d" % descriptor, path, inode)
                if inode.nlink > 1:
                    identity = file_identity(descriptor)
            finally:
                os.close(descriptor)
        if identity is not None:
            self._first_names[inode.ino] = path, identity

    @contextmanager
    def _temporary_name(self, directory: int, name: bytes) -> Iterator[bytes]:
        """Yields a name for a file that is being written.

        At the end the file is renamed to `name`, or removed on failure.
        """
        temporary = b"%s%d" % (self._temporary_prefix, next(self._numbers))
        try:
            yield temporary
            try:
                os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            except IsADirectoryError:
                _remove(directory, name)
                os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with self._deferral.held:
                _remove(directory, temporary)
            raise

    def _make_special(self, directory: int, name: bytes, inode: Inode) -> int:
        """Create a symlink, FIFO, socket or device. Returns a descriptor that refers to it (O_PATH)."""
        kind = stat.S_IFMT(inode.mode)
        if kind == stat.S_IFLNK:
            os.symlink(inode.symlink_target or b"", name, dir_fd=directory)
        else:
            try:
                os.mknod(name, kind | 0o600, inode.rdev, dir_fd=directory)
            except PermissionError:
                if kind not in (stat.S_IFCHR, stat.S_IFBLK) or self._is_root:
                    raise
                raise ExtractError("only root can create a device") from None
        descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        status = os.fstat(descriptor)
        if stat.S_IFMT(status.st_mode) != kind or status.st_nlink != 1:
            os.close(descriptor)
            raise ExtractError("was replaced while it was extracted")
        return descriptor

    def _link(self, tree: TargetTree, directory: int, name: bytes, inode: Inode) -> None:
        """Create another name of a file that has been extracted."""
        first, identity = self._first_names[inode.ino]
        parent = tree.open_parent(first)
        try:
            original = os.open(first.rpartition(b"/")[2], os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        finally:
            os.close(parent)
        try:
            if file_identity(original) != identity:
                raise ExtractError(f"{display_path(first)}, the same file, was replaced while it was extracted")
            source = b"/proc/self/fd/%d" % original
            try:
                os.link(source, name, dst_dir_fd=directory, follow_symlinks=True)
            except FileExistsError:
                _remove(directory, name)
                os.link(source, name, dst_dir_fd=directory, follow_symlinks=True)
        finally:
            os.close(original)

    def _write_content(self, descriptor: int, inode: Inode) -> None:
        """Write the bytes of a file. Holes stay holes."""
        end = 0
        for extent in self._archive.extents(inode.ino):
            extent_end = min(extent.file_offset + extent.size, inode.size)  # the index may claim bytes after the end
            for position in range(extent.file_offset, extent_end, _COPY_SIZE):
                end = min(position + _COPY_SIZE, extent_end)
                _write_all(descriptor, self._read(inode.ino, position, end - position), position)
                if self._progress is not None:
                    self._progress(end - position)
        if end != inode.size:
            os.ftruncate(descriptor, inode.size)

    def _read(self, ino: int, file_offset: int, size: int) -> list[memoryview]:
        """Returns a part of a file. An error of the disk that has the archive is not one of the target's."""
        try:
            return self._archive.read_pieces(ino, file_offset, size)
        except OSError as error:
            if is_disk_error(error):
                raise ExtractError(error.strerror or str(error), archive=self._archive.path) from None
            raise

    def _set_attributes(self, file: int | bytes, path: bytes, inode: Inode) -> None:
        """Set owner, extended attributes, mode and time through a descriptor, or through its path /proc/self/fd/N.

        The mode is set after the owner, since changing the owner clears setuid bits. Without root, setuid and setgid
        bits are not set: they would let a program from the archive run with the rights of the user who extracts it.
        """
        mode = stat.S_IMODE(inode.mode)
        if not self._is_root:
            if not stat.S_ISDIR(inode.mode):
                mode &= ~_SET_ID_BITS
        elif not self._try(path, "owner", lambda: os.chown(file, inode.uid, inode.gid)):
            mode &= ~_SET_ID_BITS
        self._set_xattrs(file, path, inode)
        if not stat.S_ISLNK(inode.mode):
            self._try(path, "mode", lambda: os.chmod(file, mode))
        self._try(path, "time", lambda: os.utime(file, ns=(inode.mtime_ns, inode.mtime_ns)))

    def _set_xattrs(self, file: int | bytes, path: bytes, inode: Inode) -> None:
        for key, value in self._archive.xattrs(inode.ino).items():
            try:
                os.setxattr(file, key, value)
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else str(error)
                if self._on_warning is not None:
                    message = f"the extended attribute {display_path(key)} cannot be set: {reason}"
                    self._on_warning(ExtractError(message, path=path or b"."))

    def _try(self, path: bytes, what: str, action: Callable[[], None]) -> bool:
        """Run `action`, and report its error. Returns whether it succeeded."""
        try:
            action()
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._report(ExtractError(f"its {what} cannot be set: {reason}", path=path or b"."))
            return False
        return True


def _outermost(archive: Archive, paths: list[bytes]) -> list[bytes]:
    """Returns the paths without duplicates, and without paths below another path in the list that is a directory."""
    names = {b"/".join(names_in(path)): None for path in paths}

    def is_covered(path: bytes) -> bool:
        above, _, name = path.rpartition(b"/")
        while name and stat.S_ISDIR(archive.resolve(above).mode):  # a symlink may lead elsewhere
            if above in names:
                return True
            above, _, name = above.rpartition(b"/")
        return False

    return [path for path in names if not is_covered(path)]


def _write_all(descriptor: int, pieces: Sequence[memoryview], position: int) -> None:
    """Write the pieces one after another from `position` on."""
    for first in range(0, len(pieces), _MAX_VECTORS):
        batch = pieces[first : first + _MAX_VECTORS]
        written = os.pwritev(descriptor, batch, position)
        for piece in batch:
            rest = piece[min(written, len(piece)) :]
            written -= len(piece) - len(rest)
            position += len(piece) - len(rest)
            while rest:
                count = os.pwrite(descriptor, rest, position)
                rest, position = rest[count:], position + count


def _remove(directory: int, name: bytes) -> None:
    """Remove an entry if it exists. Raises ExtractError for a directory that is not empty."""
    try:
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        pass
    except IsADirectoryError:
        try:
            os.rmdir(name, dir_fd=directory)
        except OSError as error:
            raise ExtractError(f"an existing directory cannot be replaced: {error.strerror}") from None
