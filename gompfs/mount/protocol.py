"""The kernel's FUSE protocol (linux/fuse.h, version 7): opcodes and the layouts of requests and replies.

Replies that hold attributes are made in C++ (kernels/cpu/reading).
"""

from __future__ import annotations

import struct
from enum import IntEnum

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
