"""The request loop: takes requests from the kernel and answers those that C++ cannot, by node id."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gompfs._native.fuse import ReplyCache, answer_requests, attributes_reply, entry_reply
from gompfs.errors import GompfsError
from gompfs.mount.fuse.directories import Directories
from gompfs.mount.fuse.errno_map import errno_of, is_expected
from gompfs.mount.fuse.protocol import (
    BUFFER_SIZE,
    CACHE_SECONDS,
    INTERRUPT_REQUEST,
    READ_REQUEST,
    RELEASE_REQUEST,
    REPLY_HEADER,
    REQUEST_HEADER,
    SEEK_REPLY,
    SEEK_REQUEST,
    STATFS_REPLY,
    WITHOUT_REPLY,
    XATTR_REQUEST,
    XATTR_SIZE_REPLY,
    Opcode,
)
from gompfs.mount.not_ready import NotReadyError
from gompfs.mount.tree.archive_set import ArchiveSet
from gompfs.mount.tree.operations import visible_xattrs
from gompfs.mount.tree.snapshots import Snapshots

if TYPE_CHECKING:
    from gompfs.mount.fuse.passthrough import PassthroughFiles

log = logging.getLogger(__name__)

_MAX_PIECES = os.sysconf("SC_IOV_MAX") - 1
_MAX_CACHED = 16 << 20  # bytes of cached replies
_LASTING = {Opcode.GETATTR, Opcode.READLINK, Opcode.STATFS, Opcode.GETXATTR, Opcode.LISTXATTR}

Pieces = Sequence[bytes | memoryview]
Handler = Callable[[int, memoryview, int], Pieces]  # called with the node, the rest of the request, and the user id


class RequestLoop:
    """Answers the requests from the /dev/fuse descriptor of one mount until it is unmounted.

    Several threads may run it.

    OPENDIR is answered with ENOSYS, and so is OPEN if no files are passed through. The kernel then opens and closes by
    itself, which saves two of three requests for a small file.
    """

    def __init__(
        self, device: int, content: Snapshots | ArchiveSet, passthrough: PassthroughFiles | None
    ) -> None:
        """Serve the /dev/fuse descriptor `device`.

        `passthrough` opens the files if the mount shows one whole archive.
        """
        self._device = device
        self._content = content
        self._operations = content.of
        self._directories = Directories(content)
        self._replies = ReplyCache(_MAX_CACHED)
        self._knows_xattrs = False
        self._waiting: set[int] = set()  # `unique` of the parked requests
        self._handlers: dict[int, Handler] = {
            Opcode.LOOKUP: self._lookup,
            Opcode.GETATTR: self._getattr,
            Opcode.READLINK: self._readlink,
            Opcode.READ: self._read,
            Opcode.LSEEK: self._lseek,
            Opcode.STATFS: self._statfs,
            Opcode.LISTXATTR: self._listxattr,
            Opcode.READDIRPLUS: self._readdirplus,
            Opcode.DESTROY: self._nothing,
        }
        if content.has_xattrs():
            # Without this handler, the answer is ENOSYS and the kernel stops asking: `ls -l` asks for every file.
            self._handlers[Opcode.GETXATTR] = self._getxattr
        if passthrough is not None and content.only is not None:
            self._passthrough = passthrough
            self._handlers |= {Opcode.OPEN: self._open, Opcode.RELEASE: self._release}
            content.only.reader.open_files_below(passthrough.least_size)

    def run(self) -> None:
        """Answer requests until the mount is gone."""
        sources = (self._content.readers, self._directories.listings, self._replies)
        error = answer_requests(self._device, *sources, BUFFER_SIZE, self._answer)
        if error:
            log.error("the mount ends, because reading requests failed: %s", os.strerror(error))

    def close(self) -> None:
        """Free the caches of the loop. No thread may run it any more."""
        self._waiting.clear()
        self._directories.close()

    def _answer(self, request: bytes) -> None:
        """Answer a request that C++ could not answer. If it needs a text that is still being computed, park it."""
        _, opcode, unique, node, uid, *_ = REQUEST_HEADER.unpack_from(request)
        if opcode in WITHOUT_REPLY:
            if opcode == Opcode.INTERRUPT:
                self._interrupt(*INTERRUPT_REQUEST.unpack_from(request, REQUEST_HEADER.size))
            return
        handler = self._handlers.get(opcode)
        status = -errno.ENOSYS
        pieces: Pieces = ()
        lasts = False
        if handler is not None:
            try:
                pieces = handler(node, memoryview(request)[REQUEST_HEADER.size :], uid)
                status = 0
                lasts = opcode in _LASTING and self._lasts(node) and not self._depends_on_user(opcode, node)
            except NotReadyError as error:
                self._waiting.add(unique)
                error.call_later(lambda: self._answer_waiting(unique, request))
                return
            except Exception as error:
                pieces, status = (), -errno_of(error)
                lasts = status == -errno.ENODATA and self._lasts(node)
                if not is_expected(error):
                    log.error("%s: %s", Opcode(opcode).name.lower(), error, exc_info=log.isEnabledFor(logging.DEBUG))
        if lasts:
            self._replies.insert(request, status, b"".join(pieces))
        self._reply(unique, status, pieces)

    def _lasts(self, node: int) -> bool:
        """Returns whether replies about a node stay valid; False for a node that no longer exists."""
        try:
            return self._operations(node).cache_seconds(node) == CACHE_SECONDS
        except (GompfsError, OSError):
            return False

    def _answer_waiting(self, unique: int, request: bytes) -> None:
        """Answer a parked request, unless it was interrupted."""
        if self._stop_waiting(unique):
            self._answer(request)

    def _interrupt(self, unique: int) -> None:
        """Handle INTERRUPT: answer a parked request with EINTR now. Other requests are answered soon anyway."""
        if self._stop_waiting(unique):
            self._reply(unique, -errno.EINTR, ())

    def _stop_waiting(self, unique: int) -> bool:
        try:
            self._waiting.remove(unique)
        except KeyError:
            return False
        return True

    def _reply(self, unique: int, status: int, pieces: Pieces) -> None:
        if len(pieces) > _MAX_PIECES:
            pieces = [b"".join(pieces)]
        header = REPLY_HEADER.pack(REPLY_HEADER.size + sum(map(len, pieces)), status, unique)
        try:
            os.writev(self._device, [header, *pieces])
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):  # the process that made the request is gone
                log.error("the kernel refused a reply: %s", error)

    # Names and attributes

    def _lookup(self, node: int, data: memoryview, uid: int) -> Pieces:
        operations = self._operations(node)
        inode = operations.lookup(node, bytes(data[:-1]), uid)
        seconds = operations.cache_seconds(node)
        if inode is None:
            return (entry_reply(None, seconds or CACHE_SECONDS),)
        owner = self._operations(inode.ino)
        return (entry_reply(inode, min(seconds, owner.cache_seconds(inode.ino)), owner.stored_size(inode)),)

    def _getattr(self, node: int, _data: memoryview, _uid: int) -> Pieces:
        operations = self._operations(node)
        inode = operations.inode(node)
        return (attributes_reply(inode, operations.cache_seconds(node), operations.stored_size(inode)),)

    def _readlink(self, node: int, _data: memoryview, _uid: int) -> Pieces:
        return (self._operations(node).readlink(node),)

    def _readdirplus(self, node: int, data: memoryview, _uid: int) -> Pieces:
        _, position, capacity, _ = READ_REQUEST.unpack_from(data)
        return (self._directories.entries(node, position, capacity),)

    def _statfs(self, node: int, _data: memoryview, _uid: int) -> Pieces:
        return (STATFS_REPLY.pack(*self._operations(node).statfs()),)

    def _getxattr(self, node: int, data: memoryview, _uid: int) -> Pieces:
        capacity, _ = XATTR_REQUEST.unpack_from(data)
        name = bytes(data[XATTR_REQUEST.size : -1])
        value = self._xattrs(node).get(name)
        if value is None:
            raise OSError(errno.ENODATA, os.strerror(errno.ENODATA))
        return _xattr_reply(value, capacity)

    def _listxattr(self, node: int, data: memoryview, uid: int) -> Pieces:
        capacity, _ = XATTR_REQUEST.unpack_from(data)
        return _xattr_reply(b"".join(name + b"\0" for name in visible_xattrs(self._xattrs(node), uid)), capacity)

    def _depends_on_user(self, opcode: int, node: int) -> bool:
        """Returns whether the reply depends on the user id."""
        if opcode != Opcode.LISTXATTR:
            return False
        names = self._xattrs(node)
        return len(visible_xattrs(names, 0)) != len(visible_xattrs(names, 1))

    def _xattrs(self, node: int) -> dict[bytes, bytes]:
        only = self._content.only
        if only is not None and not self._knows_xattrs:
            self._replies.set_nodes_with_xattrs(only.archive.inodes_with_xattrs())
            self._knows_xattrs = True
        return self._operations(node).xattrs(node)

    # Contents

    def _open(self, node: int, _data: memoryview, _uid: int) -> Pieces:
        return (self._passthrough.open(self._operations(node).archive_inode(node)),)

    def _release(self, node: int, data: memoryview, _uid: int) -> Pieces:
        self._passthrough.release(node, *RELEASE_REQUEST.unpack_from(data))
        return ()

    def _read(self, node: int, data: memoryview, _uid: int) -> Pieces:
        _, file_offset, size, _ = READ_REQUEST.unpack_from(data)
        operations = self._operations(node)
        pieces = operations.read(node, file_offset, size)
        operations.add_read_bytes(sum(map(len, pieces)))
        return pieces

    def _lseek(self, node: int, data: memoryview, _uid: int) -> Pieces:
        """Handle SEEK_DATA and SEEK_HOLE, also in passed-through files. The kernel handles all other kinds of seek."""
        _, file_offset, whence, _ = SEEK_REQUEST.unpack_from(data)
        return (SEEK_REPLY.pack(self._operations(node).seek(node, file_offset, whence)),)

    def _nothing(self, _node: int, _data: memoryview, _uid: int) -> Pieces:
        return ()


def _xattr_reply(value: bytes, capacity: int) -> Pieces:
    if capacity == 0:
        return (XATTR_SIZE_REPLY.pack(len(value), 0),)
    if len(value) > capacity:
        raise OSError(errno.ERANGE, os.strerror(errno.ERANGE))
    return (value,)
