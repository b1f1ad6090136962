"""The records of an archive's frame: fields of fixed sizes after a magic number, and the XXH3-64 of all of them."""

from __future__ import annotations

import struct

from xxhash import xxh3_64_intdigest

from gompfs.errors import ArchiveFormatError
from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_CHECKSUM = struct.Struct("<Q")


class Record:
    """The layout of one kind of record. `size` is its size in bytes with the checksum."""

    def __init__(self, magic: bytes, fields: str, *, absent: str, damaged: str) -> None:
        """`fields` are those after the magic number, as `struct` names them; they are little-endian, without padding.

        `absent` is the error message for bytes that do not begin with the magic number or are too few, `damaged` that
        for another checksum.
        """
        self._magic = magic
        self._fields = struct.Struct(f"<{len(magic)}s{fields}")
        self._absent = absent
        self._damaged = damaged
        self.size = self._fields.size + _CHECKSUM.size

    def pack(self, *fields: Any) -> bytes:
        """Returns the bytes of a record."""
        raw = self._fields.pack(self._magic, *fields)
        return raw + _CHECKSUM.pack(xxh3_64_intdigest(raw))

    def unpack(self, raw: bytes) -> tuple[Any, ...]:
        """Returns the fields of the record that `raw` begins with. Raises ArchiveFormatError if it is not valid."""
        if len(raw) < self.size or not raw.startswith(self._magic):
            raise ArchiveFormatError(self._absent)
        (checksum,) = _CHECKSUM.unpack_from(raw, self._fields.size)
        if checksum != xxh3_64_intdigest(raw[: self._fields.size]):
            raise ArchiveFormatError(self._damaged)
        _, *fields = self._fields.unpack_from(raw)
        return tuple(fields)
