"""POSIX ACLs for tests: builds the values of the extended attributes, as Linux documents them."""

from __future__ import annotations

import struct

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
_NO_ID = 0xFFFFFFFF
_TAGS = {"user": 1, "named user": 2, "group": 4, "named group": 8, "mask": 16, "other": 32}
_LETTERS = {"r": 4, "w": 2, "x": 1, "-": 0}


def access_list(text: str) -> bytes:
    """Returns the ACL of a text as getfacl prints it, with numbers as names: `user::rw-,user:65534:---,...`."""
    value = struct.pack("<I", 2)
    for entry in text.split(","):
        kind, name, letters = entry.split(":")
        tag = _TAGS[f"named {kind}" if name else kind]
        rights = sum(_LETTERS[letter] for letter in letters)
        value += struct.pack("<HHI", tag, rights, int(name) if name else _NO_ID)
    return value
