"""Mutations of superblock, footer and file: changed fields, truncation, appended bytes, two archives in one."""

from __future__ import annotations

import random

from oracle.archive import SUPERBLOCK_FIELDS
from taken_apart import TakenApart, with_checksum

from gompfs.format import FOOTER_SIZE

EXTREMES = (0, 1, 63, 64, 65, 4096, (1 << 31), (1 << 32) - 1, 1 << 40, (1 << 62), (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def superblock(parts: TakenApart, rng: random.Random) -> tuple[str, bool]:
    """Changes version, block size, UUID or reserved bytes."""
    fields = list(SUPERBLOCK_FIELDS.unpack_from(parts.data))
    which = rng.choice((0, 1, 2, 2, 2, 3, 4))
    if which == 0:
        fields[0] = rng.choice((b"\x89GOMPFS\r", bytes(8)))
    elif which == 1:
        fields[1] = rng.choice((0, 1, 3, 255, (1 << 32) - 1))
    elif which == 2:
        fields[2] = rng.choice((1 << rng.randrange(32), fields[2] + 1, fields[2] * 2, fields[2] // 2, 0))
    elif which == 3:
        fields[3] = rng.randbytes(16)
    else:
        fields[6] = rng.choice((1, 1 << 63))
    parts.data[:64] = with_checksum(SUPERBLOCK_FIELDS.pack(*fields))
    return f"field {which} of the superblock", which != 2


def footer(parts: TakenApart, rng: random.Random) -> tuple[str, bool]:
    """Changes fields of the newest footers or of the generation header, or a bit of one copy of the index."""
    end, kind = len(parts.data) + -len(parts.data) % 16, rng.choice(("footer", "footer", "pin", "pin", "bytes"))
    if kind == "bytes":
        copy, at = rng.randrange(2), rng.random()

        def flip(content: bytes) -> bytes:
            size = (len(content) - end) // 2
            position = end + copy * size + int(at * size)
            return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]

        parts.after_index.append(flip)
        return f"a flipped bit in copy {copy} of the index", True
    if kind == "pin":
        name = rng.choice(("index_offset", "index_offset", "index_size", "generation", "reserved"))
        parts.odd_pin[name] = rng.choice((end + 16, end - 16, end + 1, 112, 1000, *EXTREMES))
        return f"{name} in the header is {parts.odd_pin[name]}", True
    names = (
        "generation",
        "copy",
        "start",
        "index_offset",
        "index_size",
        "columns_size",
        "index_xxh3",
        "previous",
        "num_changes",
    )
    name = rng.choice((*names, "features"))
    near = rng.choice((1, -1, 16, 4096))
    sound = {"index_offset": end, "columns_size": len(parts.columns), "generation": parts.generation}
    parts.odd_footer[name] = rng.choice((sound.get(name, 0) + near, *EXTREMES))
    parts.odd_copies = rng.choice(((0,), (1,), (0, 1)))
    return f"{name} of the footers {parts.odd_copies} is {parts.odd_footer[name]}", True


def cut(parts: TakenApart, rng: random.Random) -> tuple[str, bool]:
    """Truncates the file by a random number of bytes."""
    share = rng.choice((rng.random(), 0.999, 1.0))
    less = rng.choice((0, 1, 8, 16, 63, 64, 65, 4096))
    parts.after_index.append(lambda content: content[: max(int(len(content) * share) - less, 0)])
    return f"cut to {share:.4f} of the file less {less} bytes", True


def tail(parts: TakenApart, rng: random.Random) -> tuple[str, bool]:
    """Appends to the file: random bytes, a copy of its footer, or a footer with other offsets."""
    kind = rng.choice(("zeros", "random", "footer", "footer of generation 0", "half an add"))
    size = rng.choice((1, 64, 4096, 100_000))
    noise = rng.randbytes(size)

    def add(content: bytes) -> bytes:
        last = content[-FOOTER_SIZE:]
        if kind == "zeros":
            return content + bytes(size)
        if kind == "random":
            return content + noise
        if kind == "footer":
            return content + last
        if kind == "footer of generation 0":
            return content + noise[: size // 64 * 64] + with_checksum(last[:8] + bytes(4) + last[12:88])
        return content + content[64 : 64 + size] + b"GOMPEND2" + noise[:40]

    parts.after_index.append(add)
    return f"{kind} behind the end", True


def splice(parts: TakenApart, rng: random.Random, other: TakenApart) -> tuple[str, bool]:
    """Combines parts of two archives."""
    kind = rng.choice(
        ("index of another", "data of another", "behind another", "around another", "previous is another's")
    )
    if kind == "index of another":
        parts.columns = other.columns
    elif kind == "data of another":
        parts.data = bytearray(other.data)
    elif kind == "behind another":
        parts.data = bytearray(other.build()) + parts.data
    elif kind == "around another":
        parts.data += other.build()
    else:
        parts.data += other.build()
        parts.odd_footer["previous"] = len(parts.data) - FOOTER_SIZE
        parts.odd_footer["generation"] = 2
    return kind, False
