"""The portable connection, `-o api=high`: libfuse's high-level interface, through mfusepy.

Its requests name files by path. Nothing here knows the kernel's protocol. libfuse speaks it, so this works on every
system that libfuse supports. It is slower: see docs/decisions/0008-high-level-interface.md.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, TypeVar

from gompfs.errors import MountError
from gompfs.log import Logger
from gompfs.model import ROOT_INO, Inode
from gompfs.mount.failures import failures
from gompfs.mount.fuse.errno_map import errno_of, is_expected
from gompfs.mount.fuse.fuse_options import NO_ACLS, fuse_options
from gompfs.mount.fuse.libfuse import mfusepy
from gompfs.mount.not_ready import NotReadyError
from gompfs.mount.system.joining import join_threads
from gompfs.mount.tree.content import CACHE_SECONDS, Content
from gompfs.mount.tree.operations import visible_xattrs
from gompfs.options import MountOptions

log = Logger(__name__)

_STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_WAKE_UP = signal.SIGUSR1
_THREADS = {"max_threads": "64", "max_idle_threads": "10"}  # a request that waits for a statistic occupies one
_TAKES_THREADS = (3, 12)  # the first libfuse version with these options; older ones have no limit
_MAX_DIRECTORIES = 1 << 14  # size of the cache that maps paths of directories to nodes
_FOLLOW_SECONDS = 1  # how long the kernel caches attributes and names if the mount may show another archive
_POLL_SECONDS = 0.05  # interval at which a request that waits for a statistic checks whether it was interrupted
_BEST_READ_SIZE = 1 << 20
_CAN_APPLY_ACLS = 1 << 19  # FUSE_CAP_POSIX_ACL
_STATFS_NAMES = ("f_blocks", "f_files", "f_bsize", "f_namemax", "f_frsize")  # the other fields of struct statvfs are 0

_library = mfusepy._libfuse

Result = TypeVar("Result")


class HighLevelSession:
    """One mount, from mounting to unmounting. It has the interface of session.Session."""

    def __init__(self, mountpoint: str, source: str, options: MountOptions) -> None:
        """Prepare to mount at `mountpoint`. `source` is the name shown in the mount table."""
        self._mountpoint = mountpoint
        self._source = source
        self._options = options
        self._connection = _Connection()
        self._thread = threading.Thread(target=self._run, name="gompfs-libfuse", daemon=True)
        # libfuse does not replace signal handlers that are already set. Python runs its handlers in the main thread, so
        # another thread must run libfuse.
        self._handlers = {number: signal.signal(number, self._on_signal) for number in _STOP}
        self._handlers[_WAKE_UP] = signal.signal(_WAKE_UP, lambda _number, _frame: None)

    def serve(self, content: Content, on_ready: Callable[[], None]) -> None:
        """Mount, and answer requests until the mount is gone. Calls `on_ready` when the mount begins to answer.

        SIGTERM, SIGINT and SIGHUP unmount. Must be called in the main thread. Raises MountError.
        """
        self._operations = _Operations(content, self._options, self._connection)
        self._thread.start()
        # Wait for libfuse's call of `begin` rather than access the mount: a daemon that is killed while it accesses its
        # own mount never ends.
        if self._connection.wait():
            on_ready()
        join_threads([self._thread])
        if self._connection.error is not None:
            raise MountError(self._connection.error, path=self._mountpoint)

    def _run(self) -> None:
        """Body of the thread that mounts. For libfuse, it is the main thread."""
        names = fuse_options(self._source, self._options)
        if (mfusepy.fuse_version_major, mfusepy.fuse_version_minor) >= _TAKES_THREADS:
            names |= _THREADS
        error = None
        try:
            _Fuse(
                self._operations,
                self._mountpoint,
                raw_fi=True,
                foreground=True,
                encoding=sys.getfilesystemencoding(),
                **names,
            )
        except RuntimeError as failure:
            error = f"libfuse ended with status {failure}"
        finally:
            self._connection.end(error)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        threading.Thread(target=self._stop, name="gompfs-stop", daemon=True).start()

    def _stop(self) -> None:
        """End libfuse's loop, which unmounts."""
        while self._connection.wait() and self._thread.is_alive():
            self._connection.stop(self._thread)
            self._thread.join(_POLL_SECONDS)

    def close(self) -> None:
        """Unmount if still mounted."""
        if self._thread.is_alive():
            self._stop()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)


class _Connection:
    """libfuse's state of a mount, from the kernel's INIT request on. Thread-safe."""

    def __init__(self) -> None:
        self.error: str | None = None
        self.is_stopping = False
        self._lock = threading.Lock()
        self._fuse: ctypes.c_void_p | None = None
        self._has_begun = False
        self._is_decided = threading.Event()

    def begin(self) -> None:
        """Record that the mount has begun. libfuse calls it in a request's thread."""
        self._fuse = ctypes.c_void_p(_library.fuse_get_context().contents.fuse)
        self._has_begun = True
        self._is_decided.set()

    def refuse(self, reason: str) -> None:
        """End libfuse's loop before the mount begins. libfuse calls it in a request's thread."""
        self.error = reason
        _library.fuse_exit(ctypes.c_void_p(_library.fuse_get_context().contents.fuse))

    def wait(self) -> bool:
        """Wait until the mount begins or fails. Returns whether it has begun."""
        self._is_decided.wait()
        return self._has_begun

    def stop(self, thread: threading.Thread) -> None:
        """End libfuse's loop. `thread` runs the loop."""
        self.is_stopping = True
        with self._lock:  # libfuse does not free its state while the lock is held
            if self._fuse is not None and thread.ident is not None:
                _library.fuse_exit(self._fuse)
                signal.pthread_kill(thread.ident, _WAKE_UP)

    def forget(self) -> None:
        """Drop the pointer to libfuse's state. libfuse calls it before it frees the state."""
        with self._lock:
            self._fuse = None

    def end(self, error: str | None) -> None:
        """Record that libfuse has returned, with an error or None.

        Once the mount has begun, an error does not count: libfuse has written its reason to standard error, the mount
        is gone, and an unmount while a request is under way is such an error too (ECONNABORTED).
        """
        if error is not None and self.error is None and not self._has_begun:
            self.error = f"libfuse cannot mount: {error}"
        self.forget()
        self._is_decided.set()

    def is_interrupted(self) -> bool:
        """Returns whether the process that made this thread's request was interrupted, or the mount ends."""
        return self.is_stopping or bool(_library.fuse_interrupted())

    def drop_attributes(self, path: bytes) -> None:
        """Drop what the kernel has cached of a path."""
        _library.fuse_invalidate_path(self._fuse, path)


def _answers(operation: Callable[..., Result]) -> Callable[..., Result]:
    """Wrap an operation: wait while a statistic is being computed, and map exceptions to OSError by errno_map."""

    @functools.wraps(operation)
    def answer(self: _Operations, *arguments: Any) -> Result:
        while True:
            try:
                return operation(self, *arguments)
            except NotReadyError as error:
                self.wait_for(error)
            except Exception as error:
                number = errno_of(error)
                if not is_expected(error):
                    name = operation.__name__
                    failures.add(name, number, error)
                    log.error("%s: %s", name, error, cause=error)
                raise OSError(number, os.strerror(number)) from error

    return answer


class _Operations(mfusepy.Operations):  # type: ignore[misc]
    """Answers requests by path, or by the node that open() has stored in the file's handle. Thread-safe."""

    use_ns = True

    def __init__(self, content: Content, options: MountOptions, connection: _Connection) -> None:
        self._content = content
        self._follows = options.follow
        self._checks_permissions = options.allow_other
        self._readahead = options.readahead
        self._connection = connection
        # If the mount may show another archive, a path can lead to another node later.
        keep = functools.lru_cache(0 if options.follow else _MAX_DIRECTORIES)
        self._directory = keep(lambda path: self._inode(path).ino)

    def init_with_config(self, limits: Any, config: Any) -> None:
        """Set libfuse's options. They hold for all files of the mount."""
        # The kernel uses the smaller of this value and the one that set_read_ahead writes, perhaps earlier.
        limits.max_readahead = self._readahead
        config.use_ino = config.nullpath_ok = 1
        config.kernel_cache = not self._follows
        seconds = _FOLLOW_SECONDS if self._follows else CACHE_SECONDS
        config.entry_timeout = config.negative_timeout = config.attr_timeout = seconds
        if self._checks_permissions and self._content.has_acls():
            if not limits.capable & _CAN_APPLY_ACLS:
                self._connection.refuse(NO_ACLS)
                return
            limits.want |= _CAN_APPLY_ACLS
        self._connection.begin()

    def destroy(self, _path: str) -> None:
        """Called when the mount is gone."""
        self._connection.forget()

    def wait_for(self, error: NotReadyError) -> None:
        """Wait until more of the content is known. Raises OSError (EINTR) if the caller was interrupted."""
        told = threading.Event()
        error.call_later(told.set)
        while not told.wait(_POLL_SECONDS):
            if self._connection.is_interrupted():
                raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))

    def _inode(self, path: bytes) -> Inode:
        """Returns the inode at a path. Symlinks are not followed: the kernel does that."""
        if path in (b"", b"/"):
            return self._content.of(ROOT_INO).inode(ROOT_INO)
        directory, _, name = path.rpartition(b"/")
        parent = self._directory(directory)
        inode = self._content.of(parent).lookup(parent, name, _library.fuse_get_context().contents.uid)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return inode

    # Names and attributes

    @_answers
    def getattr(self, path: str | None, info: Any = None) -> dict[str, int]:
        """Returns the fields of struct stat."""
        if info is not None:
            inode = self._content.of(info.fh).inode(info.fh)
        elif path is not None:
            inode = self._inode(os.fsencode(path))
        return {
            "st_ino": inode.ino,
            "st_mode": inode.mode,
            "st_nlink": inode.nlink,
            "st_uid": inode.uid,
            "st_gid": inode.gid,
            "st_rdev": inode.rdev,
            "st_size": inode.size,
            "st_blocks": -(-self._content.of(inode.ino).stored_size(inode) // 512),
            "st_blksize": _BEST_READ_SIZE,
            "st_atime": inode.mtime_ns,
            "st_mtime": inode.mtime_ns,
            "st_ctime": inode.mtime_ns,
        }

    @_answers
    def readlink(self, path: str) -> str:
        """Returns the target of a symlink."""
        node = self._inode(os.fsencode(path)).ino
        return os.fsdecode(self._content.of(node).readlink(node))

    @_answers
    def opendir(self, path: str) -> int:
        """Returns the handle of a directory: its node."""
        return self._inode(os.fsencode(path)).ino

    @_answers
    def readdir(self, _path: str | None, node: int) -> list[tuple[str, dict[str, int], int]]:
        """Returns the entries of a directory. mfusepy passes on only their types and inode numbers."""
        dots = {"st_mode": stat.S_IFDIR, "st_ino": node}
        entries = [(".", dots, 0), ("..", dots, 0)]
        entries += [
            (os.fsdecode(name), {"st_mode": inode.mode, "st_ino": inode.ino}, 0)
            for name, inode in self._content.of(node).children(node)
        ]
        return entries

    @_answers
    def statfs(self, _path: str) -> dict[str, int]:
        """Returns the fields of struct statvfs."""
        return dict(zip(_STATFS_NAMES, self._content.of(ROOT_INO).statfs(), strict=True))

    @_answers
    def getxattr(self, path: str, name: str) -> bytes:
        """Returns the value of an extended attribute."""
        if not self._content.has_xattrs():
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))  # ENOSYS makes the kernel stop asking
        value = self._xattrs(path).get(os.fsencode(name))
        if value is None:
            raise OSError(errno.ENODATA, os.strerror(errno.ENODATA))
        return value

    @_answers
    def listxattr(self, path: str) -> list[str]:
        """Returns the names of the extended attributes that the user may see."""
        uid = _library.fuse_get_context().contents.uid
        return [os.fsdecode(name) for name in visible_xattrs(self._xattrs(path), uid)]

    def _xattrs(self, path: str) -> dict[bytes, bytes]:
        node = self._inode(os.fsencode(path)).ino
        return self._content.of(node).xattrs(node)

    # Contents

    @_answers
    def open(self, path: str, info: Any) -> int:
        """Store the node of a file in its handle."""
        encoded = os.fsencode(path)
        node = info.fh = self._inode(encoded).ino
        is_virtual = self._content.of(node).cache_seconds(node) == 0
        # libfuse caches file contents by path, and the content at this path may be another at the next open.
        info.direct_io = is_virtual or self._follows
        if is_virtual:
            self._connection.drop_attributes(encoded)
        return 0

    @_answers
    def read(self, _path: str | None, size: int, file_offset: int, info: Any) -> Sequence[bytes | memoryview]:
        """Returns up to `size` bytes of a file, in pieces."""
        operations = self._content.of(info.fh)
        pieces = operations.read(info.fh, file_offset, size)
        operations.add_read_bytes(sum(map(len, pieces)))
        return pieces

    @_answers
    def lseek(self, _path: bytes | None, file_offset: int, whence: int, info: Any) -> int:
        """Returns the offset of the next data or the next hole. libfuse passes on no other kinds of seek."""
        return self._content.of(info.fh).seek(info.fh, file_offset, whence)


class _Fuse(mfusepy.FUSE):  # type: ignore[misc]
    """mfusepy's binding, with reads that copy the data only once, and with lseek, which mfusepy lacks."""

    def lseek(self, path: bytes | None, file_offset: int, whence: int, info: Any) -> int:
        """Pass lseek on. mfusepy only declares it."""
        return int(self.operations.lseek(path, file_offset, whence, info.contents))

    def read(self, path: bytes | None, buffer: Any, size: int, file_offset: int, info: Any) -> int:
        """Copy the pieces into libfuse's buffer. Returns the number of bytes."""
        pieces = self.operations.read(path, size, file_offset, info.contents)
        target = memoryview((ctypes.c_char * size).from_address(ctypes.addressof(buffer.contents))).cast("B")
        end = 0
        for piece in pieces:
            start, end = end, end + len(piece)
            target[start:end] = piece
        return end
