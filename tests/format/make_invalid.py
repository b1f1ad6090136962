"""Makes archives that break a rule: `python -m tests.format.make_invalid DIRECTORY`.

They break rules on the index, and on the blocks of data. Each archive has a file `sound`, the first block, and a file
`damaged`, the second. It has a single fault: checksums are valid unless they are the fault. Existing archives are not
made again. tests/data/invalid/data/expected.toml says what commands must do with each of them.
"""

from __future__ import annotations

import random
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from unittest import mock

if __name__ == "__main__":
    import tests.rooms  # noqa: F401

from archive_builder import BLOCK_SIZE, ArchiveBuilder, StoredPart, with_index
from column_groups import Group, changed, cut, join, numbers, signed, varint
from oracle.block import build_block
from oracle.constants import OFFSET_SYMBOL_REPEAT
from oracle.sequences import DecodedPayload, Sequence
from payload_builder import build_bit, build_byte
from xxhash import xxh3_64_intdigest

from gompfs.codec import Codec
from gompfs.format import SUPERBLOCK_SIZE, Superblock
from gompfs.model import PartKind

SOUND = (b"what is sound stays readable; " * 600)[:BLOCK_SIZE]
DAMAGED = b"a" * 500
SEQUENCES = [Sequence(1, 0, 0), Sequence(0, 200, 1), Sequence(0, 200, 1), Sequence(0, 99, 1)]


def make_missing(makers: Mapping[str, Callable[[], bytes]], target: Path) -> None:
    """Makes the archives that a directory lacks."""
    for name, make in makers.items():
        path = target / f"{name}.gomp"
        if not path.exists():
            path.write_bytes(make())


def builder(block: bytes | None = None, *statements: str) -> ArchiveBuilder:
    """Returns what makes an archive with this second block, and with an index changed by the statements."""
    made = ArchiveBuilder(statements=list(statements))
    sound = sealed(Codec.GOMPRESSO_BYTE, sound_payload(), SOUND)
    damaged = block or sealed(Codec.GOMPRESSO_BYTE, build_byte(decoded(SEQUENCES)))
    made.parts.append(StoredPart(len(SOUND) + len(DAMAGED), [sound, damaged], kind=PartKind.DATA))
    made.add_file(b"sound", BLOCK_SIZE, 0)
    made.add_file(b"damaged", len(DAMAGED), BLOCK_SIZE)
    made.add_entry(b"folder", stat.S_IFDIR | 0o755)
    return made


def archive(block: bytes | None = None, *statements: str) -> bytes:
    return builder(block, *statements).build()


def sound_payload() -> bytes:
    """Returns a payload of 30 literals and matches that repeat them."""
    sequences = [Sequence(30, 0, 0), *[Sequence(0, 289, 30)] * 56, Sequence(0, 170, 30)]
    assert decoded(sequences, SOUND[:30]).expand(BLOCK_SIZE) == SOUND
    return build_byte(decoded(sequences, SOUND[:30]))


def decoded(sequences: list[Sequence], literals: bytes = b"a") -> DecodedPayload:
    return DecodedPayload(False, 2, sequences, literals)


def sealed(codec: Codec, payload: bytes, content: bytes = DAMAGED) -> bytes:
    """Returns a block with valid checksums."""
    return build_block(codec, payload, content).data


def resealed(block: bytes, place: int, value: bytes) -> bytes:
    """Returns a block with changed header bytes and a valid checksum."""
    fields = block[:place] + value + block[place + len(value) : 24]
    return fields + xxh3_64_intdigest(fields + block[32:]).to_bytes(8, "little") + block[32:]


def patched(content: bytes, place: int, value: bytes) -> bytes:
    return content[:place] + value + content[place + len(value) :]


def checked(fields: bytes) -> bytes:
    """Returns the fields of a superblock or footer, followed by their checksum."""
    return fields + xxh3_64_intdigest(fields).to_bytes(8, "little")


def bit_payload(sequences: list[Sequence] = SEQUENCES) -> bytes:
    return build_bit(decoded(sequences), random.Random(1))


def incomplete_code() -> bytes:
    """All codewords have the maximum length, so that most bit strings do not begin with a codeword."""

    def longest(used: set[int], num_symbols: int, max_bits: int, _rng: random.Random) -> list[int]:
        return [max_bits if symbol in used else 0 for symbol in range(num_symbols)]

    with mock.patch("payload_builder.random_code", longest):
        return bit_payload()


def repeat_in_new_row() -> bytes:
    """Sequence 32, the first of the second row, repeats an offset that only the first row contains."""

    def repeat(_decoded: DecodedPayload, fields: list[tuple[object, ...]], _rng: random.Random) -> None:
        fields[32] = (*fields[32][:2], OFFSET_SYMBOL_REPEAT, (0, 0))

    sequences = [Sequence(1, 3, 1)] + [Sequence(0, 3, 1)] * 32 + [Sequence(0, 400, 1)]
    with mock.patch("payload_builder.repeat_offsets", repeat):
        return bit_payload(sequences)


def with_version(version: int) -> bytes:
    whole = archive()
    return checked(patched(whole[:56], 8, version.to_bytes(4, "little"))) + whole[SUPERBLOCK_SIZE:]


def with_block_size(block_size: int) -> bytes:
    whole = archive()
    superblock = Superblock.from_bytes(whole[:SUPERBLOCK_SIZE])
    return superblock._replace(block_size=block_size).to_bytes() + whole[SUPERBLOCK_SIZE:]


def damaged_archive(codec: Codec, payload: bytes) -> bytes:
    return archive(sealed(codec, payload))


def with_columns(change: Callable[[bytes], bytes]) -> bytes:
    """Returns an archive with changed columns of its index."""
    content, columns = builder().content_and_columns()
    return with_index(content, change(columns))


def with_column(place: str, column: bytes, *, num_rows: int | None = None) -> bytes:
    """Returns an archive in which a column of the index has other bytes."""
    return with_columns(lambda columns: changed(columns, place, column, num_rows=num_rows))


BYTE = build_byte(decoded(SEQUENCES))
BYTE_BLOCK = sealed(Codec.GOMPRESSO_BYTE, BYTE)
TWO_MORE_INODES = "UPDATE meta SET value = '7' WHERE key = 'next_ino'"
MANY = [*SEQUENCES, *[Sequence(0, 0, 0)] * (len(DAMAGED) + 1)]

MAKERS: dict[str, Callable[[], bytes]] = {
    "version-1": lambda: with_version(1),
    "version-3": lambda: with_version(3),
    "superblock-block-size": lambda: with_block_size(8192),
    "index-no-columns": lambda: with_columns(lambda _: b"no columns" * 100),
    "index-cut-off": lambda: with_columns(lambda columns: columns[:-1]),
    "index-more-bytes": lambda: with_columns(lambda columns: columns + b"\0"),
    "index-long-varint": lambda: with_columns(lambda columns: b"\x82\0" + columns[1:]),
    "index-huge-column": lambda: with_columns(lambda columns: columns[:1] + varint((1 << 64) - 1) + columns[2:]),
    "column-too-short": lambda: with_column("inode.uid", b"\0\0\0"),
    "column-too-long": lambda: with_column("inode.uid", b"\0\0\0\0\0"),
    "column-more-rows": lambda: with_column("binary_file.ino", b"", num_rows=1 << 10),
    "index-more-rows": lambda: with_column("binary_file.ino", b"", num_rows=1 << 40),
    "column-long-number": lambda: with_column("inode.uid", b"\x80\0\0\0\0"),
    "column-above-64-bits": lambda: with_column("inode.uid", b"\xff\0\0\0" + b"\xff" * 8 + b"\2"),
    "inode-number-above-63-bits": lambda: with_column("inode.ino", numbers(0, 0, (1 << 63) - 3, 0)),
    "inode-size-above-63-bits": lambda: with_column("inode.size", numbers(0, BLOCK_SIZE, 1 << 63, 0)),
    "inode-target-of-no-link": lambda: with_column("inode.symlink_target", b"a\0"),
    "inode-link-without-target": lambda: with_column(
        "inode.mode", signed(0o40755, 0o100644 - 0o40755, 0o120777 - 0o100644, 0o40755 - 0o120777)
    ),
    "entries-not-in-order": lambda: with_column("dirent.name", b"sound\0folder\0damaged\0"),
    "entries-with-one-name": lambda: with_column("dirent.name", b"damaged\0folder\0folder\0"),
    "entries-with-more-names": lambda: with_column("dirent.name", b"damaged\0folder\0sound\0sounds\0"),
    "entry-without-nul": lambda: with_column("dirent.name", b"damaged\0folder\0sound"),
    "entry-of-negative-inode": lambda: with_column("dirent.ino", signed(-5, 6, 1)),
    "extents-not-in-order": lambda: with_columns(
        lambda columns: changed(
            changed(columns, "extent.ino", numbers(2, 0)), "extent.file_offset", signed(0, -BLOCK_SIZE)
        )
    ),
    "extent-at-negative-offset": lambda: with_column("extent.stream_offset", signed(-1, 1)),
    "xattr-values-too-short": lambda: with_columns(
        lambda columns: join(
            cut(columns) | {"xattr": Group(1, {"ino": b"\1", "name": b"user.a\0", "value_size": b"\5", "value": b"a"})}
        )
    ),
    "segment-more-parts": lambda: with_column("segment.num_parts", b"\2"),
    "segment-fewer-blocks": lambda: with_column("segment.num_blocks", b"\1"),
    "block-of-negative-size": lambda: with_column("block.compressed_size", signed(-1, 100)),
    "section-twice": lambda: with_columns(
        lambda columns: join(
            cut(columns)
            | {
                "section": Group(
                    2,
                    {
                        "segment": b"\0\0",
                        "kind": b"a\0a\0",
                        "uncompressed_size": b"\0\0",
                        "archive_offset": b"\0\0",
                        "num_blocks": b"\0\0",
                    },
                )
            }
        )
    ),
    "meta-not-utf-8": lambda: with_column("meta.value", b"3\0\xff\0"),
    "index-block-after-index": lambda: archive(
        None, "UPDATE segment SET compressed_sizes = CAST(x'00400000' || substr(compressed_sizes, 5) AS BLOB)"
    ),
    "block-codec": lambda: archive(resealed(BYTE_BLOCK, 4, b"\3")),
    "block-size": lambda: archive(resealed(BYTE_BLOCK, 12, (len(DAMAGED) - 1).to_bytes(4, "little"))),
    "stored-too-short": lambda: damaged_archive(Codec.STORED, DAMAGED[1:]),
    "byte-flag": lambda: damaged_archive(Codec.GOMPRESSO_BYTE, patched(BYTE, 0, b"\2")),
    "byte-match-before-block": lambda: damaged_archive(
        Codec.GOMPRESSO_BYTE, build_byte(decoded([Sequence(1, 250, 2), Sequence(0, 249, 1)]))
    ),
    "bit-flag": lambda: damaged_archive(Codec.GOMPRESSO_BIT, patched(bit_payload(), 0, b"\2")),
    "bit-incomplete-code": lambda: damaged_archive(Codec.GOMPRESSO_BIT, incomplete_code()),
    "bit-repeat-in-new-row": lambda: damaged_archive(Codec.GOMPRESSO_BIT, repeat_in_new_row()),
    "bit-too-many-sequences": lambda: damaged_archive(Codec.GOMPRESSO_BIT, bit_payload(MANY)),
    "extent-outside-stream": lambda: archive(None, "UPDATE extent SET stream_offset = 32768 WHERE ino = 3"),
    "extents-overlap": lambda: archive(None, "INSERT INTO extent VALUES (3, 100, 0, 10)"),
    "name-with-slash": lambda: archive(None, "UPDATE dirent SET name = x'2f666f6f' WHERE name = x'666f6c646572'"),
    "directory-with-two-names": lambda: archive(None, "INSERT INTO dirent VALUES (4, x'7570', 1)"),
    "extent-empty": lambda: archive(None, "INSERT INTO extent VALUES (3, 500, 0, 0)"),
    "extent-after-file": lambda: archive(None, "INSERT INTO extent VALUES (3, 500, 0, 10)"),
    "extent-of-directory": lambda: archive(None, "INSERT INTO extent VALUES (4, 0, 0, 10)"),
    "entry-without-inode": lambda: archive(None, "INSERT INTO dirent VALUES (1, x'676f6e65', 99)"),
    "entry-of-file": lambda: archive(None, "INSERT INTO dirent VALUES (2, x'7570', 3)"),
    "inode-without-name": lambda: archive(
        None, "INSERT INTO inode VALUES (5, 33188, 0, 0, 0, 0, 1, 0, NULL)", TWO_MORE_INODES
    ),
    "inode-device": lambda: archive(None, "UPDATE inode SET rdev = 1 WHERE ino = 3"),
    "directories-in-each-other": lambda: archive(
        None,
        "INSERT INTO inode VALUES (5, 16877, 0, 0, 0, 0, 3, 0, NULL), (6, 16877, 0, 0, 0, 0, 3, 0, NULL)",
        "INSERT INTO dirent VALUES (5, x'7570', 6), (6, x'7570', 5)",
        TWO_MORE_INODES,
    ),
    "xattr-without-inode": lambda: archive(None, "INSERT INTO xattr VALUES (99, x'757365722e61', x'62')"),
    "binary-file-without-inode": lambda: archive(None, "INSERT INTO binary_file VALUES (99)"),
    "meta-next-ino": lambda: archive(None, "UPDATE meta SET value = '4' WHERE key = 'next_ino'"),
    "section-without-segment": lambda: archive(None, "INSERT INTO section VALUES (1, 'other', 0, 0, x'')"),
    "inode-mode-without-type": lambda: archive(None, "UPDATE inode SET mode = 493 WHERE ino = 4"),
}

if __name__ == "__main__":
    make_missing(MAKERS, Path(sys.argv[1]))
