"""Listings of directories, sources and archives that tests compare.

Directories are listed without the code under test.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import gompfs
from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.options import PackOptions
from gompfs.pack import PackReport, add_to_archive, open_source, pack_archive
from gompfs.pack.sources import Source

PACKAGE_PARENT = str(Path(gompfs.__file__).resolve().parents[1])


class Seen(NamedTuple):
    """Everything of an entry that must survive packing. `inode` is the first path among hard links of one file."""

    mode: int
    uid: int
    gid: int
    mtime_ns: int
    rdev: int
    target: bytes | None
    content: bytes | None
    xattrs: tuple[tuple[bytes, bytes], ...]
    inode: bytes


def list_source(source: Source) -> dict[bytes, Seen]:
    """Reads a source as the packer does: later entries replace earlier ones, and hard links share their inode."""
    seen: dict[bytes, Seen] = {}
    for entry in source.entries():
        parent = entry.path.rpartition(b"/")[0]
        assert not parent or parent in seen, "a directory comes before what is in it"
        if entry.hard_link_to is not None:
            seen[entry.path] = seen[entry.hard_link_to]
            continue
        content = entry.read_all() if entry.has_content else None
        if content is not None:
            assert len(content) == entry.size
        seen[entry.path] = Seen(
            entry.mode,
            entry.uid,
            entry.gid,
            entry.mtime_ns,
            entry.rdev if stat.S_IFMT(entry.mode) in (stat.S_IFCHR, stat.S_IFBLK) else 0,
            entry.symlink_target,
            content,
            tuple(sorted(entry.xattrs.items())),
            entry.path,
        )
    return seen


def list_directory(root: Path) -> dict[bytes, Seen]:
    """Like list_source for a directory, by its full paths. Raises AssertionError for entries that no source yields."""
    top = os.fsencode(root)
    first_paths: dict[int, bytes] = {}
    seen = {}
    paths = [b""]
    for directory, names, files in os.walk(top):
        inside = os.path.relpath(directory, top)
        paths += [os.path.normpath(os.path.join(inside, name)) for name in names + files]
    for path in sorted(paths, key=lambda path: path.split(b"/")):
        full = os.path.join(top, path) if path else top
        status = os.lstat(full)
        is_directory = stat.S_ISDIR(status.st_mode)
        is_device = stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)
        xattrs = {os.fsencode(name): os.getxattr(full, name, follow_symlinks=False) for name in _xattr_names(full)}
        seen[path] = Seen(
            status.st_mode,
            status.st_uid,
            status.st_gid,
            status.st_mtime_ns,
            status.st_rdev if is_device else 0,
            os.readlink(full) if stat.S_ISLNK(status.st_mode) else None,
            Path(os.fsdecode(full)).read_bytes() if stat.S_ISREG(status.st_mode) else None,
            tuple(sorted(xattrs.items())),
            path if is_directory else first_paths.setdefault(status.st_ino, path),
        )
    return seen


def _xattr_names(path: bytes) -> list[str]:
    return os.listxattr(path, follow_symlinks=False)


def without_inodes(seen: dict[bytes, Seen]) -> dict[bytes, Seen]:
    """Drops `inode`, for sources whose order makes another name of a hard link the first one."""
    groups: dict[bytes, bytes] = {}
    for path in sorted(seen):
        groups.setdefault(seen[path].inode, path)
    return {path: item._replace(inode=groups[item.inode]) for path, item in seen.items()}


def list_archive(archive: Archive) -> dict[bytes, Seen]:
    """Returns all entries of an archive, read through the archive."""
    first_paths: dict[int, bytes] = {}
    return {
        path: Seen(
            inode.mode,
            inode.uid,
            inode.gid,
            inode.mtime_ns,
            inode.rdev,
            inode.symlink_target,
            archive.read(inode.ino, 0, inode.size) if stat.S_ISREG(inode.mode) else None,
            tuple(sorted(archive.xattrs(inode.ino).items())),
            first_paths.setdefault(inode.ino, path),
        )
        for path, inode in archive.walk()
    }


def write_files(root: Path, contents: Mapping[str, bytes] | Mapping[bytes, bytes]) -> Path:
    """Writes files by their paths below `root`, and returns it."""
    for name, content in contents.items():
        path = root / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def pack(target: Path, *specs: Path, **options: object) -> PackReport:
    """Packs directories, files and tars, in blocks of gompresso-bit unless `options` say otherwise."""
    return pack_archive(
        [open_source(spec) for spec in specs],
        target,
        _options(options),
        engine=select_engine("cpu"),
    )


def add(target: Path, *specs: Path, **options: object) -> PackReport:
    """Adds directories, files and tars to an archive, as `pack` packs them."""
    return add_to_archive(
        target,
        [open_source(spec) for spec in specs],
        _options(options),
        engine=select_engine("cpu"),
    )


def _options(options: dict[str, object]) -> PackOptions:
    return PackOptions(**{"codec": Codec.GOMPRESSO_BIT, **options})  # type: ignore[arg-type]


def files_of_block(archive: Archive, block: int) -> list[int]:
    """Returns the inodes of the files that have bytes in a block of the stream, in ascending order."""
    start, end = block * archive.block_size, (block + 1) * archive.block_size
    fields = archive.index.all_extents()
    extents = zip(fields[::4], fields[2::4], fields[3::4], strict=True)
    return sorted({ino for ino, first, size in extents if first < end and first + size > start})
