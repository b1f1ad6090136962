"""Tar archives as sources: what GNU tar writes, members that it never writes, and streams that cannot seek."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tree_helpers import Seen, list_directory, list_source, without_inodes

from gompfs.errors import PackError
from gompfs.pack.sources import Source, open_source

_COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".tar": bytes,
    ".tar.gz": gzip.compress,
    ".tgz": lambda data: gzip.compress(data[:700]) + gzip.compress(data[700:]),
    ".tar.bz2": bz2.compress,
    ".tar.xz": lzma.compress,
    ".tar.zst": zstandard.ZstdCompressor().compress,
    ".tzst": lambda data: b"".join(map(zstandard.ZstdCompressor().compress, (data[:700], data[700:]))),
    ".TAR": gzip.compress,  # the compression is detected from the content, not the name
}


def make_tar(members: list[tuple[tarfile.TarInfo, bytes]], tar_format: int = tarfile.PAX_FORMAT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tar_format, errors="surrogateescape") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    for key, value in fields.items():
        setattr(info, key, value)
    return info


@pytest.fixture
def source_of(tmp_path: Path) -> Callable[..., Source]:
    def make(data: bytes, suffix: str = ".tar", **options: object) -> Source:
        path = tmp_path / f"archive{suffix}"
        path.write_bytes(data)
        return open_source(path, **options)  # type: ignore[arg-type]

    return make


def gnu_tar(directory: Path, target: Path, *options: str) -> None:
    subprocess.run(["tar", "-C", directory, *options, "-cf", target, "."], check=True)


@pytest.mark.parametrize("suffix", _COMPRESSORS)
def test_compressions(suffix: str, source_of: Callable[..., Source]) -> None:
    data = make_tar([(member("d", tarfile.DIRTYPE), b""), (member("d/f"), b"content" * 500)])
    source = source_of(_COMPRESSORS[suffix](data), suffix)
    assert [(path, seen.content) for path, seen in list_source(source).items()] == [
        (b"", None),
        (b"d", None),
        (b"d/f", b"content" * 500),
    ]
    assert source.warnings == []


@pytest.mark.parametrize("sparse", [(), ("-S", "--sparse-version=0.0"), ("-S", "--sparse-version=0.1"), ("-S",)])
def test_pax_of_gnu_tar_keeps_everything(odd_tree: Path, tmp_path: Path, sparse: tuple[str, ...]) -> None:
    target = tmp_path / "odd.tar"
    gnu_tar(odd_tree, target, "--format=posix", "--xattrs", "--xattrs-include=*", *sparse)
    source = open_source(target)
    assert without_inodes(list_source(source)) == without_inodes(list_directory(odd_tree))
    assert source.warnings == []


@pytest.mark.parametrize("options", [(), ("-S",)])
def test_gnu_format_of_gnu_tar(odd_tree: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    """This format has times in whole seconds and no extended attributes."""
    target = tmp_path / "odd.tar"
    gnu_tar(odd_tree, target, "--format=gnu", *options)
    expected = {
        path: seen._replace(mtime_ns=seen.mtime_ns // 10**9 * 10**9, xattrs=())
        for path, seen in list_directory(odd_tree).items()
    }
    assert without_inodes(list_source(open_source(target))) == without_inodes(expected)


@pytest.mark.parametrize(
    "options",
    [("--format=gnu",), ("--sparse-version=0.0",), ("--sparse-version=0.1",), ("--sparse-version=1.0",)],
)
def test_holes_of_sparse_members(tmp_path: Path, options: tuple[str, ...]) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    size = 1 << 20
    with open(tree / "sparse", "wb") as file:
        for place in range(1, 9):  # more pieces than fit in the first header
            file.seek(place * size)
            file.write(bytes([place]) * 4096)
        file.truncate(10 * size)
    gnu_tar(tree, tmp_path / "sparse.tar", "-S", *options)
    (entry,) = (entry for entry in open_source(tmp_path / "sparse.tar").entries() if entry.path == b"sparse")
    assert entry.size == 10 * size
    assert entry.data_ranges == [(place * size, 4096) for place in range(1, 9)]


def test_sparse_content_by_pieces(tmp_path: Path) -> None:
    with open(tmp_path / "sparse", "wb") as file:
        file.seek(100_000)
        file.write(b"a" * 5000)
        file.truncate(300_000)
    pieces_tar = tmp_path / "pieces.tar"
    gnu_tar(tmp_path, pieces_tar, "-S", "--exclude=*.tar")
    names = set()
    for entry in open_source(pieces_tar).entries():
        names.add(entry.path)
        if entry.path == b"sparse":
            pieces = list(entry.read_pieces(4096))
            content = bytearray(entry.size)
            for file_offset, data in pieces:
                content[file_offset : file_offset + len(data)] = data
            assert bytes(content) == (tmp_path / "sparse").read_bytes()
            assert all(len(data) <= 4096 for _, data in pieces)
            assert sum(len(data) for _, data in pieces) < 20_000
    assert b"sparse" in names


@pytest.mark.parametrize("compression", ["cat", "gzip", "xz", "zstd"])
def test_standard_input(odd_tree: Path, compression: str) -> None:
    """A pipe cannot seek. It is read to its end, so that tar is not killed by a closed pipe."""
    if compression == "zstd":
        copy = "zstandard.ZstdCompressor().copy_stream(sys.stdin.buffer, sys.stdout.buffer)"
        compression = f"{sys.executable} -c 'import sys, zstandard; {copy}'"
    program = (
        "from gompfs.pack.sources import open_source\n"
        "source = open_source('-')\n"
        "print(sum(len(e.read_all()) for e in source.entries() if e.has_content), source.warnings)"
    )
    pack = f"tar -C '{odd_tree}' --format=posix -cf - . | {compression}"
    command = f'set -o pipefail; {pack} | {sys.executable} -P -c "{program}"'
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment)
    first_names = {seen.inode: seen for seen in list_directory(odd_tree).values()}.values()
    total = sum(len(seen.content) for seen in first_names if seen.content is not None)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{total} []\n", "")


def test_pipe_by_path(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = make_tar([(member("f"), b"through a pipe")])
    with subprocess.Popen(["dd", f"of={pipe}", "status=none"], stdin=subprocess.PIPE) as writer:
        assert writer.stdin is not None
        writer.stdin.write(data)
        writer.stdin.close()
        assert list_source(open_source(pipe))[b"f"].content == b"through a pipe"


class TestTimes:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("1700000000.123456789", 1_700_000_000_123_456_789),
            ("1700000000.1", 1_700_000_000_100_000_000),
            ("1700000000.1234567899", 1_700_000_000_123_456_789),
            ("1700000000.", 1_700_000_000_000_000_000),
            ("1700000000", 1_700_000_000_000_000_000),
            ("-1.25", -1_250_000_000),
            ("-0.5", -500_000_000),
            ("9999999999.999999999", (1 << 63) - 1),
        ],
    )
    def test_pax(self, text: str, expected: int, source_of: Callable[..., Source]) -> None:
        source = source_of(make_tar([(member("f", pax_headers={"mtime": text}), b"")]))
        assert list_source(source)[b"f"].mtime_ns == expected
        assert len(source.warnings) == (expected == (1 << 63) - 1)

    def test_before_1970_in_gnu_format(self, source_of: Callable[..., Source]) -> None:
        source = source_of(make_tar([(member("f", mtime=-86400), b"")], tarfile.GNU_FORMAT))
        assert list_source(source)[b"f"].mtime_ns == -86400 * 10**9


def test_raw_names(source_of: Callable[..., Source]) -> None:
    name = b"\xff\xfe" * 60 + b"/\x80"
    data = make_tar([(member(os.fsdecode(name)), b"x")], tarfile.GNU_FORMAT)
    assert name in list_source(source_of(data))


class TestHostile:
    def test_names_stay_below_the_root(self, source_of: Callable[..., Source]) -> None:
        names = ["/etc/passwd", "../up", "a/../../up", "//b//./c/", "./d", "a/..", "x" * 256, "...", "e\\f"]
        source = source_of(make_tar([(member(name), b"x") for name in names]))
        assert set(list_source(source)) == {b"", b"etc", b"etc/passwd", b"b", b"b/c", b"d", b"...", b"e\\f"}
        told = "\n".join(source.warnings)
        assert told.count("the name contains '..'; left out") == 3
        assert told.count("leading '/' removed") == 1
        assert told.count("the file name is invalid") == 1

    def test_missing_directories_are_made(self, source_of: Callable[..., Source]) -> None:
        leaf = member("a/b/c", uid=7, gid=8, mtime=9)
        late = member("a/b", tarfile.DIRTYPE, mode=0o700, mtime=5)
        source = source_of(make_tar([(leaf, b"x"), (late, b"")]))
        entries = [(entry.path, entry.mode, entry.uid, entry.gid, entry.mtime_ns) for entry in source.entries()]
        made = stat.S_IFDIR | 0o755
        assert entries == [
            (b"", made, 7, 8, 9 * 10**9),
            (b"a", made, 7, 8, 9 * 10**9),
            (b"a/b", made, 7, 8, 9 * 10**9),
            (b"a/b/c", stat.S_IFREG | 0o644, 7, 8, 9 * 10**9),
            (b"a/b", stat.S_IFDIR | 0o700, 0, 0, 5 * 10**9),
        ]

    def test_later_members_win(self, source_of: Callable[..., Source]) -> None:
        members = [
            (member("f"), b"old"),
            (member("link", tarfile.LNKTYPE, linkname="f"), b""),
            (member("f"), b"new"),
            (member("s", tarfile.SYMTYPE, linkname="f"), b""),
            (member("s"), b"a file now"),
            (member("g"), b""),
            (member("g", tarfile.DIRTYPE), b""),
            (member("g/h"), b"inside"),
        ]
        source = source_of(make_tar(members))
        contents = {path: seen.content for path, seen in list_source(source).items()}
        expected = {
            b"": None,
            b"f": b"new",
            b"link": b"old",
            b"s": b"a file now",
            b"g": None,
            b"g/h": b"inside",
        }
        assert contents == expected
        assert source.warnings == []

    def test_impossible_members_are_left_out(self, source_of: Callable[..., Source]) -> None:
        members = [
            (member("d/f"), b""),
            (member("d"), b"a file over a directory"),
            (member("d/f/g"), b"below a file"),
            (member("s", tarfile.SYMTYPE, linkname="/etc"), b""),
            (member("s/passwd"), b"below a link"),
            (member("h1", tarfile.LNKTYPE, linkname="missing"), b""),
            (member("h2", tarfile.LNKTYPE, linkname="../../etc/shadow"), b""),
            (member("h3", tarfile.LNKTYPE, linkname="d"), b""),
            (member("d/f", tarfile.LNKTYPE, linkname="d/f"), b""),
            (member("long", tarfile.SYMTYPE, linkname="x" * 5000), b""),
            (member("nowhere", tarfile.SYMTYPE, linkname=""), b""),
            (member("./"), b"a file for a root"),
            (member("label", b"V"), b""),
        ]
        source = source_of(make_tar(members))
        assert list(list_source(source)) == [b"", b"d", b"d/f", b"s"]
        told = [warning.removeprefix(f"{source.name}: ") for warning in source.warnings]
        assert told == [
            "d: would replace a directory; left out",
            "d/f/g: lies below d/f, which is not a directory; left out",
            "s/passwd: lies below s, which is not a directory; left out",
            "h1: hard link to missing, which is missing; left out",
            "../../etc/shadow: the name contains '..'; left out",
            "h3: hard link to d, which is missing; left out",
            "long: the symbolic link target is invalid; left out",
            "nowhere: the symbolic link target is invalid; left out",
            ": would replace a directory; left out",
            "label: members of type b'V' are not files; left out",
        ]

    def test_invalid_numbers(self, source_of: Callable[..., Source]) -> None:
        source = source_of(make_tar([(member("f", uid=1 << 40, gid=-5), b"")], tarfile.GNU_FORMAT))
        seen = list_source(source)[b"f"]
        assert (seen.uid, seen.gid) == (65534, 65534)
        assert len(source.warnings) == 1

    def test_devices(self, source_of: Callable[..., Source]) -> None:
        source = source_of(make_tar([(member("null", tarfile.CHRTYPE, devmajor=1, devminor=3), b"")]))
        seen = list_source(source)[b"null"]
        assert (seen.mode, seen.rdev) == (stat.S_IFCHR | 0o644, os.makedev(1, 3))


class TestDamage:
    DATA = make_tar([(member("a"), b"a" * 3000), (member("b"), b"b" * 3000), (member("c"), b"c" * 3000)])

    @pytest.mark.parametrize("cut", [10, 511, 700, 3000, 3584 + 100, 3584 + 512 + 2999])
    def test_cut_inside_a_member(self, cut: int, source_of: Callable[..., Source]) -> None:
        with pytest.raises(PackError, match=r"archive\.tar"):
            list_source(source_of(self.DATA[:cut]))

    def test_cut_between_members(self, source_of: Callable[..., Source]) -> None:
        source = source_of(self.DATA[:3584])
        assert list(list_source(source)) == [b"", b"a"]
        assert "the end-of-archive marker is missing" in source.warnings[0]

    def test_broken_header_is_not_the_end(self, source_of: Callable[..., Source]) -> None:
        data = bytearray(self.DATA)
        data[3584 + 3] ^= 1
        with pytest.raises(PackError, match="broken header near byte 3584"):
            list_source(source_of(bytes(data)))

    @pytest.mark.parametrize("suffix", [".tar.gz", ".tar.xz", ".tar.bz2", ".tar.zst"])
    def test_cut_compressed_stream(self, suffix: str, source_of: Callable[..., Source]) -> None:
        data = _COMPRESSORS[suffix](self.DATA + os.urandom(20_000))
        with pytest.raises(PackError):
            list_source(source_of(data[: len(data) // 2 if suffix != ".tar.zst" else 60], suffix))

    def test_wrong_checksum_at_the_end(self, source_of: Callable[..., Source]) -> None:
        data = bytearray(gzip.compress(self.DATA))
        data[-6] ^= 1
        with pytest.raises(PackError, match="CRC"):
            list_source(source_of(bytes(data), ".tar.gz"))

    @pytest.mark.parametrize("data", [b"", b"PK\x03\x04" * 200, b"just text " * 100])
    def test_files_that_are_not_tar_archives(self, data: bytes, source_of: Callable[..., Source]) -> None:
        with pytest.raises(PackError, match=r"archive\.tar: cannot read the tar archive"):
            list_source(source_of(data))

    @pytest.mark.parametrize("mtime", ["nan", "inf", "-inf", "1e400", "9" * 5000])
    def test_times_that_are_not_numbers(self, mtime: str, source_of: Callable[..., Source]) -> None:
        source = source_of(make_tar([(member("a", pax_headers={"mtime": mtime}), b"")]))
        assert list_source(source)[b"a"].mtime_ns == 0
        assert "the modification time is not a number" in source.warnings[0]

    @pytest.mark.parametrize("mode", [b"\xff" * 8, b"\x80" + b"\xff" * 7, b"\xff" + bytes(7)])
    def test_modes_beyond_any_inode(self, mode: bytes, source_of: Callable[..., Source]) -> None:
        data = bytearray(make_tar([(member("a"), b"")], tarfile.GNU_FORMAT))
        data[100:108] = mode
        data[148:156] = b" " * 8
        data[148:156] = b"%06o\0 " % sum(data[:512])
        assert list_source(source_of(bytes(data)))[b"a"].mode == stat.S_IFREG | mode[-1] | (mode[-2] & 0o17) << 8

    @settings(max_examples=100, deadline=None)
    @example([(100, 255), (156, 0)])
    @given(st.lists(st.tuples(st.integers(0, 4 * 512 - 1), st.integers(0, 255)), min_size=1, max_size=6))
    def test_any_header_bytes(self, changes: list[tuple[int, int]]) -> None:
        """Headers with a valid checksum and random fields give entries or a clean error, without a hang."""
        data = bytearray(make_tar([(member("name", pax_headers={"mtime": "1.5"}), b"x" * 600)]))
        for place, value in changes:
            data[place] = value
        for header in (0, 1024):
            fields = data[header : header + 512]
            fields[148:156] = b" " * 8
            data[header + 148 : header + 156] = b"%06o\0 " % sum(fields)
        path = Path(tempfile_for(bytes(data)))
        try:
            list_source(open_source(path))
        except PackError as error:
            message = str(error)
        else:
            message = str(path)
        finally:
            path.unlink()
        assert str(path) in message


def tempfile_for(data: bytes) -> str:
    with tempfile.NamedTemporaryFile(suffix=".tar", delete=False) as file:
        file.write(data)
    return file.name


def test_content_only_forward_and_before_the_next_member(source_of: Callable[..., Source]) -> None:
    data = make_tar([(member("a"), b"a" * 100), (member("b"), b"b" * 100)])
    entries = source_of(data).entries()
    _, first = next(entries), next(entries)
    assert not first.can_reopen
    with first.open() as stream:
        assert stream.read(10) == b"a" * 10
        stream.seek(50)
        assert stream.read(10) == b"a" * 10
        stream.seek(0)
        with pytest.raises(PackError, match="once"):
            stream.read(10)
    second = next(entries)
    with pytest.raises(PackError, match="once"):
        first.read_all()
    assert second.read_all() == b"b" * 100
    list(entries)


def test_unread_members_are_skipped(source_of: Callable[..., Source]) -> None:
    data = make_tar([(member(name), name.encode() * 3_000_000) for name in "abc"])
    contents = [entry.read_all() for entry in source_of(data).entries() if entry.path == b"c"]
    assert contents == [b"c" * 3_000_000]


def test_exclusions(source_of: Callable[..., Source]) -> None:
    names = ["src/a.c", "src/a.o", "build/x/y", "z"]
    source = source_of(make_tar([(member(name), b"") for name in names]), exclude=["*.o", "build/"])
    assert set(list_source(source)) == {b"", b"src", b"src/a.c", b"z"}


def test_empty_archive_has_a_root(source_of: Callable[..., Source]) -> None:
    assert list(list_source(source_of(bytes(10240)))) == [b""]


_NAMES = st.binary(min_size=1, max_size=120).map(lambda raw: raw.replace(b"\0", b"_").replace(b"/", b"_"))


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(_NAMES.filter(lambda name: name not in (b".", b"..")), st.binary(max_size=2000), max_size=8))
def test_any_names_and_contents(files: dict[bytes, bytes]) -> None:
    for tar_format in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        members = [(member(os.fsdecode(b"d/" + name)), content) for name, content in files.items()]
        data = make_tar(members, tar_format)
        path = Path(tempfile_for(data))
        try:
            seen: dict[bytes, Seen] = list_source(open_source(path))
        finally:
            path.unlink()
        contents = {name: item.content for name, item in seen.items() if item.content is not None}
        assert contents == {b"d/" + name: content for name, content in files.items()}
