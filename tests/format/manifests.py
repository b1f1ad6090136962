"""Manifests of archives: everything an archive contains, as lines that a reviewer can read and a test can compare."""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tree_helpers import Seen

from gompfs.archive import Archive
from gompfs.codec import BLOCK_HEADER_SIZE, Codec, parse_block_header
from gompfs.model import BlockTable, PartKind, Parts

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
GOLDEN_ARCHIVES = sorted(path.stem for path in GOLDEN.glob("*.gomp"))
INVALID = Path(__file__).parents[1] / "data" / "invalid"

_TYPES = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "dir",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "char",
    stat.S_IFBLK: "block",
}


def escaped(raw: bytes) -> str:
    """Returns bytes as visible ASCII, with all others as octal numbers, as in mtree(5)."""
    return "".join(chr(byte) if 0x21 <= byte <= 0x7E and byte not in b"\\#=," else f"\\{byte:03o}" for byte in raw)


def num_links(seen: dict[bytes, Seen]) -> dict[bytes, int]:
    """Returns the link count of each entry: its names, or for a directory 2 plus its subdirectories."""
    names = Counter(item.inode for item in seen.values())
    directories = [path for path, item in seen.items() if path and stat.S_ISDIR(item.mode)]
    subdirectories = Counter(path.rpartition(b"/")[0] for path in directories)
    return {
        path: 2 + subdirectories[path] if stat.S_ISDIR(item.mode) else names[item.inode] for path, item in seen.items()
    }


def entry_lines(seen: dict[bytes, Seen]) -> list[str]:
    """Returns a line per entry, in the style of mtree(5). Holes are not visible."""
    links = num_links(seen)
    return [_entry_line(path, seen[path], links[path]) for path in sorted(seen)]


def _entry_line(path: bytes, item: Seen, nlink: int) -> str:
    words = [f"./{escaped(path)}" if path else "."]
    if item.inode != path:
        return f"{words[0]} hardlink=./{escaped(item.inode)}"
    words += [
        f"type={_TYPES[stat.S_IFMT(item.mode)]}",
        f"mode={stat.S_IMODE(item.mode):04o}",
        f"uid={item.uid}",
        f"gid={item.gid}",
        f"nlink={nlink}",
        f"mtime_ns={item.mtime_ns}",
    ]
    if item.content is not None:
        words += [f"size={len(item.content)}", f"sha256={hashlib.sha256(item.content).hexdigest()}"]
    if item.target is not None:
        words.append(f"link={escaped(item.target)}")
    if stat.S_IFMT(item.mode) in (stat.S_IFCHR, stat.S_IFBLK):
        words.append(f"device={os.major(item.rdev)},{os.minor(item.rdev)}")
    words += [f"xattr={escaped(name)}:{value.hex()}" for name, value in item.xattrs]
    return " ".join(words)


def frame_lines(archive: Archive) -> list[str]:
    """Returns lines on the structure of an archive: generation, blocks, sections, and the holes of files."""
    superblock, footer = archive.superblock, archive.footer
    lines = [
        f"superblock block_size={superblock.block_size} uuid={superblock.uuid_text}",
        f"footer generation={footer.generation} changes={footer.num_changes}",
        *(f"generation {escaped(' '.join(map(str, note)).encode())}" for note in archive.index.generations()),
        *(f"meta {key}={value}" for key, value in sorted(archive.meta.items())),
    ]
    for segment in archive.segments:
        lines.append(f"segment {segment.number} size={segment.blocks.uncompressed_size}")
        lines += _part_lines(archive, segment.parts)
        lines += _block_lines(archive, segment.blocks, segment.first_block)
    for section in archive.sections:
        lines.append(f"section {section.kind} segment={section.segment} size={section.blocks.uncompressed_size}")
        lines += _block_lines(archive, section.blocks, 0)
    lines += [f"binary ./{escaped(archive.path_of(ino))}" for ino in archive.index.binary_files()]
    return lines + list(_holes(archive))


def _part_lines(archive: Archive, parts: Parts) -> list[str]:
    """Returns a line per part of a segment."""
    lines = []
    content = Path(archive.path).read_bytes()
    columns = zip(parts.kinds, parts.sizes, parts.head_offsets, parts.head_sizes, strict=True)
    for number, (kind, size, start, stored) in enumerate(columns):
        line = f"part {number} {PartKind(kind).name.lower()} size={size}"
        if stored:
            header = parse_block_header(content[start : start + stored])
            line += f" head={header.payload_size}/{header.uncompressed_size}"
        lines.append(line)
    return lines


def _block_lines(archive: Archive, table: BlockTable, first: int) -> list[str]:
    lines = []
    content = Path(archive.path).read_bytes()
    sizes = table.compressed_sizes.tolist()
    for number, (start, size) in enumerate(zip(table.archive_offsets.tolist(), sizes, strict=True), first):
        header = parse_block_header(content[start : start + size])
        line = f"block {number} {header.codec.label} {header.payload_size}/{header.uncompressed_size}"
        if header.codec in (Codec.GOMPRESSO_BYTE, Codec.GOMPRESSO_BIT):
            flags, group_size_log2 = content[start + BLOCK_HEADER_SIZE :][:2]
            line += f" groups={1 << group_size_log2} elimination={'yes' if flags & 1 else 'no'}"
        lines.append(line)
    return lines


def _holes(archive: Archive) -> Iterable[str]:
    for path, inode in archive.walk():
        extents = archive.extents(inode.ino)
        if stat.S_ISREG(inode.mode) and sum(extent.size for extent in extents) < inode.size:
            data = ",".join(f"{extent.file_offset}+{extent.size}" for extent in extents)
            yield f"sparse ./{escaped(path)} data={data or 'none'}"


def read_manifest(path: Path) -> list[str]:
    """Returns the lines of a manifest, without comments."""
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
