"""Speaks FUSE to the threads of a mount over a socket, as the kernel does. This covers all of a mount but mounting."""

from __future__ import annotations

import errno
import logging
import os
import socket
import stat
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

from gompfs.archive import Archive
from gompfs.engine import select_engine
from gompfs.errors import GompfsError
from gompfs.mount.fuse.requests import RequestLoop
from gompfs.mount.tree.snapshots import Snapshots
from gompfs.options import MountOptions


class Opcode(IntEnum):
    """The opcodes of requests (linux/fuse.h)."""

    LOOKUP = 1
    GETATTR = 3
    READLINK = 5
    READ = 15
    STATFS = 17
    GETXATTR = 22
    LISTXATTR = 23
    READDIRPLUS = 44


_HEADER = struct.Struct("<IIQQIIIHH")
_REPLY = struct.Struct("<IiQ")
_ATTRIBUTES = struct.Struct("<6Q10I")  # ino, size, blocks, times; nanoseconds, mode, nlink, uid, gid, rdev, ...
_ENTRY_SIZE, _ATTRIBUTES_AT = 128, 40
_DIRENT = struct.Struct("<QQII")
_CAPACITY = 32 << 10
_PIECE = 128 << 10
MAX_REQUESTS = 4000


class UnforeseenErrors(logging.Handler):
    """Collects log records of errors that are not ordinary answers to a request."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if record.levelno >= logging.ERROR and (error is None or not isinstance(error, GompfsError | OSError)):
            self.found.append(f"{type(error).__name__}: {record.getMessage()}")


class Kernel:
    """Sends requests to one mount. An error answer is raised as OSError."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unique = 1
        self.num_requests = 0

    def ask(self, opcode: int, node: int, body: bytes = b"") -> bytes:
        """Sends a request and returns its answer."""
        self._unique += 2
        self.num_requests += 1
        size = _HEADER.size + len(body)
        self._connection.send(_HEADER.pack(size, opcode, self._unique, node, 0, 0, 1, 0, 0) + body)
        reply = self._connection.recv(2 << 20)
        length, error, unique = _REPLY.unpack_from(reply)
        if length != len(reply) or unique != self._unique:
            raise AssertionError(f"a reply of {length} bytes has {len(reply)}, or is for another request")
        if error:
            raise OSError(-error, os.strerror(-error))
        return reply[_REPLY.size :]

    def lookup(self, parent: int, name: bytes) -> tuple[int, int, int]:
        """Returns node, mode and size."""
        reply = self.ask(Opcode.LOOKUP, parent, name + b"\0")
        return _entry(reply)

    def entries(self, node: int) -> Iterator[tuple[bytes, int, int, int]]:
        """Yields name, node, mode and size of each entry."""
        position = 0
        while reply := self.ask(Opcode.READDIRPLUS, node, struct.pack("<QQIIQII", 0, position, _CAPACITY, 0, 0, 0, 0)):
            at = 0
            while at < len(reply):
                _, position, length, _ = _DIRENT.unpack_from(reply, at + _ENTRY_SIZE)
                start = at + _ENTRY_SIZE + _DIRENT.size
                name = reply[start : start + length]
                if name not in (b".", b".."):
                    yield name, *_entry(reply[at:])
                at = start + length + -length % 8
            if self.num_requests > MAX_REQUESTS:
                return

    def read(self, node: int, size: int) -> bytes:
        """Returns the first `size` bytes of a file."""
        content = b""
        while len(content) < size:
            piece = min(_PIECE, size - len(content))
            got = self.ask(Opcode.READ, node, struct.pack("<QQIIQII", 0, len(content), piece, 0, 0, 0, 0))
            content += got
            if len(got) < piece:
                break
        return content


def _entry(reply: bytes) -> tuple[int, int, int]:
    (node,) = struct.unpack_from("<Q", reply)
    attributes = _ATTRIBUTES.unpack_from(reply, _ATTRIBUTES_AT)
    return node, attributes[9], attributes[1]


@contextmanager
def mounted(path: Path) -> Iterator[tuple[Kernel, UnforeseenErrors]]:
    """Serves the mount of an archive without the kernel. Raises what a mount raises when it starts."""
    errors = UnforeseenErrors()
    logger = logging.getLogger("gompfs")
    logger.addHandler(errors)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    engine = select_engine("cpu", 2)
    kernel, daemon = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (kernel, daemon):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    try:
        with Snapshots(
            str(path), lambda name: Archive(name, engine=engine, cache_size=16 << 20), MountOptions()
        ) as content:
            loop = RequestLoop(daemon.fileno(), content, None)
            threads = [threading.Thread(target=loop.run) for _ in range(2)]
            for thread in threads:
                thread.start()
            try:
                yield Kernel(kernel), errors
            finally:
                kernel.close()
                for thread in threads:
                    thread.join()
                loop.close()
    finally:
        daemon.close()
        logger.removeHandler(errors)


def use(kernel: Kernel, max_size: int) -> tuple[dict[bytes, bytes], bytes | None]:
    """Sends the requests of typical programs. Returns the files that could be read, by path, and the word counts."""
    contents: dict[bytes, bytes] = {}
    _quietly(kernel, Opcode.STATFS, 1)
    pending, seen = [(b"", 1)], {1}
    while pending and kernel.num_requests < MAX_REQUESTS:
        path, directory = pending.pop()
        try:
            entries = list(kernel.entries(directory))
        except OSError as error:
            _check(error)
            continue
        for name, node, mode, size in entries:
            if kernel.num_requests > MAX_REQUESTS:
                break
            place = path + b"/" + name if path else name
            _look_at(kernel, directory, name, node)
            if stat.S_ISDIR(mode) and node not in seen:
                seen.add(node)
                pending.append((place, node))
            elif stat.S_ISLNK(mode):
                _quietly(kernel, Opcode.READLINK, node)
            elif stat.S_ISREG(mode) and size <= max_size:
                try:
                    contents[place] = kernel.read(node, size)
                except OSError as error:
                    _check(error)
    return contents, _word_counts(kernel)


def _look_at(kernel: Kernel, directory: int, name: bytes, node: int) -> None:
    """Sends the requests of `ls -l` for an entry."""
    try:
        kernel.lookup(directory, name)
        kernel.ask(Opcode.GETATTR, node, bytes(16))
        names = kernel.ask(Opcode.LISTXATTR, node, struct.pack("<II", 65536, 0))
        for attribute in names.split(b"\0")[:-1][:20]:
            kernel.ask(Opcode.GETXATTR, node, struct.pack("<II", 65536, 0) + attribute + b"\0")
    except OSError as error:
        _check(error)


def _word_counts(kernel: Kernel) -> bytes | None:
    try:
        stats, _, _ = kernel.lookup(1, b".gompfs")
        stats, _, _ = kernel.lookup(stats, b"stats")
        node, _, size = kernel.lookup(stats, b"wordcount")
        return kernel.read(node, min(size, 4 << 20)) if node else None
    except OSError as error:
        _check(error)
        return None


def _quietly(kernel: Kernel, opcode: int, node: int) -> None:
    try:
        kernel.ask(opcode, node)
    except OSError as error:
        _check(error)


_ANSWERS = {
    errno.EIO,
    errno.ENOENT,
    errno.EINVAL,
    errno.ENODATA,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ERANGE,
    errno.ENOSYS,
    errno.ELOOP,
}


def _check(error: OSError) -> None:
    """Raises unless a damaged archive can explain this errno."""
    if error.errno not in _ANSWERS:
        raise error
