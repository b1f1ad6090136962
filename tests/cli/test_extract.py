"""`gompfs extract`: obstacles in the target, interrupts, and a process that replaces entries while it runs."""

from __future__ import annotations

import os
import random
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tree_helpers import list_directory, pack

from gompfs.archive import Archive
from gompfs.archive.extract import Extractor

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make devices and to become another user")

# Replaces each entry of a directory by a symlink to a file as soon as the entry exists.
SWAPPER = """
import os, sys
target, victim = sys.argv[1:3]
os.mkdir(target)
os.chdir(target)
print("ready", flush=True)
swapped = set()
while not os.path.exists("done"):
    for name in os.listdir():
        if name not in swapped:
            os.symlink(victim, "../swap")
            try:
                os.rename("../swap", name)
            except OSError:
                try:
                    os.rename(name, f"../away-{len(swapped)}")
                    os.rename("../swap", name)
                except OSError:
                    os.unlink("../swap")
            if not name.startswith(".gompfs-"):
                swapped.add(name)
"""


def extract_while_swapped(directory: Path, archive: Path, victim: Path) -> subprocess.CompletedProcess[str]:
    """Extracts, while another process replaces the extracted entries by symlinks to `victim`."""
    target = directory / "out"
    with subprocess.Popen([sys.executable, "-c", SWAPPER, target, victim], stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout is not None
        assert swapper.stdout.readline() == b"ready\n"
        done = subprocess.run(
            [sys.executable, "-P", "-m", "gompfs", "extract", "-q", archive, "-C", target],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        swapper.terminate()
    return done


def everything_of(path: Path) -> tuple[object, ...]:
    status = path.stat()
    content = path.read_bytes() if path.is_file() else sorted(os.listdir(path))
    xattrs = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, status.st_size, content, xattrs


def make_files(root: Path) -> None:
    for number in range(1000):
        (root / f"{number:04}").write_bytes(b"from the archive")
        (root / f"{number:04}").chmod(0o666)


def make_directories(root: Path) -> None:
    for number in range(700):
        (root / f"{number:04}").mkdir()
        (root / f"{number:04}/file").write_bytes(b"from the archive")
        (root / f"{number:04}").chmod(0o777)


def make_fifos(root: Path) -> None:
    for number in range(1000):
        os.mkfifo(root / f"{number:04}")
        (root / f"{number:04}").chmod(0o666)


@pytest.mark.parametrize("make", [make_files, make_directories, make_fifos])
def test_entries_swapped_for_symlinks_are_not_followed(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """chmod followed symlinks, so that the owner of the target directory could change the mode of any file."""
    root = tmp_path / "tree"
    root.mkdir()
    make(root)
    pack(tmp_path / "tree.gomp", root)
    victim = tmp_path / "victim"
    if make is make_directories:
        victim.mkdir()
    else:
        victim.write_bytes(b"private")
    victim.chmod(0o700)
    before = everything_of(victim)
    done = extract_while_swapped(tmp_path, tmp_path / "tree.gomp", victim)
    assert everything_of(victim) == before
    assert done.returncode in (0, 1)
    assert all(line.startswith("gompfs: ") and "internal error" not in line for line in done.stderr.splitlines())


@pytest.fixture
def obstacles(tmp_path: Path) -> Path:
    """An archive with entries `m` and `z` that cannot be written where test_an_obstacle_... extracts it."""
    root = tmp_path / "tree"
    for name in ("a", "z", "zz"):
        (root / name).mkdir(parents=True)
        (root / name / "x").write_text(name)
        (root / name).chmod(0o755)
        os.utime(root / name, (1, 1))
    (root / "m").write_text("a file where a directory is")
    pack(tmp_path / "tree.gomp", root)
    return tmp_path / "tree.gomp"


def test_an_obstacle_does_not_stop_the_extraction(gompfs, obstacles, tmp_path):
    """The first entry that could not be written ended the extraction, and directories kept mode 0700."""
    (tmp_path / "out/m/full").mkdir(parents=True)
    result = gompfs("extract", obstacles, "-C", "out")
    assert result.status == 1
    assert result.error_line.startswith("m: an existing directory cannot be replaced")
    for name in ("a", "z", "zz"):
        assert (tmp_path / "out" / name / "x").read_text() == name
        status = (tmp_path / "out" / name).stat()
        assert (stat.S_IMODE(status.st_mode), status.st_mtime) == (0o755, 1)
    assert not list((tmp_path / "out").rglob(".gompfs*"))


def test_existing_entries_are_replaced_as_tar_does(gompfs, obstacles, tmp_path):
    """A file replaces an empty directory; a directory replaces a file or a symlink to a directory."""
    out = tmp_path / "out"
    (out / "m").mkdir(parents=True)
    (out / "a").write_text("a file")
    (tmp_path / "elsewhere").mkdir()
    (out / "z").symlink_to(tmp_path / "elsewhere")
    (out / "zz/other").mkdir(parents=True)
    (out / "zz/x").write_text("old")
    assert gompfs("extract", obstacles, "-C", "out").status == 0
    assert (out / "m").read_text() == "a file where a directory is"
    assert (out / "a/x").read_text() == "a"
    assert not (out / "z").is_symlink()
    assert os.listdir(tmp_path / "elsewhere") == []
    assert (out / "zz/x").read_text() == "zz"
    assert (out / "zz/other").is_dir()


def test_paths_inside_each_other_are_extracted_once(gompfs, archive, tmp_path):
    (tmp_path / "tree/docs").chmod(0o555)
    pack(tmp_path / "closed.gomp", tmp_path / "tree")
    before = (tmp_path / "tree/docs").stat().st_mtime_ns
    assert gompfs("extract", "closed.gomp", "docs", "docs/a.txt", "/docs/", "-C", "out").status == 0
    status = (tmp_path / "out/docs").stat()
    assert (stat.S_IMODE(status.st_mode), status.st_mtime_ns) == (0o555, before)


def test_a_path_with_two_dots_stays_inside(gompfs, archive, tmp_path):
    """`extract ../z.txt` wrote outside of the target directory."""
    (tmp_path / "a/out").mkdir(parents=True)
    result = gompfs("extract", archive, "../z.txt", "-C", "a/out")
    assert (result.status, result.error_line) == (1, "../z.txt: a path with .. is not extracted")
    assert [path.name for path in (tmp_path / "a").rglob("*")] == ["out"]


def test_damage_leaves_no_part_of_a_file(gompfs, archive, tmp_path):
    with Archive(archive) as opened:
        (extent,) = opened.extents(opened.resolve("docs/b.txt").ino)
        block = extent.stream_offset // opened.block_size + 2
        offset = int(opened.segments[0].blocks.archive_offsets[block]) + 1000
    content = bytearray(archive.read_bytes())
    content[offset] ^= 1
    archive.write_bytes(content)
    (tmp_path / "out/docs").mkdir(parents=True)
    (tmp_path / "out/docs/b.txt").write_text("what was there")
    result = gompfs("extract", archive, "-C", "out")
    assert result.status == 1
    assert "docs/b.txt" in result.error_line
    assert (tmp_path / "out/docs/b.txt").read_text() == "what was there"
    assert sorted(os.listdir(tmp_path / "out/docs")) == ["a.txt", "b.txt"]


@pytest.fixture(scope="module")
def many_directories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree of many directories of mode 0751, and beside it its archive `tree.gomp`."""
    root = tmp_path_factory.mktemp("interrupted") / "tree"
    rng = random.Random(3)
    for first in range(30):
        for second in range(20):
            (root / f"{first}/{second}").mkdir(parents=True)
            (root / f"{first}/{second}/file").write_bytes(rng.randbytes(30_000))
            (root / f"{first}/{second}").chmod(0o751)
        (root / f"{first}").chmod(0o751)
    root.chmod(0o751)
    pack(root.parent / "tree.gomp", root)
    return root


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_whole_files_and_final_modes(
    many_directories: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """After ^C, 1195 of 1196 directories had mode 0700, and a partial file had its final name."""
    root, archive = many_directories, many_directories.parent / "tree.gomp"
    num_interrupted = 0
    for last in (0, 12):
        out = tmp_path / f"out{last}"
        command = [sys.executable, "-P", "-m", "gompfs", "extract", "-q", archive, "-C", out]
        with subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process:
            while not (out / f"{last}").exists() and process.poll() is None:
                time.sleep(0.001)
            process.send_signal(number)
            status = process.wait(timeout=60)
        assert status in (0, 130 if number == signal.SIGINT else 143)
        num_interrupted += status != 0
        for path in [out, *out.rglob("*")]:
            if path.is_dir():
                assert stat.S_IMODE(path.stat().st_mode) == 0o751, path
            else:
                assert path.name == "file"
                assert path.read_bytes() == (root / path.relative_to(out)).read_bytes()
    assert num_interrupted


@pytest.fixture
def deep_path(tmp_path: Path) -> Iterator[Path]:
    """A temporary directory for trees that are too deep for pytest's recursive cleanup."""
    yield tmp_path
    subprocess.run(["rm", "-rf", tmp_path], check=True)


def test_deep_directories_with_few_descriptors(deep_path: Path) -> None:
    """3,000 nested directories took more than 20 s, since the whole path was opened for each of them."""
    tmp_path = deep_path
    (tmp_path / "tree").mkdir()
    make_deep(tmp_path / "tree", 3000)
    pack(tmp_path / "tree.gomp", tmp_path / "tree")

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        resource.setrlimit(resource.RLIMIT_CPU, (15, 15))  # seconds; the whole command takes 1

    done = subprocess.run(
        [sys.executable, "-P", "-m", "gompfs", "extract", "-q", tmp_path / "tree.gomp", "-C", tmp_path / "out"],
        preexec_fn=bound,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    depth = 0
    descriptor = os.open(tmp_path / "out", os.O_RDONLY)
    while "d" in os.listdir(descriptor):
        assert stat.S_IMODE(os.fstat(descriptor).st_mode) == 0o755
        assert sorted(os.listdir(descriptor)) == ["d", "end"] or depth == 0
        child = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor, depth = child, depth + 1
    os.close(descriptor)
    assert depth == 3000


def make_deep(root: Path, depth: int) -> None:
    """Makes nested directories, each with an empty file `end` that sorts after the next directory."""
    root.chmod(0o755)
    descriptor = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", 0o755, dir_fd=descriptor)
        child = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(os.open("end", os.O_CREAT | os.O_WRONLY, dir_fd=child))
        os.close(descriptor)
        descriptor = child
    os.close(descriptor)


@contextmanager
def as_nobody(directory: Path) -> Iterator[None]:
    """Gives `directory` to the user nobody, changes to it and becomes nobody."""
    before = os.getcwd()
    os.chown(directory, 65534, 65534)
    os.chdir(directory)  # nobody may not search the directories above
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.chdir(before)


def extract_here(archive: Path, target: Path) -> tuple[list[str], list[str]]:
    errors: list[str] = []
    warnings: list[str] = []
    with Archive(archive) as opened:
        target.mkdir()
        with as_nobody(target):
            Extractor(
                opened,
                Path("."),
                on_error=lambda error: errors.append(str(error)),
                on_warning=lambda error: warnings.append(str(error)),
            ).extract([])
    return errors, warnings


@needs_root
def test_entries_that_only_root_may_make_are_reported(tmp_path: Path) -> None:
    """For a user, a device ended the extraction.

    So did a file capability, and a read-only file with user.* attributes.
    """
    root = tmp_path / "tree"
    (root / "closed").mkdir(parents=True)
    os.mknod(root / "a-device", stat.S_IFBLK | 0o600, os.makedev(7, 200))
    (root / "capable").write_text("x")
    os.setxattr(root / "capable", "security.capability", bytes.fromhex("0100000200040000000000000000000000000000"))
    (root / "read-only").write_text("content")
    os.setxattr(root / "read-only", "user.note", b"kept")
    (root / "read-only").chmod(0o444)
    (root / "closed/file").write_text("inside")
    (root / "closed").chmod(0o555)
    (root / "lends-rights").write_text("x")
    (root / "lends-rights").chmod(0o6755)
    pack(tmp_path / "tree.gomp", root)
    errors, warnings = extract_here(tmp_path / "tree.gomp", tmp_path / "out")
    assert errors == ["a-device: only root can create a device"]
    assert warnings == ["capable: the extended attribute security.capability cannot be set: Operation not permitted"]
    assert os.getxattr(tmp_path / "out/read-only", "user.note") == b"kept"
    modes = {name: stat.S_IMODE((tmp_path / "out" / name).stat().st_mode) for name in os.listdir(tmp_path / "out")}
    assert modes == {"capable": 0o644, "read-only": 0o444, "closed": 0o555, "lends-rights": 0o755}
    assert (tmp_path / "out/closed/file").read_text() == "inside"


@needs_root
def test_root_gets_owners_and_setuid_bits_back(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    for number, mode in enumerate((0o4755, 0o2711, 0o1644, 0o000)):
        (root / f"{number}").write_text("x")
        os.chown(root / f"{number}", 1000 + number, 2000)
        (root / f"{number}").chmod(mode)
        os.setxattr(root / f"{number}", "user.note", b"kept")
    os.setxattr(root / "1", "security.capability", bytes.fromhex("0100000200040000000000000000000000000000"))
    os.mknod(root / "device", stat.S_IFCHR | 0o640, os.makedev(1, 3))
    os.mkfifo(root / "fifo", 0o604)
    os.symlink("nowhere", root / "link")
    os.setxattr(root / "link", "trusted.note", b"of the link", follow_symlinks=False)
    for name in ("device", "fifo", "link"):
        os.chown(root / name, 1234, 4321, follow_symlinks=False)
        os.utime(root / name, (5, 5), follow_symlinks=False)
    os.link(root / "0", root / "again")
    pack(tmp_path / "tree.gomp", root)
    with Archive(tmp_path / "tree.gomp") as opened:
        extractor = Extractor(opened, tmp_path / "out")
        extractor.extract([])
        assert extractor.num_errors == 0
    assert list_directory(tmp_path / "out") == list_directory(root)


@contextmanager
def mounted(kind: str, directory: Path, *options: str) -> Iterator[None]:
    directory.mkdir()
    done = subprocess.run(["mount", "-t", kind, *options, kind, directory], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount {kind}")
    try:
        yield
    finally:
        subprocess.run(["umount", directory], check=True)


@needs_root
def test_a_file_system_without_extended_attributes(gompfs, tmp_path):
    """The first extended attribute ended the extraction; tar only warns."""
    root = tmp_path / "tree"
    root.mkdir()
    for name in ("a", "b"):
        (root / name).write_text(name)
        os.setxattr(root / name, "user.note", b"lost")
    pack(tmp_path / "tree.gomp", root)
    with mounted("ramfs", tmp_path / "out"):
        result = gompfs("extract", "tree.gomp", "-C", "out")
        assert result.status == 0
        assert result.errors.splitlines() == [
            f"gompfs: warning: {name}: the extended attribute user.note cannot be set: Operation not supported"
            for name in ("a", "b")
        ]
        assert [(tmp_path / "out" / name).read_text() for name in ("a", "b")] == ["a", "b"]


@needs_root
def test_a_full_file_system_ends_the_extraction(gompfs, tmp_path):
    """A partial file kept its final name; later, every file of the rest was tried and printed a line."""
    root = tmp_path / "tree"
    (root / "4").mkdir(parents=True)
    (root / "1-small").write_bytes(os.urandom(50_000))
    for name in ("2-large", "3-large", "4/large"):
        (root / name).write_bytes(os.urandom(5_000_000))
    pack(tmp_path / "tree.gomp", root)
    with mounted("tmpfs", tmp_path / "out", "-o", "size=1M"):
        result = gompfs("extract", "tree.gomp", "-C", "out")
        assert (result.status, result.error_line) == (1, "2-large: No space left on device")
        assert os.listdir(tmp_path / "out") == ["1-small"]
        assert (tmp_path / "out/1-small").read_bytes() == (root / "1-small").read_bytes()


@needs_root
def test_a_file_system_without_inodes(gompfs, tmp_path):
    """Directories cannot be made."""
    for number in range(20):
        (tmp_path / "tree" / f"{number:02}").mkdir(parents=True)
    pack(tmp_path / "tree.gomp", tmp_path / "tree")
    with mounted("tmpfs", tmp_path / "out", "-o", "nr_inodes=5"):
        result = gompfs("extract", "tree.gomp", "-C", "out")
        assert (result.status, result.error_line) == (1, "04: No space left on device")


def test_extract_does_not_write_to_standard_output(gompfs, archive, tmp_path):
    """It made a directory of that name."""
    result = gompfs("extract", archive, "-C", "-")
    assert result.status == 2
    assert "not to standard output; use cat for files, or tar on a mount; for a directory named -" in result.error_line
    assert not (tmp_path / "-").exists()
    assert gompfs("extract", archive, "-C", "./-").status == 0
    assert (tmp_path / "-" / "z.txt").exists()


def test_holes_stay_holes(gompfs, tmp_path):
    (tmp_path / "tree").mkdir()
    with open(tmp_path / "tree/sparse", "wb") as file:
        for place in (0, 700_000, 5 << 30):
            file.seek(place)
            file.write(b"content" * 1000)
        file.truncate(6 << 30)
    pack(tmp_path / "tree.gomp", tmp_path / "tree")
    assert gompfs("extract", "tree.gomp", "-C", "out").status == 0
    assert (tmp_path / "out/sparse").stat().st_size == 6 << 30
    assert (tmp_path / "out/sparse").stat().st_blocks * 512 < 200_000
    with open(tmp_path / "out/sparse", "rb") as file:
        file.seek(5 << 30)
        assert file.read(7000) == b"content" * 1000
