"""The binding to libfuse 3 through mfusepy's high-level API; nothing else imports mfusepy.

What makes it fast, by measured effect: requests of 1 MiB (see kernel_tuning), one copy from the block cache
straight into libfuse's buffer, directory listings that bring the attributes along (readdirplus), the kernel's
caches kept for an hour since an archive never changes, and request threads that are Python's own: libfuse's
would build a thread state anew for every request.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import threading
from collections.abc import Callable
from typing import Any

import mfusepy

from gompfs.mount.errno_map import errno_of, is_expected
from gompfs.mount.operations import Operations
from gompfs.mount.tree import Node
from gompfs.options import MountOptions

log = logging.getLogger(__name__)

_CACHE_SECONDS = 3600.0
_NUM_THREADS = 4
_READDIRPLUS_AUTO = 1 << 14
_FILL_DIR_PLUS = 2
_SIGNALLED = 8  # fuse_main's status after a signal asked it to end


class _FuseBuffer(ctypes.Structure):
    """struct fuse_buf, with room for what later versions append."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("mem", ctypes.c_void_p),
        ("fd", ctypes.c_int),
        ("pos", ctypes.c_int64),
        ("reserved", ctypes.c_uint64 * 8),
    )


class _Requests:
    """The callbacks that libfuse finds implemented; mfusepy asks for the names, Binding has the code."""

    use_ns = True

    def __init__(self, operations: Operations, has_xattrs: bool) -> None:
        self.archive_operations = operations
        names = ["init", "destroy", "getattr", "readlink", "open", "read", "readdir", "statfs"]
        for name in names + (["getxattr", "listxattr"] if has_xattrs else []):
            setattr(self, name, self._never_called)

    def _never_called(self) -> None:
        raise AssertionError("Binding answers every request itself")


class Binding(mfusepy.FUSE):  # type: ignore[misc]
    """Runs the request loop of one mount until it is unmounted."""

    def __init__(
        self, operations: Operations, mountpoint: str, options: MountOptions, on_ready: Callable[[], None]
    ) -> None:
        """Mount and serve; returns after the unmount. `on_ready` is called when the kernel has the mount."""
        self._operations = operations
        self._on_ready = on_ready
        self._threads: list[threading.Thread] = []
        self._failure: BaseException | None = None
        has_xattrs = operations.archive.has_xattrs()
        flags = {name: True for name in ("allow_other", "auto_unmount") if getattr(options, name)}
        if options.allow_other:
            flags["default_permissions"] = True
        try:
            super().__init__(
                _Requests(operations, has_xattrs),
                mountpoint,
                foreground=True,
                nothreads=True,
                ro=True,
                subtype="gompfs",
                fsname=(options.fsname or str(operations.archive.path)).replace(",", "\\,"),
                **flags,
            )
        except RuntimeError as error:
            if error.args != (_SIGNALLED,):
                raise
        if self._failure is not None:
            raise self._failure

    def _wrapper(self, func: Callable[..., int | None], *args: Any, **_: Any) -> int:
        try:
            return func(*args) or 0
        except Exception as error:
            if not is_expected(error):
                log.error("%s: %s", func.__name__, error, exc_info=log.isEnabledFor(logging.DEBUG))
            return -errno_of(error)
        except BaseException as error:
            self._failure = error
            mfusepy.fuse_exit()
            return -errno.EIO

    # Start and end

    def init_fuse_3(self, conn: Any, config: Any) -> int:
        """Set the kernel's caching, and start the other request threads."""
        for name in ("entry_timeout", "attr_timeout", "negative_timeout"):
            setattr(config.contents, name, _CACHE_SECONDS)
        for name in ("use_ino", "readdir_ino", "kernel_cache"):
            setattr(config.contents, name, 1)
        conn.contents.want &= ~_READDIRPLUS_AUTO
        conn.contents.max_background = 64
        context = mfusepy._libfuse.fuse_get_context()
        library = mfusepy._libfuse
        library.fuse_get_session.restype = ctypes.c_void_p
        session = ctypes.c_void_p(library.fuse_get_session(ctypes.c_void_p(context.contents.fuse)))
        for number in range(1, _NUM_THREADS):
            thread = threading.Thread(target=_serve, args=(library, session), name=f"gompfs-request-{number}")
            self._threads.append(thread)
            thread.start()
        self._on_ready()
        return 0

    def destroy(self, private_data: Any) -> int:
        """Wait for the other request threads, which end when the mount does."""
        for thread in self._threads:
            thread.join()
        return 0

    # Requests

    def getattr_fuse_3(self, path: bytes, buffer: Any, info: Any) -> int:
        """The attributes of a path."""
        ctypes.memmove(buffer, self._attributes(self._operations.node(path)), ctypes.sizeof(mfusepy.c_stat))
        return 0

    def _attributes(self, node: Node) -> Any:
        """A reference to struct stat of a node; that of an archive's entry is made once."""
        if node.packed is not None:
            return node.packed
        inode = node.inode
        status = mfusepy.c_stat()
        status.st_ino = inode.ino
        status.st_mode = inode.mode
        status.st_nlink = inode.nlink
        status.st_uid = inode.uid
        status.st_gid = inode.gid
        status.st_rdev = inode.rdev
        status.st_size = self._operations.size(node)
        status.st_blksize = 1 << 20
        status.st_blocks = -(-status.st_size // 512)
        for name in ("st_atimespec", "st_mtimespec", "st_ctimespec"):
            time = getattr(status, name)
            time.tv_sec, time.tv_nsec = divmod(inode.mtime_ns, 1_000_000_000)
        reference = ctypes.byref(status)
        if node.virtual is None:
            node.packed = reference
        return reference

    def readdir_fuse_3(self, path: bytes, buffer: Any, filler: Any, start: int, info: Any, flags: int) -> int:
        """Entries from position `start` on, with their attributes, until the buffer is full."""
        children = self._operations.children(path)
        plus = _FILL_DIR_PLUS if flags else 0
        for position in range(start, len(children) + 2):
            if position < 2:
                full = filler(buffer, (b".", b"..")[position], None, position + 1, 0)
            else:
                name, node = children[position - 2]
                full = filler(buffer, name, self._attributes(node), position + 1, plus)
            if full:
                break
        return 0

    def open(self, path: bytes, info: Any) -> int:
        """Give the file its handle; virtual files bypass the page cache, since their size is not known."""
        fields = info.contents
        node = self._operations.open(path, fields.flags)
        fields.fh = node.handle
        if node.virtual is not None:
            fields.direct_io = 1
        else:
            fields.keep_cache = 1
            fields.noflush = 1
        return 0

    def read(self, path: bytes, buffer: Any, size: int, file_offset: int, info: Any) -> int:
        """Copy bytes from decoded blocks into the buffer that libfuse sends to the kernel."""
        room = (ctypes.c_char * size).from_address(ctypes.addressof(buffer.contents))
        return self._operations.read_into(info.contents.fh, file_offset, memoryview(room).cast("B"))

    def readlink(self, path: bytes, buffer: Any, size: int) -> int:
        """The target of a symlink, ended by a NUL."""
        target = self._operations.readlink(path)[: size - 1] + b"\0"
        ctypes.memmove(buffer, target, len(target))
        return 0

    def statfs(self, path: bytes, buffer: Any) -> int:
        """The figures of statvfs."""
        for name, value in self._operations.statfs().items():
            setattr(buffer.contents, name, value)
        return 0

    def getxattr(self, path: bytes, name: bytes, buffer: Any, size: int, *_: Any) -> int:
        """One extended attribute, or its size where no room is given."""
        value = self._operations.xattrs(path).get(name)
        return -errno.ENODATA if value is None else _give(value, buffer, size)

    def listxattr(self, path: bytes, buffer: Any, size: int) -> int:
        """The names of the extended attributes, each ended by a NUL."""
        return _give(b"".join(name + b"\0" for name in self._operations.xattrs(path)), buffer, size)


def _give(value: bytes, buffer: Any, size: int) -> int:
    if size == 0:
        return len(value)
    if len(value) > size:
        return -errno.ERANGE
    ctypes.memmove(buffer, value, len(value))
    return len(value)


def _serve(library: Any, session: ctypes.c_void_p) -> None:
    """Take requests until the session ends."""
    buffer = _FuseBuffer()
    while not library.fuse_session_exited(session):
        received = library.fuse_session_receive_buf(session, ctypes.byref(buffer))
        if received == -errno.EINTR:
            continue
        if received <= 0:
            break
        library.fuse_session_process_buf(session, ctypes.byref(buffer))
