"""POSIX ACLs, which the kernel applies in mounts with `allow_other`: it asks for them as extended attributes.

An attribute of an archive may be anything. What a mount answers is always a valid ACL, because the kernel would answer
every use of the file with an error otherwise, and one that gives no more rights than the mode of the file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable

from gompfs.light_types import NamedTuple

_VERSION = 2
_HEADER, _ENTRY = struct.Struct("<I"), struct.Struct("<HHI")
_OWNER, _USER, _GROUP, _NAMED_GROUP, _MASK, _OTHERS = 1, 2, 4, 8, 16, 32  # the tags, in the order of the entries
_NO_ID = (1 << 32) - 1
_MAX_KERNEL_SIZE = os.sysconf("SC_PAGE_SIZE")
"""FUSE reads an ACL into a page. It cannot apply a larger one, which some file systems can hold."""


class _Entry(NamedTuple):
    """One entry: for whom, and the rights as in one digit of a mode."""

    tag: int
    rights: int
    id: int = _NO_ID


def shown_acl(value: bytes, mode: int) -> bytes:
    """Returns the ACL that a mount shows for one of the archive: valid, and without rights that `mode` does not give.

    An ACL that is malformed, or that the kernel cannot apply, is replaced by one that gives rights to the owner alone.
    """
    return _pack(_shown(value, mode))


def mapped_acl(value: bytes, mode: int, change: Callable[[int], int]) -> bytes:
    """Returns the ACL of `shown_acl`, with `change` applied to the rights of each entry."""
    return _pack([entry._replace(rights=change(entry.rights)) for entry in _shown(value, mode)])


def everybody_may(value: bytes, mode: int, rights: int) -> bool:
    """Returns whether the ACL that `shown_acl` returns gives `rights` to all users but, perhaps, the owner."""
    entries = _shown(value, mode)
    mask = next((entry.rights for entry in entries if entry.tag == _MASK), 7)
    given = [entry.rights & (7 if entry.tag == _OTHERS else mask) for entry in entries if entry.tag != _OWNER]
    return all(each & rights == rights for each in given)


def _shown(value: bytes, mode: int) -> list[_Entry]:
    entries = _parse(value) if len(value) <= _MAX_KERNEL_SIZE else None
    if entries is None:
        return [_Entry(_OWNER, mode >> 6 & 7), _Entry(_GROUP, 0), _Entry(_MASK, 0), _Entry(_OTHERS, 0)]
    has_mask = any(entry.tag == _MASK for entry in entries)
    limits = {_OWNER: mode >> 6, _MASK if has_mask else _GROUP: mode >> 3, _OTHERS: mode}
    return [entry._replace(rights=entry.rights & limits.get(entry.tag, 7)) for entry in entries]


def _parse(value: bytes) -> list[_Entry] | None:
    """Returns the entries of an ACL, or None if the kernel does not accept it."""
    if len(value) < _HEADER.size or (len(value) - _HEADER.size) % _ENTRY.size:
        return None
    if _HEADER.unpack_from(value) != (_VERSION,):
        return None
    entries = [_Entry(*fields) for fields in _ENTRY.iter_unpack(value[_HEADER.size :])]
    tags = [entry.tag for entry in entries]
    is_named = [tag in (_USER, _NAMED_GROUP) for tag in tags]
    is_valid = (
        tags == sorted(tags)
        and all(tags.count(tag) == 1 for tag in (_OWNER, _GROUP, _OTHERS))
        and tags.count(_MASK) <= 1
        and (_MASK in tags or not any(is_named))
        and set(tags) <= {_OWNER, _USER, _GROUP, _NAMED_GROUP, _MASK, _OTHERS}
        and all(entry.rights <= 7 for entry in entries)
        and all(entry.id != _NO_ID for entry, named in zip(entries, is_named, strict=True) if named)
    )
    return entries if is_valid else None


def _pack(entries: list[_Entry]) -> bytes:
    return _HEADER.pack(_VERSION) + b"".join(_ENTRY.pack(*entry) for entry in entries)
