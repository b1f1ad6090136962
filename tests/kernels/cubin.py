"""Reads what CUDA has put into a cubin, which is an ELF file of 64 bits for the machine 190."""

from __future__ import annotations

import struct
from typing import NamedTuple

_MACHINE = 190
_SYMBOL_TABLE = 2
_GLOBAL_FUNCTION = 0x12
_ENTRY = 0x10  # of the byte `other`: a kernel, and not a function that kernels call


class Cubin(NamedTuple):
    """The ABI of a cubin, which says how to read its flags, and the names of its kernels."""

    abi: int
    flags: int
    kernels: set[str]

    @property
    def architecture(self) -> int:
        """The architecture that it was compiled for. ABI 8, that of CUDA 13, has it in other bits than ABI 7."""
        return self.flags >> 8 & 0xFF if self.abi == 8 else self.flags & 0xFF


def parse_cubin(content: bytes) -> Cubin:
    """Returns the kernels of a cubin."""
    assert content[:6] == b"\x7fELF\x02\x01", "not a little-endian ELF file of 64 bits"
    (machine,) = struct.unpack_from("<H", content, 18)
    assert machine == _MACHINE
    (first,) = struct.unpack_from("<Q", content, 40)
    flags, _, _, _, size, count, _ = struct.unpack_from("<I6H", content, 48)
    sections = [struct.unpack_from("<2I4Q2I2Q", content, first + number * size) for number in range(count)]
    kernels = set()
    for _, kind, _, _, offset, length, names, _, _, entry_size in sections:
        if kind != _SYMBOL_TABLE:
            continue
        names_at = sections[names][4]
        for at in range(offset, offset + length, entry_size):
            name, info, other = struct.unpack_from("<I2B", content, at)
            if info == _GLOBAL_FUNCTION and other & _ENTRY:
                end = content.index(b"\0", names_at + name)
                kernels.add(content[names_at + name : end].decode())
    return Cubin(content[8], flags, kernels)
