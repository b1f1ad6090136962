"""Answers the requests of the kernel that C++ cannot answer by itself, as values rather than FUSE messages."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from gompfs._native.fuse import FuseServer, Listing, ReplyCache
from gompfs.errors import GompfsError
from gompfs.model import Inode
from gompfs.mount.failures import failures
from gompfs.mount.fuse.directories import Directories
from gompfs.mount.fuse.errno_map import errno_of, is_expected
from gompfs.mount.not_ready import NotReadyError
from gompfs.mount.tree.content import CACHE_SECONDS, Content, FileSystemSize
from gompfs.mount.tree.operations import visible_xattrs

if TYPE_CHECKING:
    from gompfs.mount.fuse.passthrough import OpenFile, PassthroughFiles

log = logging.getLogger(__name__)

_MAX_CACHED = 16 << 20  # bytes of cached replies


class RequestLoop:
    """Answers the requests from the /dev/fuse descriptor of one mount until it is unmounted.

    Several threads may run it.
    """

    def __init__(self, device: int, content: Content, passthrough: PassthroughFiles | None) -> None:
        """Serve the /dev/fuse descriptor `device`.

        `passthrough` opens the files if the mount shows one whole archive.
        """
        self._directories = Directories(content)
        replies = ReplyCache(_MAX_CACHED)
        handlers = _Handlers(content, passthrough, self._directories, replies)
        self._server = FuseServer(device, content.readers, self._directories.listings, replies, handlers)

    def run(self) -> None:
        """Answer requests until the mount is gone."""
        error = self._server.run()
        if error:
            log.error("the mount ends, because reading requests failed: %s", os.strerror(error))

    def close(self) -> None:
        """Free the caches of the loop. No thread may run it any more."""
        self._server.close()
        self._directories.close()


class _Node(NamedTuple):
    """A node as the kernel is told of it. An inode of None lets the kernel cache that the name does not exist."""

    inode: Inode | None
    cache_seconds: int
    stored_size: int | None = None
    """How many bytes of a file are not in holes; None for all."""


class _Handlers:
    """Implements gompfs._native.fuse.Handlers. Thread-safe.

    OPENDIR has no handler, so the answer is ENOSYS, and so it is for OPEN if no files are passed through. The kernel
    then opens and closes by itself, which saves two of three requests for a small file.
    """

    def __init__(
        self, content: Content, passthrough: PassthroughFiles | None, directories: Directories, replies: ReplyCache
    ) -> None:
        self._content = content
        self._operations = content.of
        self._directories = directories
        self._replies = replies
        self._has_xattrs = content.has_xattrs()
        self._knows_xattrs = False
        self._passthrough = None
        if passthrough is not None and content.only is not None:
            self._passthrough = passthrough
            content.readers.open_files_below(passthrough.least_size)

    # Names and attributes

    def lookup(self, parent: int, name: bytes, uid: int) -> _Node:
        """See Handlers.lookup."""
        operations = self._operations(parent)
        inode = operations.lookup(parent, name, uid)
        seconds = operations.cache_seconds(parent)
        if inode is None:
            return _Node(None, seconds or CACHE_SECONDS)
        owner = self._operations(inode.ino)
        return _Node(inode, min(seconds, owner.cache_seconds(inode.ino)), owner.stored_size(inode))

    def getattr(self, node: int) -> _Node:
        """See Handlers.getattr."""
        operations = self._operations(node)
        inode = operations.inode(node)
        return _Node(inode, operations.cache_seconds(node), operations.stored_size(inode))

    def readlink(self, node: int) -> bytes:
        """See Handlers.readlink."""
        return self._operations(node).readlink(node)

    def readdir(self, node: int) -> Listing:
        """See Handlers.readdir."""
        return self._directories.listing(node)

    def statfs(self, node: int) -> FileSystemSize:
        """See Handlers.statfs."""
        return self._operations(node).statfs()

    def getxattr(self, node: int, name: bytes) -> bytes:
        """See Handlers.getxattr."""
        if not self._has_xattrs:
            raise _error(errno.ENOSYS)  # ENOSYS makes the kernel stop asking: `ls -l` asks for every file
        value = self._xattrs(node).get(name)
        if value is None:
            raise _error(errno.ENODATA)
        return value

    def listxattr(self, node: int, uid: int) -> tuple[list[bytes], bool]:
        """See Handlers.listxattr."""
        names = self._xattrs(node)
        is_same_for_all = len(visible_xattrs(names, 0)) == len(visible_xattrs(names, 1))
        return visible_xattrs(names, uid), is_same_for_all

    def _xattrs(self, node: int) -> dict[bytes, bytes]:
        only = self._content.only
        if only is not None and not self._knows_xattrs:
            self._knows_xattrs = True
            try:
                self._replies.set_nodes_with_xattrs(only.archive.index.inodes_with_xattrs())
            except GompfsError as error:  # the attributes of other nodes can still be read
                log.warning("extended attributes are looked up one by one: %s", error)
        return self._operations(node).xattrs(node)

    # Contents

    def open(self, node: int) -> OpenFile:
        """See Handlers.open."""
        if self._passthrough is None:
            raise _error(errno.ENOSYS)
        return self._passthrough.open(self._operations(node).archive_inode(node))

    def release(self, node: int) -> None:
        """See Handlers.release."""
        if self._passthrough is None:
            raise _error(errno.ENOSYS)
        self._passthrough.release(node)

    def read(self, node: int, file_offset: int, size: int) -> Sequence[bytes | memoryview]:
        """See Handlers.read."""
        operations = self._operations(node)
        pieces = operations.read(node, file_offset, size)
        operations.add_read_bytes(sum(map(len, pieces)))
        return pieces

    def seek(self, node: int, file_offset: int, whence: int) -> int:
        """See Handlers.seek."""
        return self._operations(node).seek(node, file_offset, whence)

    # Replies

    def lasts(self, node: int) -> bool:
        """See Handlers.lasts. Returns False for a node that no longer exists."""
        try:
            return self._operations(node).cache_seconds(node) == CACHE_SECONDS
        except (GompfsError, OSError):
            return False

    def failed(self, operation: str, error: BaseException, answer_again: Callable[[], None]) -> int | None:
        """See Handlers.failed. A request that needs a text that is still being computed is parked."""
        if isinstance(error, NotReadyError):
            error.call_later(answer_again)
            return None
        number = errno_of(error)
        if not is_expected(error):
            failures.add(operation, number, error)
            log.error("%s: %s", operation, error, exc_info=error if log.isEnabledFor(logging.DEBUG) else None)
        return number

    def refused(self, number: int) -> None:
        """See Handlers.refused."""
        if number not in (errno.ENOENT, errno.ENODEV):  # the process that made the request is gone
            log.error("the kernel refused a reply: %s", os.strerror(number))


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
