"""Answers the requests of the kernel that C++ cannot answer by itself, as values rather than FUSE messages."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence

from gompfs._native.fuse import FuseServer, Listing, ReplyCache
from gompfs.errors import GompfsError
from gompfs.light_types import TYPE_CHECKING, NamedTuple
from gompfs.log import Logger
from gompfs.model import Inode
from gompfs.mount.failures import failures
from gompfs.mount.fuse.directories import Directories
from gompfs.mount.fuse.errno_map import errno_of, is_expected
from gompfs.mount.not_ready import NotReadyError
from gompfs.mount.tree.content import CACHE_SECONDS, Content, FileSystemSize
from gompfs.mount.tree.operations import visible_xattrs

if TYPE_CHECKING:
    from gompfs.mount.fuse.passthrough import OpenFile, PassthroughFiles

log = Logger(__name__)

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
    """Answers the requests that the C++ of gompfs._native.fuse.FuseServer cannot answer. Thread-safe.

    A method that raises gives an error reply: see `failed`.

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
        """Returns the entry of a directory that has a name, for a user. None as inode: there is no such name."""
        operations = self._operations(parent)
        inode = operations.lookup(parent, name, uid)
        seconds = operations.cache_seconds(parent)
        if inode is None:
            return _Node(None, seconds or CACHE_SECONDS)
        owner = self._operations(inode.ino)
        return _Node(inode, min(seconds, owner.cache_seconds(inode.ino)), owner.stored_size(inode))

    def getattr(self, node: int) -> _Node:
        """Returns a node, which exists."""
        operations = self._operations(node)
        inode = operations.inode(node)
        return _Node(inode, operations.cache_seconds(node), operations.stored_size(inode))

    def readlink(self, node: int) -> bytes:
        """Returns the target of a symlink."""
        return self._operations(node).readlink(node)

    def readdir(self, node: int) -> Listing:
        """Returns the entries of a directory."""
        return self._directories.listing(node)

    def statfs(self, node: int) -> FileSystemSize:
        """Returns the size of the file system."""
        return self._operations(node).statfs()

    def getxattr(self, node: int, name: bytes) -> bytes:
        """Returns the value of an extended attribute."""
        if not self._has_xattrs:
            raise _error(errno.ENOSYS)  # ENOSYS makes the kernel stop asking: `ls -l` asks for every file
        value = self._xattrs(node).get(name)
        if value is None:
            raise _error(errno.ENODATA)
        return value

    def listxattr(self, node: int, uid: int) -> tuple[list[bytes], bool]:
        """Returns the names of extended attributes that a user may see, and whether all users see the same ones."""
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
        """Opens a file. Returns whether `release` must be called for the file, and the file's backing file."""
        if self._passthrough is None:
            raise _error(errno.ENOSYS)
        return self._passthrough.open(self._operations(node).archive_inode(node))

    def release(self, node: int) -> None:
        """Closes a file."""
        if self._passthrough is None:
            raise _error(errno.ENOSYS)
        self._passthrough.release(node)

    def read(self, node: int, file_offset: int, size: int) -> Sequence[bytes | memoryview]:
        """Returns up to `size` bytes of a file, in pieces."""
        operations = self._operations(node)
        pieces = operations.read(node, file_offset, size)
        operations.add_read_bytes(sum(map(len, pieces)))
        return pieces

    def seek(self, node: int, file_offset: int, whence: int) -> int:
        """Returns the offset of the next data or hole. `whence` is that of lseek(2)."""
        return self._operations(node).seek(node, file_offset, whence)

    # Replies

    def lasts(self, node: int) -> bool:
        """Returns whether replies about a node stay true for the life of the mount; False for a node that is gone."""
        try:
            return self._operations(node).cache_seconds(node) == CACHE_SECONDS
        except (GompfsError, OSError):
            return False

    def failed(self, operation: str, error: BaseException, answer_again: Callable[[], None]) -> int | None:
        """Returns the errno to reply with when the method for a request has raised.

        Returns None for a request that needs a text that is still being computed. `answer_again` is then called when
        it can be answered.
        """
        if isinstance(error, NotReadyError):
            error.call_later(answer_again)
            return None
        number = errno_of(error)
        if not is_expected(error):
            failures.add(operation, number, error)
            log.error("%s: %s", operation, error, cause=error)
        return number

    def refused(self, number: int) -> None:
        """Called with an errno if the kernel did not take a reply."""
        if number not in (errno.ENOENT, errno.ENODEV):  # the process that made the request is gone
            log.error("the kernel refused a reply: %s", os.strerror(number))


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
