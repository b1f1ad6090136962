"""The contents of local files, without their metadata: how much there is to pack, and samples of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import partial

from gompfs.pack.sources.base import FileContent
from gompfs.pack.sources.exclude import ExcludeRules
from gompfs.pack.sources.local_file import OPEN_FLAGS

__all__ = ["file_content", "files_below"]


def file_content(path: bytes, size: int) -> FileContent:
    """Returns the content of a regular file."""
    return FileContent(size, partial(_read, path))


def _read(path: bytes, file_offset: int, size: int) -> bytes:
    """Returns bytes of a file, none if it cannot be read: only its entry says what is wrong."""
    try:
        descriptor = os.open(path, OPEN_FLAGS)
    except OSError:
        return b""
    try:
        return os.pread(descriptor, size, file_offset) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def files_below(
    root: bytes, rules: ExcludeRules, skip_inodes: Collection[tuple[int, int]], *, one_file_system: bool
) -> Iterator[FileContent]:
    """Yields the regular files below a directory, depth first, the names of each directory in byte order.

    Leaves out what `rules` exclude, `skip_inodes`, further names of a file, and directories that cannot be listed.
    """
    device = os.stat(root).st_dev if one_file_system and os.path.isdir(root) else None
    linked: set[tuple[int, int]] = set()
    levels = [(b"", iter(_listing(root)))]
    while levels:
        prefix, listing = levels[-1]
        item = next(listing, None)
        if item is None:
            levels.pop()
            continue
        path = prefix + item.name
        is_directory = item.is_dir(follow_symlinks=False)
        if rules and rules.excludes(path, is_directory):
            continue
        with suppress(OSError):  # it has vanished
            if is_directory:
                if device is None or item.stat(follow_symlinks=False).st_dev == device:
                    levels.append((path + b"/", iter(_listing(item.path))))
            elif item.is_file(follow_symlinks=False):
                status = item.stat(follow_symlinks=False)
                inode = status.st_dev, status.st_ino
                if inode in skip_inodes or inode in linked:
                    continue
                if status.st_nlink > 1:
                    linked.add(inode)
                yield file_content(item.path, status.st_size)


def _listing(directory: bytes) -> list[os.DirEntry[bytes]]:
    try:
        with os.scandir(directory) as listing:
            return sorted(listing, key=lambda item: item.name)
    except OSError:
        return []
