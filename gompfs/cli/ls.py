"""`gompfs ls`: lists the entries of an archive."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from functools import lru_cache

from gompfs.cli.application import EXIT_FAILURE, print_error
from gompfs.cli.command_line import command, option
from gompfs.cli.globs import expanded
from gompfs.cli.output import print_json_array, print_line
from gompfs.cli.parameters import archive_argument, json_option, opened, paths_argument
from gompfs.errors import GompfsError
from gompfs.light_types import TYPE_CHECKING
from gompfs.model import ACCESS_ACL, DEFAULT_ACL

if TYPE_CHECKING:
    from gompfs.archive import Archive
    from gompfs.model import Inode

Entry = tuple[bytes, "Inode"]

_SECOND_NS = 1_000_000_000


@command("ls")
@archive_argument
@paths_argument(required=False)
@option(
    "-l",
    "--long",
    is_flag=True,
    help="Also show mode (with + for an ACL), link count, owner, group, size, time.",
)
@option("-R", "--recursive", is_flag=True, help="List subdirectories recursively.")
@option("-0", "--null", is_flag=True, help="End names with a NUL byte, not a newline; never escape names.")
@json_option
def ls_command(
    archive: str,
    paths: tuple[str, ...],
    *,
    long: bool,
    recursive: bool,
    null: bool,
    as_json: bool,
) -> int:
    """List ARCHIVE, or each PATH in it. If PATH is a directory, its content is listed.

    A PATH may be a pattern, quoted, as for a shell: '*.txt' or 'src/**/*.c'.

    Entries are printed as paths that cat and extract accept; directories end in a slash. On a terminal, control
    characters in names are escaped; to a pipe or a file, names are written unchanged.
    """
    failed = False

    def entries() -> Iterator[Entry]:
        nonlocal failed
        for path in expanded(opened_archive, paths or ("",)):
            try:
                yield from _listing(opened_archive, os.fsencode(path), recursive=recursive, follow=not long)
            except GompfsError as error:
                print_error(str(error))
                failed = True

    with opened(archive) as opened_archive:
        found = _inodes_with_acls(opened_archive) if long and not as_json else frozenset()
        with_acls, failed = found or frozenset(), found is None
        if as_json:
            from gompfs.archive.entry_facts import entry_facts

            print_json_array(entry_facts(path, inode) for path, inode in entries())
        else:
            for path, inode in entries():
                name = path + b"/" if stat.S_ISDIR(inode.mode) else path
                if null:
                    print_line(name, end=b"\0", raw=True)
                else:
                    print_line(_long_line(name, inode, with_acls) if long else name)
    return EXIT_FAILURE if failed else 0


def _listing(archive: Archive, path: bytes, *, recursive: bool, follow: bool) -> Iterator[Entry]:
    """Yields the entry at `path`; if it is a directory, its entries instead, with all levels below if `recursive`."""
    inode = archive.resolve(path)
    if stat.S_ISLNK(inode.mode) and (follow or path.endswith(b"/")):
        inode = _target_directory(archive, path) or inode
    shown = path.rstrip(b"/")
    if not stat.S_ISDIR(inode.mode):
        yield shown, inode
        return
    shown = b"" if shown == b"." else shown
    if not recursive:
        prefix = shown + b"/" if shown else b""
        yield from ((prefix + entry.name, entry.inode) for entry in archive.index.directory(inode.ino))
        return
    entries = archive.walk_from(shown, inode)
    next(entries)  # the directory itself
    yield from entries


def _target_directory(archive: Archive, path: bytes) -> Inode | None:
    """The directory that a symlink points to; None if the target does not exist or is not a directory."""
    try:
        inode = archive.resolve(path, follow=True)
    except GompfsError:
        return None
    return inode if stat.S_ISDIR(inode.mode) else None


def _inodes_with_acls(archive: Archive) -> frozenset[int] | None:
    """Returns the inodes that have an ACL, or None if the index is damaged there, which is reported."""
    try:
        return frozenset(archive.index.inodes_with_xattrs(ACCESS_ACL, DEFAULT_ACL) if archive.has_xattrs() else ())
    except GompfsError as error:
        print_error(str(error))
        return None


def _long_line(name: bytes, inode: Inode, with_acls: frozenset[int]) -> bytes:
    size = str(inode.size)
    if stat.S_ISCHR(inode.mode) or stat.S_ISBLK(inode.mode):
        size = f"{os.major(inode.rdev)},{os.minor(inode.rdev)}"
    owner = f"{_user_name(inode.uid)}/{_group_name(inode.gid)}"
    # Fixed widths that fit most entries: no first pass over all entries is needed to align the columns.
    mark = "" if not with_acls else "+" if inode.ino in with_acls else " "
    head = f"{stat.filemode(inode.mode)}{mark} {inode.nlink:>2} {owner:<10} {size:>11} {_time(inode.mtime_ns)} "
    line = head.encode() + name
    return line if inode.symlink_target is None else line + b" -> " + inode.symlink_target


def _time(mtime_ns: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(mtime_ns // _SECOND_NS))
    except (OverflowError, ValueError, OSError):
        return f"@{mtime_ns // _SECOND_NS}"  # a year that the C library cannot format


@lru_cache
def _user_name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return str(uid)


@lru_cache
def _group_name(gid: int) -> str:
    import grp

    try:
        return grp.getgrgid(gid).gr_name
    except (KeyError, OverflowError):
        return str(gid)
