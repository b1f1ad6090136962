"""Answers the kernel's requests, by node id: what the mount's threads do all day."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Sequence

from gompfs.mount.archive_set import ArchiveSet
from gompfs.mount.directories import Directories
from gompfs.mount.errno_map import errno_of, is_expected
from gompfs.mount.protocol import (
    CACHE_SECONDS,
    INTERRUPT_REQUEST,
    READ_REQUEST,
    REPLY_HEADER,
    REQUEST_HEADER,
    STATFS_REPLY,
    WITHOUT_REPLY,
    XATTR_REQUEST,
    XATTR_SIZE_REPLY,
    Opcode,
    attributes_reply,
    entry_reply,
    pack_directory,
    pack_dots,
)
from gompfs.mount.snapshots import Snapshots
from gompfs.mount.virtual_files import NotReadyError

log = logging.getLogger(__name__)

_ATTRIBUTE_BLOCK_SIZE = 1 << 20
_BUFFER_SIZE = (1 << 20) + (1 << 16)  # the kernel insists on room for the largest write, though none comes
_MAX_PIECES = os.sysconf("SC_IOV_MAX") - 1

Pieces = Sequence[bytes | memoryview]
Handler = Callable[[int, memoryview], Pieces]


class RequestLoop:
    """Takes requests from the device of one mount until it is unmounted; several threads may run it at once.

    OPEN and OPENDIR are not answered: the kernel then opens and closes files and directories by itself, which
    spares two of three requests for a small file.
    """

    def __init__(self, device: int, content: Snapshots | ArchiveSet) -> None:
        """Serve the open /dev/fuse descriptor `device`."""
        self._device = device
        self._content = content
        self._operations = content.of
        self._directories = Directories(content, _ATTRIBUTE_BLOCK_SIZE)
        self._waiting: set[int] = set()  # requests that are put aside, by the kernel's number
        self._handlers: dict[int, Handler] = {
            Opcode.LOOKUP: self._lookup,
            Opcode.GETATTR: self._getattr,
            Opcode.READLINK: self._readlink,
            Opcode.READ: self._read,
            Opcode.STATFS: self._statfs,
            Opcode.LISTXATTR: self._listxattr,
            Opcode.READDIR: self._readdir,
            Opcode.READDIRPLUS: self._readdirplus,
            Opcode.DESTROY: self._nothing,
        }
        if content.has_xattrs():
            # Unanswered, the kernel stops asking, as `ls -l` does for every file.
            self._handlers[Opcode.GETXATTR] = self._getxattr

    def run(self) -> None:
        """Answer requests until the mount is gone."""
        error = self._content.readers.run(self._device, _BUFFER_SIZE, self._answer)
        if error:
            log.error("the mount ends: %s", os.strerror(error))

    def close(self) -> None:
        """Let go of what the loop keeps, when no thread runs it any more."""
        self._waiting.clear()
        self._directories.close()

    def _answer(self, request: bytes) -> None:
        """Answer what is no read of blocks that are decoded already; later, for what is still being computed."""
        _, opcode, unique, node, *_ = REQUEST_HEADER.unpack_from(request)
        if opcode in WITHOUT_REPLY:
            if opcode == Opcode.INTERRUPT:
                self._interrupt(*INTERRUPT_REQUEST.unpack_from(request, REQUEST_HEADER.size))
            return
        handler = self._handlers.get(opcode)
        status = -errno.ENOSYS
        pieces: Pieces = ()
        if handler is not None:
            try:
                pieces = handler(node, memoryview(request)[REQUEST_HEADER.size :])
                status = 0
            except NotReadyError as error:
                self._waiting.add(unique)
                error.call_later(lambda: self._answer_waiting(unique, request))
                return
            except Exception as error:
                status = -errno_of(error)
                if not is_expected(error):
                    log.error("%s: %s", Opcode(opcode).name.lower(), error, exc_info=log.isEnabledFor(logging.DEBUG))
        self._reply(unique, status, pieces)

    def _answer_waiting(self, unique: int, request: bytes) -> None:
        """Answer a request that was put aside, unless whoever asked has given up."""
        if self._stop_waiting(unique):
            self._answer(request)

    def _interrupt(self, unique: int) -> None:
        """Whoever asked was interrupted: it should not wait for what is being computed."""
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
            if error.errno not in (errno.ENOENT, errno.ENODEV):  # whoever asked has gone
                log.error("a reply was refused: %s", error)

    # Names and attributes

    def _lookup(self, node: int, data: memoryview) -> Pieces:
        operations = self._operations(node)
        inode = operations.lookup(node, bytes(data[:-1]))
        seconds = operations.cache_seconds(node)
        if inode is None:
            return (entry_reply(None, 0, seconds or CACHE_SECONDS),)
        seconds = min(seconds, self._operations(inode.ino).cache_seconds(inode.ino))
        return (entry_reply(inode, _ATTRIBUTE_BLOCK_SIZE, seconds),)

    def _getattr(self, node: int, _data: memoryview) -> Pieces:
        operations = self._operations(node)
        return (attributes_reply(operations.inode(node), _ATTRIBUTE_BLOCK_SIZE, operations.cache_seconds(node)),)

    def _readlink(self, node: int, _data: memoryview) -> Pieces:
        return (self._operations(node).readlink(node),)

    def _readdir(self, node: int, data: memoryview) -> Pieces:
        packed = pack_dots(node, with_attributes=False) + pack_directory(
            self._operations(node).children(node), 2, _ATTRIBUTE_BLOCK_SIZE, 0, with_attributes=False
        )
        return _entries_that_fit(packed, data)

    def _readdirplus(self, node: int, data: memoryview) -> Pieces:
        return _entries_that_fit(self._directories.listing(node), data)

    def _statfs(self, node: int, _data: memoryview) -> Pieces:
        return (STATFS_REPLY.pack(*self._operations(node).statfs()),)

    def _getxattr(self, node: int, data: memoryview) -> Pieces:
        room, _ = XATTR_REQUEST.unpack_from(data)
        name = bytes(data[XATTR_REQUEST.size : -1])
        value = self._operations(node).xattrs(node).get(name)
        if value is None:
            raise OSError(errno.ENODATA, os.strerror(errno.ENODATA))
        return _xattr_reply(value, room)

    def _listxattr(self, node: int, data: memoryview) -> Pieces:
        room, _ = XATTR_REQUEST.unpack_from(data)
        return _xattr_reply(b"".join(name + b"\0" for name in self._operations(node).xattrs(node)), room)

    # Contents

    def _read(self, node: int, data: memoryview) -> Pieces:
        _, file_offset, size, _ = READ_REQUEST.unpack_from(data)
        operations = self._operations(node)
        pieces = operations.read(node, file_offset, size)
        operations.add_read_bytes(sum(map(len, pieces)))
        return pieces

    def _nothing(self, _node: int, _data: memoryview) -> Pieces:
        return ()


def _entries_that_fit(packed: list[bytes], data: memoryview) -> Pieces:
    """Entries of a directory from the asked position on, as many as the reply has room for."""
    _, position, room, _ = READ_REQUEST.unpack_from(data)
    entries = packed[position:]
    if sum(map(len, entries)) > room:
        size = 0
        for count, entry in enumerate(entries):
            size += len(entry)
            if size > room:
                del entries[count:]
                break
    return (b"".join(entries),)


def _xattr_reply(value: bytes, room: int) -> Pieces:
    if room == 0:
        return (XATTR_SIZE_REPLY.pack(len(value), 0),)
    if len(value) > room:
        raise OSError(errno.ERANGE, os.strerror(errno.ERANGE))
    return (value,)
