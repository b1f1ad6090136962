"""The kernel's FUSE protocol (linux/fuse.h, version 7): opcodes and the layouts of requests and replies."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Sequence
from enum import IntEnum

from gompfs.model import Inode

CACHE_SECONDS = 3600  # entries, attributes and absences: an archive never changes


class Opcode(IntEnum):
    """The requests that a read-only file system answers."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    READLINK = 5
    READ = 15
    STATFS = 17
    GETXATTR = 22
    LISTXATTR = 23
    READDIR = 28
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42
    READDIRPLUS = 44


WITHOUT_REPLY = frozenset({Opcode.FORGET, Opcode.BATCH_FORGET, Opcode.INTERRUPT})

# Requests: header (length, opcode, unique, node id, ...), then what the opcode needs
REQUEST_HEADER = struct.Struct("<IIQQIIIHH")
READ_REQUEST = struct.Struct("<QQII")  # handle, file_offset, size, read flags
INTERRUPT_REQUEST = struct.Struct("<Q")  # the request that is meant
XATTR_REQUEST = struct.Struct("<II")  # size, padding
# Replies
REPLY_HEADER = struct.Struct("<IiQ")  # length, negative errno, unique
XATTR_SIZE_REPLY = struct.Struct("<II")
STATFS_REPLY = struct.Struct("<5Q4I24x")
_ATTRIBUTES = "6Q10I"
_ATTRIBUTES_REPLY = struct.Struct("<QII" + _ATTRIBUTES)
_ENTRY = struct.Struct("<4QII" + _ATTRIBUTES)
_DIRECTORY_ENTRY = struct.Struct("<QQII")
_DIRECTORY_ENTRY_PLUS = struct.Struct("<4QII" + _ATTRIBUTES + "QQII")
_SECOND_NS = 1_000_000_000


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
