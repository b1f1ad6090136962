"""What system calls on a read-only tree must return: the tests of pjdfstest's list that concern reading and refusal.

The expected results come from the same calls on the packed tree itself, through a read-only bind mount.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tree_helpers import pack

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make devices and bind mounts")


Call = Callable[[Path], Any]
LONGEST_NAME = "n" * 255
NUM_MANY = 4000


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("posix") / "tree"
    (root / "directory/below").mkdir(parents=True)
    (root / "empty-directory").mkdir()
    (root / "file").write_bytes(b"content\n" * 20_000)
    (root / "empty").touch()
    os.link(root / "file", root / "directory/again")
    os.link(root / "file", root / "directory/below/third")
    (root / LONGEST_NAME).write_text("long")
    os.symlink("file", root / "to-file")
    os.symlink("directory", root / "to-directory")
    os.symlink("nothing", root / "to-nothing")
    os.symlink("/file", root / "to-absolute")
    os.symlink("loop-b", root / "loop-a")
    os.symlink("loop-a", root / "loop-b")
    os.symlink("./" * 2045 + "file", root / "to-far")
    os.symlink("x" * 256, root / "to-long-name")
    for number in range(1, 42):
        os.symlink("file" if number == 1 else f"chain-{number - 1}", root / f"chain-{number}")
    with open(root / "sparse", "wb") as file:
        for place in (1 << 20, 5 << 30):
            file.seek(place)
            file.write(b"data" * 1024)
        file.truncate(6 << 30)
    os.mkfifo(root / "fifo")
    os.mknod(root / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(root / "block", stat.S_IFBLK | 0o600, os.makedev(7, 200))
    for mode in (0o4755, 0o2755, 0o1777, 0o0000, 0o0600):
        (root / f"mode-{mode:04o}").touch()
        os.chmod(root / f"mode-{mode:04o}", mode)
    (root / "secret").mkdir(mode=0o700)
    (root / "secret/inside").write_text("inside")
    os.setxattr(root / "file", "user.name", b"value")
    (root / "many").mkdir()
    for number in range(NUM_MANY):
        (root / "many" / f"{number:05d}{'-' * (number % 50)}").touch()
    for number, time_ns in enumerate((0, 1, -1, -1_500_000_001, 1_234_567_890_123_456_789, 1 << 33)):
        (root / f"time-{number}").touch()
        os.utime(root / f"time-{number}", ns=(time_ns, time_ns))
    return root


@pytest.fixture(scope="module")
def archive(tree: Path) -> Path:
    pack(tree.parent / "posix.gomp", tree, block_size=16 << 10)
    return tree.parent / "posix.gomp"


@pytest.fixture(scope="module")
def original(tree: Path) -> Iterator[Path]:
    """The packed tree itself, bind-mounted read-only."""
    place = tree.parent / "original"
    place.mkdir()
    for command in (["mount", "--bind", tree, place], ["mount", "-o", "remount,ro,bind", place]):
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            subprocess.run(["umount", place], capture_output=True, check=False)
            pytest.skip("this user may not make bind mounts")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def outcome(call: Call, root: Path) -> Any:
    """Returns the result of a call, or the name of its error."""
    try:
        return call(root)
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def opened(flags: int, name: str) -> Call:
    def call(root: Path) -> str:
        os.close(os.open(root / name, flags, 0o600))
        return "opened"

    return call


def on(name: str, call: Callable[[int], Any], flags: int = 0) -> Call:
    """Returns a call on a descriptor of that file."""
    return lambda root: with_descriptor(root / name, call, flags)


REFUSED: dict[str, Call] = {
    "open to write": opened(os.O_WRONLY, "file"),
    "open to read and write": opened(os.O_RDWR, "file"),
    "open to truncate": opened(os.O_RDONLY | os.O_TRUNC, "file"),
    "open to append": opened(os.O_WRONLY | os.O_APPEND, "file"),
    "open through a link to write": opened(os.O_WRONLY, "to-file"),
    "creat": opened(os.O_WRONLY | os.O_CREAT, "new"),
    "creat exclusively": opened(os.O_WRONLY | os.O_CREAT | os.O_EXCL, "new"),
    "O_TMPFILE": opened(os.O_WRONLY | os.O_TMPFILE, "directory"),
    "mkdir": lambda root: os.mkdir(root / "new"),
    "mknod of a file": lambda root: os.mknod(root / "new", stat.S_IFREG | 0o600),
    "mknod of a device": lambda root: os.mknod(root / "new", stat.S_IFCHR | 0o600, os.makedev(1, 3)),
    "mkfifo": lambda root: os.mkfifo(root / "new"),
    "link": lambda root: os.link(root / "file", root / "new"),
    "symlink": lambda root: os.symlink("file", root / "new"),
    "rename": lambda root: os.rename(root / "file", root / "new"),
    "rename onto another": lambda root: os.rename(root / "file", root / "empty"),
    "rename of a directory": lambda root: os.rename(root / "directory", root / "empty-directory"),
    "unlink": lambda root: os.unlink(root / "file"),
    "unlink of nothing": lambda root: os.unlink(root / "nothing"),
    "rmdir": lambda root: os.rmdir(root / "empty-directory"),
    "rmdir of one that is full": lambda root: os.rmdir(root / "directory"),
    "truncate": lambda root: os.truncate(root / "file", 1),
    "chmod": lambda root: os.chmod(root / "file", 0o600),
    "chmod of a directory": lambda root: os.chmod(root / "directory", 0o700),
    "chown": lambda root: os.chown(root / "file", 1, 1),
    "lchown": lambda root: os.lchown(root / "to-nothing", 1, 1),
    "utimensat": lambda root: os.utime(root / "file", ns=(1, 1)),
    "utimensat of a link": lambda root: os.utime(root / "to-file", ns=(1, 1), follow_symlinks=False),
    "setxattr": lambda root: os.setxattr(root / "file", "user.new", b"x"),
    "removexattr": lambda root: os.removexattr(root / "file", "user.name"),
    "access to write": lambda root: access(root / "file", os.W_OK),
    "access to write a directory": lambda root: access(root / "directory", os.W_OK),
}


def stat_behind_a_listing(directory: Path) -> None:
    """Looks up a name after its directory was listed, since listed names may be answered in another way."""
    assert os.listdir(directory)
    os.stat(directory / ("x" * 256))


ERRORS: dict[str, tuple[str, Call]] = {
    "stat of nothing": ("ENOENT", lambda root: os.stat(root / "nothing")),
    "open of nothing": ("ENOENT", opened(os.O_RDONLY, "nothing")),
    "below nothing": ("ENOENT", lambda root: os.stat(root / "nothing/below")),
    "stat through a broken link": ("ENOENT", lambda root: os.stat(root / "to-nothing")),
    "readlink of nothing": ("ENOENT", lambda root: os.readlink(root / "nothing")),
    "listing nothing": ("ENOENT", lambda root: os.listdir(root / "nothing")),
    "an empty path": ("ENOENT", lambda root: os.stat("")),
    "below a file": ("ENOTDIR", lambda root: os.stat(root / "file/below")),
    "dot below a file": ("ENOTDIR", lambda root: os.stat(f"{root}/file/.")),
    "slash behind a file": ("ENOTDIR", lambda root: os.stat(f"{root}/file/")),
    "below a link to a file": ("ENOTDIR", lambda root: os.stat(root / "to-file/below")),
    "below a fifo": ("ENOTDIR", lambda root: os.stat(root / "fifo/below")),
    "listing a file": ("ENOTDIR", lambda root: os.listdir(root / "file")),
    "O_DIRECTORY of a file": ("ENOTDIR", opened(os.O_RDONLY | os.O_DIRECTORY, "file")),
    "O_DIRECTORY of a link, not followed": ("ENOTDIR", opened(os.O_DIRECTORY | os.O_NOFOLLOW, "to-directory")),
    "a name of 256 bytes": ("ENAMETOOLONG", lambda root: os.stat(root / ("x" * 256))),
    "a name of 256 bytes where others were listed": ("ENAMETOOLONG", lambda root: stat_behind_a_listing(root / "many")),
    "a name of 1000 bytes": ("ENAMETOOLONG", lambda root: os.stat(root / ("x" * 1000))),
    "a name of 2000 bytes": ("ENAMETOOLONG", lambda root: os.stat(root / ("x" * 2000))),
    "a link to a name of 256 bytes": ("ENAMETOOLONG", lambda root: os.stat(root / "to-long-name")),
    "a path of 4096 bytes": ("ENAMETOOLONG", lambda root: os.stat(padded(root, 4096))),
    "two links in a loop": ("ELOOP", lambda root: os.stat(root / "loop-a")),
    "below a loop": ("ELOOP", lambda root: os.stat(root / "loop-a/below")),
    "a chain of 41 links": ("ELOOP", lambda root: os.stat(root / "chain-41")),
    "O_NOFOLLOW of a link": ("ELOOP", opened(os.O_RDONLY | os.O_NOFOLLOW, "to-file")),
    "O_NOFOLLOW of a broken link": ("ELOOP", opened(os.O_RDONLY | os.O_NOFOLLOW, "to-nothing")),
    "read of a directory": ("EISDIR", lambda root: read(root / "directory", 10)),
    "open of a directory to write": ("EISDIR", opened(os.O_WRONLY, "directory")),
    "open of a directory to read and write": ("EISDIR", opened(os.O_RDWR, "directory")),
    "readlink of a file": ("EINVAL", lambda root: os.readlink(root / "file")),
    "readlink of a directory": ("EINVAL", lambda root: os.readlink(root / "directory")),
    "readlink of a fifo": ("EINVAL", lambda root: os.readlink(root / "fifo")),
    "mkdir of what is there": ("EEXIST", lambda root: os.mkdir(root / "directory")),
    "creat exclusively of what is there": ("EEXIST", opened(os.O_CREAT | os.O_EXCL | os.O_WRONLY, "file")),
    "creat exclusively of a broken link": ("EEXIST", opened(os.O_CREAT | os.O_EXCL | os.O_WRONLY, "to-nothing")),
    "symlink over what is there": ("EEXIST", lambda root: os.symlink("x", root / "file")),
    "unlink below a file": ("ENOTDIR", lambda root: os.unlink(root / "file/below")),
    "write by a descriptor to read": ("EBADF", on("file", lambda fd: os.write(fd, b"x"))),
    "ftruncate": ("EINVAL", on("file", lambda fd: os.ftruncate(fd, 0))),
    "pread before the start": ("EINVAL", on("file", lambda fd: os.pread(fd, 1, -1))),
    "lseek before the start": ("EINVAL", on("file", lambda fd: os.lseek(fd, -1, 0))),
    "lseek to data behind the end": ("ENXIO", lambda root: seek(root / "file", 160_000, os.SEEK_DATA)),
    "lseek to a hole behind the end": ("ENXIO", lambda root: seek(root / "file", 160_001, os.SEEK_HOLE)),
    "a shared writable map": ("EACCES", on("file", lambda fd: mmap.mmap(fd, 100))),
    "lseek to data in the last hole": ("ENXIO", lambda root: seek(root / "sparse", (6 << 30) - 1, os.SEEK_DATA)),
    "lseek to a hole at the end": ("ENXIO", lambda root: seek(root / "sparse", 6 << 30, os.SEEK_HOLE)),
    "an attribute that is not there": ("ENODATA", lambda root: os.getxattr(root / "file", "user.other")),
    "attributes of nothing": ("ENOENT", lambda root: os.listxattr(root / "nothing")),
    "run what has no x": ("EACCES", lambda root: subprocess.run([root / "file"], check=False)),
}

VALUES: dict[str, Call] = {
    "content": lambda root: (root / "file").read_bytes(),
    "read behind the end": on("file", lambda fd: os.pread(fd, 10, 160_000)),
    "read over the end": on("file", lambda fd: os.pread(fd, 10, 159_995)),
    "read far behind the end": on("file", lambda fd: os.pread(fd, 10, 1 << 45)),
    "read of nothing": lambda root: read(root / "empty", 10),
    "read of no bytes": lambda root: read(root / "file", 0),
    "end": lambda root: seek(root / "file", 0, os.SEEK_END),
    "seek behind the end": lambda root: seek(root / "file", 1 << 40, os.SEEK_SET),
    "first hole of a dense file": lambda root: seek(root / "file", 0, os.SEEK_HOLE),
    "data of a dense file": lambda root: seek(root / "file", 77, os.SEEK_DATA),
    "data after a hole": lambda root: [seek(root / "sparse", at, os.SEEK_DATA) for at in (0, 99, 1 << 20, 2 << 20)],
    "holes after data": lambda root: [
        seek(root / "sparse", at, os.SEEK_HOLE) for at in (0, 99, 1 << 20, (1 << 20) + 5, 5 << 30, (6 << 30) - 1)
    ],
    "blocks of files with holes": lambda root: os.stat(root / "sparse").st_blocks,
    "the longest name": lambda root: (root / LONGEST_NAME).read_text(),
    "a path of 4095 bytes": lambda root: stat.S_IFMT(os.stat(padded(root, 4095)).st_mode),
    "through a far link": lambda root: (root / "to-far").read_bytes() == (root / "file").read_bytes(),
    "a chain of 40 links": lambda root: os.stat(root / "chain-40").st_size,
    "targets": lambda root: [os.readlink(path) for path in sorted(root.iterdir()) if path.is_symlink()],
    "sizes of links": lambda root: [os.lstat(path).st_size for path in sorted(root.iterdir()) if path.is_symlink()],
    "an absolute link leads out": lambda root: outcome(lambda root: os.stat(root / "to-absolute").st_size, root),
    "types and modes": lambda root: [(path.name, os.lstat(path).st_mode) for path in sorted(root.iterdir())],
    "devices": lambda root: [os.stat(root / name).st_rdev for name in ("null", "block")],
    "times": lambda root: [(path.name, os.lstat(path).st_mtime_ns) for path in sorted(root.glob("time-*"))],
    "links of a file": lambda root: os.stat(root / "file").st_nlink,
    "links of directories": lambda root: [os.stat(root / name).st_nlink for name in (".", "directory", "many")],
    "one file by three names": lambda root: len({os.stat(path).st_ino for path in hard_links(root)}),
    "one device for all": lambda root: len({os.lstat(path).st_dev for path in root.rglob("*")}),
    "dots": lambda root: [
        os.path.samefile(root / "directory/.", root / "directory"),
        os.path.samefile(root / "directory/below/..", root / "directory"),
        os.path.samefile(root / "directory/../directory", root / "to-directory"),
    ],
    "readdir begins with dots": lambda root: sorted(readdir(root / "empty-directory")),
    "readdir": lambda root: sorted(readdir(root / "many")),
    "openat": on(
        "directory", lambda fd: with_descriptor("below/../again", os.fstat, dir_fd=fd).st_size, os.O_DIRECTORY
    ),
    "readlinkat and fstatat": lambda root: with_descriptor(
        root,
        lambda fd: (os.readlink("to-file", dir_fd=fd), os.stat("to-file", dir_fd=fd, follow_symlinks=False).st_size),
        os.O_DIRECTORY,
    ),
    "O_PATH of a link": on("to-file", lambda fd: stat.S_ISLNK(os.fstat(fd).st_mode), os.O_PATH | os.O_NOFOLLOW),
    "access": lambda root: [access(root / name, os.R_OK | os.F_OK) for name in ("file", "directory", "to-file")],
    "flags of a descriptor": on("file", lambda fd: fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE, os.O_DIRECT),
    "a lock to read": on("file", lambda fd: fcntl.flock(fd, fcntl.LOCK_SH)),
    "fsync": on("file", os.fsync),
    "a private map": lambda root: with_descriptor(root / "file", private_map),
    "attributes": lambda root: [os.listxattr(root / "file"), os.getxattr(root / "file", "user.name")],
    "bytes of a huge file": on(
        "sparse", lambda fd: [os.pread(fd, 5000, at) for at in (0, (1 << 20) - 7, (5 << 30) + 4000, (6 << 30) - 9)]
    ),
    "read-only, says statvfs": lambda root: os.statvfs(root).f_flag & os.ST_RDONLY,
    "longest name, says statvfs": lambda root: os.statvfs(root).f_namemax,
    "longest name, says pathconf": lambda root: os.pathconf(root, "PC_NAME_MAX"),
}


def access(path: Path, mode: int) -> str:
    """Calls access(2). Raises OSError with its errno."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.access(os.fsencode(path), mode) != 0:
        raise OSError(ctypes.get_errno(), "access")
    return "granted"


def with_descriptor(path: Path | str, call: Callable[[int], Any], flags: int = 0, dir_fd: int | None = None) -> Any:
    descriptor = os.open(path, os.O_RDONLY | flags, dir_fd=dir_fd)
    try:
        return call(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path, size: int) -> bytes:
    return with_descriptor(path, lambda descriptor: os.read(descriptor, size))


def seek(path: Path, file_offset: int, whence: int) -> int:
    return with_descriptor(path, lambda descriptor: os.lseek(descriptor, file_offset, whence))


def private_map(descriptor: int) -> bytes:
    with mmap.mmap(descriptor, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as view:
        view[:3] = b"new"  # changes this process's copy only
        return view[:20] + os.pread(descriptor, 20, 0)


def padded(root: Path, length: int) -> str:
    """Returns a path to `file` that is `length` bytes long."""
    rest = length - len(os.fsencode(root)) - len("file")
    return f"{root}{'/' * (rest % 2)}{'/.' * ((rest - rest % 2 - 2) // 2)}{'/' * 2}file"


def hard_links(root: Path) -> list[Path]:
    return [root / "file", root / "directory/again", root / "directory/below/third"]


class DirectoryStream:
    """opendir(3), readdir(3), telldir(3) and seekdir(3), which Python does not offer."""

    _NAME = 19  # offset of d_name in struct dirent, after d_ino, d_off, d_reclen and d_type

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        for name in ("opendir", "readdir"):
            getattr(self._library, name).restype = ctypes.c_void_p
        self._library.telldir.restype = ctypes.c_long
        self._stream = ctypes.c_void_p(self._library.opendir(os.fsencode(path)))
        assert self._stream.value

    def next(self) -> bytes | None:
        entry = self._library.readdir(self._stream)
        return ctypes.string_at(entry + self._NAME) if entry else None

    def tell(self) -> int:
        return int(self._library.telldir(self._stream))

    def seek(self, position: int) -> None:
        self._library.seekdir(self._stream, ctypes.c_long(position))

    def rewind(self) -> None:
        self._library.rewinddir(self._stream)

    def close(self) -> None:
        self._library.closedir(self._stream)


def readdir(path: Path) -> list[bytes]:
    stream = DirectoryStream(path)
    names = list(iter(stream.next, None))
    stream.close()
    return names


@pytest.mark.parametrize("name", REFUSED)
def test_nothing_can_be_changed(name: str, mounted: Path, original: Path) -> None:
    assert outcome(REFUSED[name], mounted) == "EROFS" == outcome(REFUSED[name], original)


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str, mounted: Path, original: Path) -> None:
    expected, call = ERRORS[name]
    assert outcome(call, mounted) == expected == outcome(call, original)


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str, mounted: Path, original: Path) -> None:
    assert outcome(VALUES[name], mounted) == outcome(VALUES[name], original)


def test_refused_calls_have_changed_nothing(mounted: Path, tree: Path) -> None:
    for call in REFUSED.values():
        outcome(call, mounted)
    assert sorted(os.listdir(mounted)) == sorted(os.listdir(tree))
    assert (mounted / "file").read_bytes() == (tree / "file").read_bytes()


def test_positions_in_a_directory(mounted: Path) -> None:
    """telldir, seekdir and rewinddir lead back to the same entries, in any order."""
    stream = DirectoryStream(mounted / "many")
    places, names = [stream.tell()], []
    while (name := stream.next()) is not None:
        names.append(name)
        places.append(stream.tell())
    assert len(set(names)) == len(names) == NUM_MANY + 2
    assert len(set(places[:-1])) == len(names)
    for index in (0, 1, 2, 3, 1000, NUM_MANY + 1, 17, NUM_MANY // 2, 0):
        stream.seek(places[index])
        assert stream.tell() == places[index]
        assert [stream.next() for _ in range(3)] == [*names[index : index + 3], None, None, None][:3]
    stream.rewind()
    assert list(iter(stream.next, None)) == names
    stream.close()


def test_inode_numbers_of_entries_are_those_of_stat(mounted: Path) -> None:
    with os.scandir(mounted) as entries:
        numbers = {entry.name: entry.inode() for entry in entries}
    assert numbers == {name: os.lstat(mounted / name).st_ino for name in os.listdir(mounted)}


def test_a_map_ends_with_the_last_page(mounted: Path) -> None:
    """After the end of the file, the rest of the last page is zeros."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    size, whole = 160_000, -(-160_000 // mmap.PAGESIZE) * mmap.PAGESIZE
    descriptor = os.open(mounted / "file", os.O_RDONLY)
    place = library.mmap(None, whole, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    os.close(descriptor)
    assert ctypes.string_at(place + size - 8, 8) == b"content\n"
    assert not any(ctypes.string_at(place + size, whole - size))
    library.munmap(place, whole)


def test_another_user_sees_what_the_modes_allow(archive: Path, mount_type: type) -> None:
    """With allow_other the kernel checks permissions, so that a mount made by root discloses nothing."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    served = mount_type(archive, folder / "mounted", "allow_other")
    try:
        for name, allowed in (("file", True), ("mode-0600", False), ("mode-0000", False), ("secret/inside", False)):
            done = subprocess.run(["cat", served / name], user=65534, capture_output=True, check=False)
            assert (done.returncode == 0) == allowed, name
            assert allowed or b"Permission denied" in done.stderr
        done = subprocess.run(["ls", served / "secret"], user=65534, capture_output=True, check=False)
        assert b"Permission denied" in done.stderr
        assert (served / "secret/inside").read_text() == "inside"
    finally:
        served.clean_up()
        shutil.rmtree(folder)


def test_without_allow_other_other_users_are_refused(archive: Path, mount_type: type) -> None:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    served = mount_type(archive, folder / "mounted")
    try:
        done = subprocess.run(["ls", served.path], user=65534, capture_output=True, check=False)
        assert b"Permission denied" in done.stderr
    finally:
        served.clean_up()
        shutil.rmtree(folder)
