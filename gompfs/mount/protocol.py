"""The kernel's FUSE protocol (linux/fuse.h, version 7): opcodes and the layouts of requests and replies."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Sequence
from enum import IntEnum, IntFlag

from gompfs.model import Inode

CACHE_SECONDS = 3600  # entries, attributes and absences: an archive never changes


class Opcode(IntEnum):
    """The requests that a read-only file system answers."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    READLINK = 5
    OPEN = 14
    READ = 15
    STATFS = 17
    RELEASE = 18
    GETXATTR = 22
    LISTXATTR = 23
    INIT = 26
    READDIR = 28
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42
    READDIRPLUS = 44


WITHOUT_REPLY = frozenset({Opcode.FORGET, Opcode.BATCH_FORGET, Opcode.INTERRUPT})


class Feature(IntFlag):
    """What the kernel offers and the mount takes, in INIT."""

    ASYNC_READ = 1 << 0
    AUTO_INVAL_DATA = 1 << 12
    READDIRPLUS = 1 << 13
    ASYNC_DIO = 1 << 15
    PARALLEL_DIROPS = 1 << 18
    MAX_PAGES = 1 << 22
    INIT_EXT = 1 << 30
    PASSTHROUGH = 1 << 37


class OpenFlag(IntFlag):
    """How the kernel treats a file that is open."""

    KEEP_CACHE = 1 << 1
    NO_FLUSH = 1 << 5
    PASSTHROUGH = 1 << 7


_MAX_READ = 1 << 20  # bytes
BUFFER_SIZE = _MAX_READ + (1 << 16)
"""Room for any request: the kernel insists on that for the largest write, though none comes."""
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
_PROTOCOL = (7, 40)
_OLDEST_MINOR = 23  # before, answers to INIT were shorter
_MAX_BACKGROUND = 64
_CONGESTION = 48

# Requests: header (length, opcode, unique, node id, ...), then what the opcode needs
REQUEST_HEADER = struct.Struct("<IIQQIIIHH")
READ_REQUEST = struct.Struct("<QQII")  # handle, file_offset, size, read flags
INIT_REQUEST = struct.Struct("<IIII")  # major, minor, max_readahead, features
_MORE_FEATURES = struct.Struct("<I")  # behind those, where there is INIT_EXT: bits 32 and on
RELEASE_REQUEST = struct.Struct("<Q")  # handle
INTERRUPT_REQUEST = struct.Struct("<Q")  # the request that is meant
XATTR_REQUEST = struct.Struct("<II")  # size, padding
# Replies
REPLY_HEADER = struct.Struct("<IiQ")  # length, negative errno, unique
XATTR_SIZE_REPLY = struct.Struct("<II")
_INIT_REPLY = struct.Struct("<4IHHIIHHII24x")
_OPEN_REPLY = struct.Struct("<QIi")  # handle, flags, backing id
STATFS_REPLY = struct.Struct("<5Q4I24x")
_ATTRIBUTES = "6Q10I"
_ATTRIBUTES_REPLY = struct.Struct("<QII" + _ATTRIBUTES)
_ENTRY = struct.Struct("<4QII" + _ATTRIBUTES)
_DIRECTORY_ENTRY = struct.Struct("<QQII")
_DIRECTORY_ENTRY_PLUS = struct.Struct("<4QII" + _ATTRIBUTES + "QQII")
_SECOND_NS = 1_000_000_000


def init_reply(request: memoryview, wanted: Feature) -> tuple[bytes, Feature]:
    """The answer to INIT, and which of the wanted features both sides have; raises ValueError for another protocol."""
    major, minor, max_readahead, offered = INIT_REQUEST.unpack_from(request)
    if major != _PROTOCOL[0] or minor < _OLDEST_MINOR:
        raise ValueError(f"the kernel speaks version {major}.{minor} of the protocol")
    if offered & Feature.INIT_EXT:
        offered |= _MORE_FEATURES.unpack_from(request, INIT_REQUEST.size)[0] << 32
    taken = wanted & offered
    stack_depth = 1 if Feature.PASSTHROUGH in taken else 0
    reply = _INIT_REPLY.pack(
        *_PROTOCOL, max_readahead, taken & 0xFFFFFFFF, _MAX_BACKGROUND, _CONGESTION, _MAX_READ, 1,
        _MAX_READ // _PAGE_SIZE, 0, taken >> 32, stack_depth,
    )  # fmt: skip
    return reply, taken


def open_reply(handle: int, backing_id: int | None = None) -> bytes:
    """The answer to OPEN; the kernel reads from the backing file where there is one."""
    if backing_id is None:
        return _OPEN_REPLY.pack(handle, OpenFlag.KEEP_CACHE | OpenFlag.NO_FLUSH, 0)
    return _OPEN_REPLY.pack(handle, OpenFlag.PASSTHROUGH | OpenFlag.NO_FLUSH, backing_id)


def _attributes(inode: Inode, block_size: int) -> tuple[int, ...]:
    """The fields of struct fuse_attr."""
    ino, mode, uid, gid, size, mtime_ns, nlink, rdev, _ = inode
    seconds, nanoseconds = divmod(mtime_ns, _SECOND_NS)
    seconds &= (1 << 64) - 1
    if rdev:
        major, minor = os.major(rdev), os.minor(rdev)
        rdev = (minor & 0xFF) | major << 8 | (minor & ~0xFF) << 12
    return (
        ino, size, (size + 511) >> 9, seconds, seconds, seconds,
        nanoseconds, nanoseconds, nanoseconds, mode, nlink, uid, gid, rdev, block_size, 0,
    )  # fmt: skip


def attributes_reply(inode: Inode, block_size: int, cache_seconds: int = CACHE_SECONDS) -> bytes:
    """The answer to GETATTR."""
    return _ATTRIBUTES_REPLY.pack(cache_seconds, 0, 0, *_attributes(inode, block_size))


def entry_reply(inode: Inode | None, block_size: int, cache_seconds: int = CACHE_SECONDS) -> bytes:
    """The answer to LOOKUP; None says that there is no such entry, for as long as any answer is true."""
    if inode is None:
        return _ENTRY.pack(0, 0, cache_seconds, 0, 0, 0, *(0,) * 16)
    return _ENTRY.pack(inode.ino, 0, cache_seconds, cache_seconds, 0, 0, *_attributes(inode, block_size))


def pack_dots(node: int, *, with_attributes: bool) -> list[bytes]:
    """The entries . and .. that begin every directory. Nobody trusts their numbers: the kernel knows both."""
    kind = stat.S_IFDIR >> 12
    head = bytes(_ENTRY.size) if with_attributes else b""  # no lookup is meant by these
    return [
        head + _DIRECTORY_ENTRY.pack(node, position, position, kind) + name.ljust(8, b"\0")
        for position, name in ((1, b"."), (2, b".."))
    ]


def pack_directory(
    entries: Sequence[tuple[bytes, Inode]],
    start: int,
    block_size: int,
    cache_seconds: int,
    *,
    with_attributes: bool,
) -> list[bytes]:
    """Entries of a directory as READDIR or READDIRPLUS gives them.

    The first is at position `start` of the directory; each tells the position that follows it. Attributes
    that do not last (`cache_seconds` 0) are left out: the kernel asks for them when somebody wants them.
    """
    packed = []
    for position, (name, inode) in enumerate(entries, start + 1):
        ino = inode.ino
        tail = (ino, position, len(name), inode.mode >> 12 & 15)
        padding = bytes(-len(name) & 7)
        if with_attributes:
            fields = _DIRECTORY_ENTRY_PLUS.pack(
                ino if cache_seconds else 0, 0, cache_seconds, cache_seconds, 0, 0,
                *_attributes(inode, block_size), *tail,
            )  # fmt: skip
        else:
            fields = _DIRECTORY_ENTRY.pack(*tail)
        packed.append(fields + name + padding)
    return packed
