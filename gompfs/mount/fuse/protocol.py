"""The kernel's FUSE protocol (linux/fuse.h, version 7): opcodes and the layouts of requests and replies.

Replies that hold attributes are made in C++ (native/fuse).
"""

from __future__ import annotations

import os
import struct
from enum import IntEnum, IntFlag

CACHE_SECONDS = 3600  # how long the kernel caches entries, attributes and absent names: an archive never changes


class Opcode(IntEnum):
    """The opcodes of the requests that a read-only file system receives."""

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
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42
    READDIRPLUS = 44
    LSEEK = 46


WITHOUT_REPLY = frozenset({Opcode.FORGET, Opcode.BATCH_FORGET, Opcode.INTERRUPT})


class Feature(IntFlag):
    """Features that the kernel offers in INIT, and the mount accepts."""

    ASYNC_READ = 1 << 0
    AUTO_INVAL_DATA = 1 << 12
    READDIRPLUS = 1 << 13
    ASYNC_DIO = 1 << 15
    PARALLEL_DIROPS = 1 << 18
    MAX_PAGES = 1 << 22
    INIT_EXT = 1 << 30
    PASSTHROUGH = 1 << 37


class OpenFlag(IntFlag):
    """How the kernel treats an open file."""

    KEEP_CACHE = 1 << 1
    NO_FLUSH = 1 << 5
    PASSTHROUGH = 1 << 7


_MAX_READ = 1 << 20  # bytes
BUFFER_SIZE = _MAX_READ + (1 << 16)
"""Size of the request buffer: the kernel requires space for the largest write, though a read-only mount gets none."""
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
_PROTOCOL = (7, 40)
_OLDEST_MINOR = 23  # replies to INIT are shorter in older versions
_MAX_BACKGROUND = 64
_CONGESTION = 48

# Requests: a header (length, opcode, unique, node id, ...), then the fields of the opcode
REQUEST_HEADER = struct.Struct("<IIQQIIIHH")
READ_REQUEST = struct.Struct("<QQII")  # handle, file_offset, size, read flags
INIT_REQUEST = struct.Struct("<IIII")  # major, minor, max_readahead, features
_MORE_FEATURES = struct.Struct("<I")  # follows INIT_REQUEST if INIT_EXT is set: feature bits from 32 on
RELEASE_REQUEST = struct.Struct("<Q")  # handle
INTERRUPT_REQUEST = struct.Struct("<Q")  # `unique` of the interrupted request
SEEK_REQUEST = struct.Struct("<QQII")  # handle, file_offset, whence, padding
XATTR_REQUEST = struct.Struct("<II")  # size, padding
# Replies
REPLY_HEADER = struct.Struct("<IiQ")  # length, negative errno, unique
SEEK_REPLY = struct.Struct("<Q")  # file_offset
XATTR_SIZE_REPLY = struct.Struct("<II")
_INIT_REPLY = struct.Struct("<4IHHIIHHII24x")
_OPEN_REPLY = struct.Struct("<QIi")  # handle, flags, backing id
STATFS_REPLY = struct.Struct("<5Q4I24x")


def init_reply(request: memoryview, wanted: Feature) -> tuple[bytes, Feature]:
    """Returns the reply to INIT, and the wanted features that the kernel also has.

    Raises ValueError if the kernel's version of the protocol is not supported.
    """
    major, minor, max_readahead, offered = INIT_REQUEST.unpack_from(request)
    if major != _PROTOCOL[0] or minor < _OLDEST_MINOR:
        raise ValueError(f"the kernel has FUSE protocol version {major}.{minor}, which is not supported")
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
    """Returns the reply to OPEN. With a `backing_id`, the kernel reads from that backing file."""
    if backing_id is None:
        return _OPEN_REPLY.pack(handle, OpenFlag.KEEP_CACHE | OpenFlag.NO_FLUSH, 0)
    return _OPEN_REPLY.pack(handle, OpenFlag.PASSTHROUGH | OpenFlag.NO_FLUSH, backing_id)
