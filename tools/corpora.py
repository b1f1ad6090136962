"""Makes trees of files that are difficult for an archiver, for tests and benchmarks.

    python tools/corpora.py tree DIRECTORY [--kinds names,links,...] [--entries N] [--seed S]
    python tools/corpora.py tar FILE|- --entries 1000000 [--seed S]

`tree` writes one directory per kind below DIRECTORY. `--entries` is the size of the kind `many`, which is left out
unless `--kinds` names it. `tar` writes a tar stream of `--entries` entries, and creates no other files. The same
arguments give the same bytes, names, modes and times.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import stat
import sys
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

__all__ = ["KINDS", "main", "make_tree", "write_tar"]

_BASE_TIME_NS = 1_600_000_000_000_000_000
_WORDS = (
    b"block",
    b"segment",
    b"section",
    b"sequence",
    b"literal",
    b"match",
    b"window",
    b"rule",
    b"splitter",
)
_NAMES_PER_DIRECTORY = 500
_SPARSE_PIECE = 64 << 10


def make_tree(
    root: str | os.PathLike[str],
    kinds: Sequence[str] | None = None,
    *,
    num_entries: int = 1000,
    seed: int = 0,
) -> None:
    """Make `root` with one directory for each of `kinds` (None: all except `many`).

    Leaves out what this user or file system cannot have: without root, devices and files that their owner cannot
    read; extended attributes where the file system has none.
    Raises KeyError for an unknown kind, OSError if `root` exists.
    """
    chosen = [kind for kind in KINDS if kind != "many"] if kinds is None else kinds
    top = os.fsencode(root)
    os.mkdir(top)
    for kind in chosen:
        directory = os.path.join(top, kind.encode())
        os.mkdir(directory)
        KINDS[kind](directory, random.Random(f"{seed} {kind}"), num_entries)
    _settle_times(top, random.Random(f"{seed} times"))


def write_tar(file: BinaryIO, num_entries: int, *, seed: int = 0) -> None:
    """Write a tar of `num_entries` entries, including directories: small text files and some links."""
    rng = random.Random(f"{seed} tar")
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        directory = ""
        for number in range(num_entries):
            if number % _NAMES_PER_DIRECTORY == 0:
                directory = f"d{number // _NAMES_PER_DIRECTORY:06d}"
                member = tarfile.TarInfo(directory)
                member.type, member.mode = tarfile.DIRTYPE, 0o755
            else:
                member = tarfile.TarInfo(f"{directory}/f{number:07d}")
            member.mtime = _BASE_TIME_NS // 1_000_000_000 + number
            if number % _NAMES_PER_DIRECTORY == 2:
                member.type, member.linkname = tarfile.LNKTYPE, f"{directory}/f{number - 1:07d}"
            elif number % _NAMES_PER_DIRECTORY == 3:
                member.type, member.linkname = tarfile.SYMTYPE, f"f{number - 1:07d}"
            content = _text(rng, rng.randrange(60)) if member.type == tarfile.REGTYPE else b""
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
            archive.members.clear()  # type: ignore[attr-defined]


def _text(rng: random.Random, size: int) -> bytes:
    """Returns about `size` bytes of words and line ends."""
    words = [rng.choice(_WORDS) for _ in range(max(1, size // 7))] if size else []
    return b"".join(word + (b"\n" if index % 9 == 8 else b" ") for index, word in enumerate(words))


def _write(directory: bytes, name: bytes, content: bytes) -> bytes:
    path = os.path.join(directory, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


def _make_names(directory: bytes, rng: random.Random, _: int) -> None:
    """Make files whose names are difficult for text handling and sorting."""
    names = [
        *(b" ", b"  two  ", b"-rf", b"--", b"~", b"*", b"?", b"[a]", b"\\", b"#", b"!", b"$HOME", b"'\"`"),
        *(b"new\nline", b"tab\there", b"\x01\x1b[31m", b"\x7f", b"a\rb", b".hidden", b"..two-dots", b"..."),
        *(
            b"\xff\xfe",
            b"latin-\xe4\xf6\xfc",
            b"\xc3\x28",
            b"\xed\xa0\x80",
            "ünï-nfc".encode(),
            "u\u0308".encode(),
        ),
        *(
            "日本語".encode(),
            "\U0001f4e6".encode(),
            "\u202eltr".encode(),
            b"n" * 255,
            b"CON",
            b"a:b",
            b"x;y|z&",
        ),
        *(b"a", b"a.b", b"a-b", b"a b", b"A", b"aa"),
    ]
    for name in names:
        _write(directory, name, _text(rng, 40))
    os.mkdir(os.path.join(directory, b"a.d"))
    os.mkdir(os.path.join(directory, b"a\xfe"))
    _write(os.path.join(directory, b"a\xfe"), b"inside", b"x")
    for _ in range(20):
        random_name = bytes(byte for byte in rng.randbytes(12) if byte not in b"\0/") or b"_"
        _write(directory, b"r" + random_name, random_name)


def _make_deep(directory: bytes, rng: random.Random, _: int) -> None:
    """Make directories nested deeper than a walk can keep open, and a path of nearly PATH_MAX bytes."""
    path = directory
    for level in range(120):
        path = os.path.join(path, b"%d" % level)
        os.mkdir(path)
        if level % 10 == 0:
            _write(path, b"leaf", _text(rng, 30))
    path = directory
    while len(path) < 3600 - 255:
        path = os.path.join(path, b"long" * 40)
        os.mkdir(path)
    _write(path, b"end", b"far from the root\n")


def _make_links(directory: bytes, rng: random.Random, _: int) -> None:
    """Make hard links within and across directories, one of them to a symlink, and symbolic links of many kinds."""
    os.mkdir(os.path.join(directory, b"other"))
    first = _write(directory, b"m-first", _text(rng, 200))
    for name in (b"a-second", b"z-third", b"other/fourth"):
        os.link(first, os.path.join(directory, name))
    os.link(_write(directory, b"empty", b""), os.path.join(directory, b"empty-too"))
    targets = [
        b"m-first",
        b"other",
        b"missing",
        b"/etc/hostname",
        b"../..",
        b"loop",
        b"\xff\n",
        b"t/" * 1000 + b"t",
    ]
    for number, target in enumerate(targets):
        os.symlink(target, os.path.join(directory, b"s%d" % number))
    os.symlink(b"loop", os.path.join(directory, b"loop"))
    os.link(os.path.join(directory, b"s0"), os.path.join(directory, b"s0-again"), follow_symlinks=False)


def _make_sparse(directory: bytes, rng: random.Random, _: int) -> None:
    """Make files with holes at the front, in the middle and at the end, and a file that is one hole."""
    shapes = {b"front": [7], b"middle": [0, 9], b"end": [0], b"hole": [], b"many": list(range(0, 64, 3))}
    for name, places in shapes.items():
        with open(os.path.join(directory, name), "wb") as file:
            for place in places:
                file.seek(place * _SPARSE_PIECE)
                file.write(_text(rng, 3000))
            file.truncate(70 * _SPARSE_PIECE + 123)


def _make_contents(directory: bytes, rng: random.Random, _: int) -> None:
    """Make files with sizes around block limits, identical files, text, zeros, noise, and a text with a late NUL."""
    for size in (0, 1, 2, 15, 16, 4095, 4096, 65535, 65536, 65537, 131072, 300_000):
        _write(
            directory,
            b"text-%d" % size,
            (_text(rng, size) + b"end " * 4 + b"." * size)[:size],
        )
        _write(directory, b"noise-%d" % size, rng.randbytes(size))
    same = _text(rng, 100_000)
    for number in range(5):
        _write(directory, b"same-%d" % number, same)
    _write(directory, b"zeros", bytes(200_000))
    _write(directory, b"late-nul", _text(rng, 20_000) + b"\0" + _text(rng, 100))
    _write(directory, b"one-line", b"word" * 50_000)
    _write(directory, b"spaces", b" \t\n\v\f\r" * 1000)


def _make_attributes(directory: bytes, rng: random.Random, _: int) -> None:
    """Make entries with special mode bits, xattrs with arbitrary bytes, and directories with various modes."""
    for mode in (0o000, 0o400, 0o644, 0o755, 0o4755, 0o2711, 0o1644, 0o7777):
        if mode & stat.S_IRUSR or os.geteuid() == 0:  # its owner cannot read the other one
            os.chmod(_write(directory, b"mode-%04o" % mode, _text(rng, 20)), mode)
    for mode in (0o700, 0o1777, 0o2775, 0o555):
        path = os.path.join(directory, b"directory-%04o" % mode)
        os.mkdir(path)
        os.chmod(path, mode)
    attributed = _write(directory, b"xattrs", b"x")
    for target in (attributed, directory):
        for name, value in ((b"user.empty", b""), (b"user.bytes", bytes(range(256))), (b"user.a=b%c", b"\n")):
            try:
                os.setxattr(target, name, value)
            except OSError:  # this file system has no xattrs
                return


def _make_types(directory: bytes, _rng: random.Random, _: int) -> None:
    """Make a FIFO, and devices if this user is allowed to."""
    os.mkfifo(os.path.join(directory, b"fifo"), 0o640)
    try:
        os.mknod(os.path.join(directory, b"null"), stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.mknod(os.path.join(directory, b"loop"), stat.S_IFBLK | 0o660, os.makedev(7, 300))
    except PermissionError:
        return


def _make_many(directory: bytes, rng: random.Random, num_entries: int) -> None:
    """Make `num_entries` entries, including directories: tiny text files."""
    path = directory
    for number in range(num_entries):
        if number % _NAMES_PER_DIRECTORY == 0:
            path = os.path.join(directory, b"%06d" % (number // _NAMES_PER_DIRECTORY))
            os.mkdir(path)
        else:
            _write(path, b"%07d" % number, _text(rng, rng.randrange(60)))


def _settle_times(top: bytes, rng: random.Random) -> None:
    """Give each entry its own time with nanoseconds, some before 1970; children before their parents."""
    for path, directories, files in os.walk(top, topdown=False):
        for name in sorted(files) + sorted(directories):
            _set_time(os.path.join(path, name), rng)
    _set_time(top, rng)


def _set_time(path: bytes, rng: random.Random) -> None:
    time_ns = _BASE_TIME_NS + rng.randrange(-(10**17), 10**17)
    if rng.randrange(50) == 0:
        time_ns = -rng.randrange(1, 10**15)
    os.utime(path, ns=(time_ns, time_ns), follow_symlinks=False)


KINDS: dict[str, Callable[[bytes, random.Random, int], None]] = {
    "names": _make_names,
    "deep": _make_deep,
    "links": _make_links,
    "sparse": _make_sparse,
    "contents": _make_contents,
    "attributes": _make_attributes,
    "types": _make_types,
    "many": _make_many,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line that the head of this file describes."""
    parser = argparse.ArgumentParser(description="Make test trees.")
    jobs = parser.add_subparsers(dest="job", required=True)
    tree = jobs.add_parser("tree", help="a directory tree")
    tree.add_argument("directory", type=Path)
    tree.add_argument("--kinds", help=f"comma-separated list of: {', '.join(KINDS)}")
    tar = jobs.add_parser("tar", help="a tar stream of many entries")
    tar.add_argument("file", help="where to write, - for standard output")
    for job in (tree, tar):
        job.add_argument("--entries", type=int, default=1000)
        job.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.job == "tree":
        kinds = options.kinds.split(",") if options.kinds else None
        make_tree(options.directory, kinds, num_entries=options.entries, seed=options.seed)
    elif options.file == "-":
        write_tar(sys.stdout.buffer, options.entries, seed=options.seed)
    else:
        with open(options.file, "wb") as file:
            write_tar(file, options.entries, seed=options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
