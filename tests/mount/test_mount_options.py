"""The options of `mount -o`: how they are parsed, and their effects."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from pathlib import Path

import pytest
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.codec import BLOCK_HEADER_SIZE
from gompfs.errors import OptionError
from gompfs.mount.system.mount_table import mount_at
from gompfs.options import MOUNT_OPTIONS, MountOptions, format_size, parse_size


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "d").mkdir(parents=True)
    (root / "d/file").write_bytes(b"content\n" * 100)
    os.chmod(root / "d/file", 0o4755)
    return root


@pytest.fixture
def archive(tree: Path, tmp_path: Path) -> Path:
    pack(tmp_path / "a.gomp", tree)
    return tmp_path / "a.gomp"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (",,", {}),
        ("ro,nosuid,nodev,noauto,_netdev", {}),
        ("rw,dev,suid,defaults,relatime,user=me,x-systemd.automount,comment=mine", {}),
        ("subdir=a/b,readahead=2M", {"subdir": "a/b", "readahead": 2 << 20}),
        ("allow_other,auto_unmount,verify", {"allow_other": True, "auto_unmount": True, "verify": True}),
        ("follow", {"follow": True}),
        ("offset=5000", {"offset": 5000}),
        ("noexec,ro", {"noexec": True}),
        ("noexec,exec", {"noexec": False}),
        ("exec,noexec", {"noexec": True}),
        ("uid=7,gid=8,umask=027", {"uid": 7, "gid": 8, "umask": 0o27}),
        ("cache_size=64M", {"cache_size": 64 << 20}),
        ("cache_size=1GiB", {"cache_size": 1 << 30}),
        ("gpu_memory=2G,gpu_resident=off", {"gpu_memory": 2 << 30, "gpu_resident": "off"}),
        ("passthrough_size=1G,decode_ahead=0", {"passthrough_size": 1 << 30, "decode_ahead": 0}),
        ("gpu_resident=on", {"gpu_resident": "on"}),
        ("api=high", {"api": "high"}),
        ("stats=off,engine=cpu,fsname=a=b", {"stats": "off", "engine": "cpu", "fsname": "a=b"}),
    ],
)
def test_valid_options(text: str, expected: dict[str, object]) -> None:
    options = MountOptions.parse(text)
    assert options == MountOptions(**expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "unknown",
        "unknown=1",
        "uid",
        "uid=",
        "uid=root",
        "uid=-1",
        "gid=1.5",
        "umask=9",
        "cache_size=",
        "subdir=",
        "readahead",
        "readahead=far",
        "cache_size=M",
        "gpu_memory=1M",
        "gpu_memory",
        "gpu_resident",
        "gpu_resident=perhaps",
        "cache_size=many",
        "passthrough_size",
        "passthrough_size=off",
        "decode_ahead=-1",
        "cache_size=-1",
        "stats",
        "stats=maybe",
        "api",
        "api=auto",
        "engine=",
        "allow_other=1",
        "ro=1",
        "uid=4294967296",
        "umask=10000",
    ],
)
def test_invalid_options(text: str) -> None:
    with pytest.raises(OptionError):
        MountOptions.parse(text)


def test_the_table_has_all_fields_with_their_defaults() -> None:
    fields = {option.field or option.name for option in MOUNT_OPTIONS}
    assert fields == set(MountOptions.__annotations__)
    shown = [option.usage for option in MOUNT_OPTIONS if option.kind is not bool and not option.placeholder]
    assert shown == ["cache_size=64M", "readahead=4M", "gpu_resident=auto", "stats=hidden", "api=low"]
    assert MountOptions.parse(",".join(shown)) == MountOptions()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("api=auto", "api must be one of low, high, not 'auto'"),
        ("stats", "stats must be one of hidden, visible, off, not ''"),
        ("subdir=", "mount option subdir needs a value"),
        ("verify=1", "unknown mount option 'verify=1'; gompfs mount --help describes all"),
        ("uid=root", "uid must be a number, not 'root'"),
        ("cache_size=lots", "cache_size must be a number of bytes, such as 65536, 64K or 1M, not 'lots'"),
        ("readahead=4T", "readahead must be a number of bytes, such as 65536, 64K or 1M, not '4T'"),
        ("gpu_memory=-1M", "gpu_memory must not be negative"),
    ],
)
def test_messages_of_invalid_options(text: str, message: str) -> None:
    with pytest.raises(OptionError) as raised:
        MountOptions.parse(text)
    assert str(raised.value) == message


def test_options_for_sizes() -> None:
    for size, text in ((0, "0G"), (1, "1"), (1025, "1025"), (3 << 10, "3K"), (5 << 20, "5M"), (7 << 30, "7G")):
        assert format_size(size) == text
        assert parse_size(text) == size


def test_owners_and_modes(mount, archive: Path) -> None:
    mounted = mount(archive, "uid=12,gid=34", "umask=0277")
    for path, mode in ((mounted.path, None), (mounted / "d", None), (mounted / "d/file", 0o4500)):
        status = os.lstat(path)
        assert (status.st_uid, status.st_gid) == (12, 34)
        assert mode is None or stat.S_IMODE(status.st_mode) == mode
    (entry,) = os.scandir(mounted / "d")
    assert stat.S_IMODE(entry.stat().st_mode) == 0o4500


def test_noexec(mount, tree: Path, tmp_path: Path) -> None:
    """The option was accepted and had no effect. See also test_without_libfuse.py."""
    (tree / "script").write_text("#!/bin/sh\necho executed\n")
    (tree / "script").chmod(0o755)
    pack(tmp_path / "b.gomp", tree)
    for options, is_executed in ((["noexec"], False), ([], True), (["noexec", "exec"], True)):
        mounted = mount(tmp_path / "b.gomp", *options)
        (line,) = [line for line in Path("/proc/mounts").read_text().splitlines() if f" {mounted.path} " in line]
        shown = line.split()[3].split(",")
        assert {"ro", "nosuid", "nodev"} <= set(shown)
        assert ("noexec" in shown) is not is_executed
        if is_executed:
            assert subprocess.run([mounted / "script"], capture_output=True, check=True).stdout == b"executed\n"
        else:
            with pytest.raises(PermissionError):
                subprocess.run([mounted / "script"], check=False)
        mounted.clean_up()


def test_virtual_files_are_hidden_but_there(mount, archive: Path, tree: Path) -> None:
    mounted = mount(archive)
    assert os.listdir(mounted.path) == ["d"]
    assert sorted(os.listdir(mounted / "stats")) == sorted(os.listdir(mounted / ".gompfs/stats"))
    assert f"archive\t{archive}\n" in (mounted / "stats/info").read_text()
    assert "blocks\t1\n" in (mounted / ".gompfs/stats/info").read_text()
    status = os.lstat(mounted / "stats/info")
    assert stat.S_ISREG(status.st_mode)
    assert stat.S_IMODE(status.st_mode) == 0o444


def test_virtual_files_can_be_listed(mount, archive: Path) -> None:
    mounted = mount(archive, "stats=visible")
    assert sorted(os.listdir(mounted.path)) == [".gompfs", "d", "stats"]
    assert {name for folder, _, files in os.walk(mounted.path) for name in files} >= {
        "file",
        "info",
        "wordcount",
    }


def test_virtual_files_can_be_left_out(mount, archive: Path) -> None:
    mounted = mount(archive, "stats=off")
    assert os.listdir(mounted.path) == ["d"]
    for name in ("stats", ".gompfs", "stats/info"):
        with pytest.raises(FileNotFoundError):
            os.lstat(mounted / name)


def test_an_entry_called_stats_is_not_replaced(mount, tree: Path, tmp_path: Path) -> None:
    (tree / "stats").write_text("mine")
    pack(tmp_path / "a.gomp", tree)
    for place in ("stats=visible", "stats=hidden"):
        mounted = mount(tmp_path / "a.gomp", place)
        assert (mounted / "stats").read_text() == "mine"
        assert "blocks" in (mounted / ".gompfs/stats/info").read_text()


def test_statistics_of_an_archive_with_a_damaged_block(mount, archive: Path) -> None:
    """Without a grammar, statistics need the files, so that a damaged block makes them fail with EIO."""
    with Archive(archive) as opened:
        place = int(opened.segments[0].blocks.archive_offsets[0]) + BLOCK_HEADER_SIZE
    content = archive.read_bytes()
    archive.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    mounted = mount(archive)
    with pytest.raises(OSError, match="Input/output error"):
        (mounted / "stats/wordcount").read_bytes()
    assert "no grammar" in (mounted / "stats/info").read_text()
    assert mounted.stop() == 0
    assert "Traceback" not in mounted.log


def test_verify_option(mount, tree: Path, archive: Path) -> None:
    mounted = mount(archive, "verify", "cache_size=0")
    assert (mounted / "d/file").read_bytes() == b"content\n" * 100


def test_offset_mounts_an_archive_after_other_bytes(mount, gompfs_command, archive: Path, tmp_path: Path) -> None:
    archive.write_bytes(b"#!/bin/sh\n".ljust(5000) + archive.read_bytes())
    mounted = mount(archive, "offset=5000", "stats=visible")
    assert (mounted / "d/file").read_bytes() == b"content\n" * 100
    assert (mounted / "stats/wordcount").read_bytes() == b"content\t100\n"
    for options, reason in (
        ("offset=10M", f"{archive}: the file ends before offset 10485760"),
        ("offset=4999", f"{archive}: not a gompfs archive"),
        ("offset=5000,union", "offset works only with one archive"),
    ):
        done = gompfs_command("mount", "-o", options, archive, tmp_path / "place")
        assert done.returncode == 1
        assert reason in done.stderr


def test_subdir_mounts_one_directory(mount, tree: Path, tmp_path: Path) -> None:
    (tree / "d/e").mkdir()
    (tree / "d/e/link").symlink_to("../file")
    os.setxattr(tree / "d", "user.mine", b"yes")
    (tree / "outside").write_text("outside\n")
    (tree / "to-d").symlink_to("d")
    pack(tmp_path / "b.gomp", tree)
    for subdir in ("d", "/d/", "d/e/..", "to-d"):
        mounted = mount(tmp_path / "b.gomp", f"subdir={subdir}", "stats=visible")
        assert sorted(os.listdir(mounted.path)) == [".gompfs", "e", "file", "stats"]
        assert (mounted / "e/link").read_bytes() == b"content\n" * 100
        assert not os.path.lexists(mounted / "outside")
        assert os.lstat(mounted.path).st_mtime_ns == os.lstat(tree / "d").st_mtime_ns
        assert os.getxattr(mounted.path, "user.mine") == b"yes"
        assert b"outside\t1\n" in (mounted / "stats/wordcount").read_bytes()
        mounted.clean_up()
    diff = ["diff", "-r", "--no-dereference", tree / "d", mount(tmp_path / "b.gomp", "subdir=d").path]
    done = subprocess.run(diff, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize(
    ("subdir", "reason"), [("missing", "no such file or directory"), ("d/file", "not a directory")]
)
def test_invalid_subdir(gompfs_command, archive: Path, tmp_path: Path, subdir: str, reason: str) -> None:
    (tmp_path / "place").mkdir()
    done = gompfs_command("mount", "-o", f"subdir={subdir}", archive, tmp_path / "place")
    assert done.returncode == 1
    assert done.stderr.endswith(f" {archive}: {subdir}: {reason}\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sets read-ahead")
def test_readahead_of_the_kernel(mount, archive: Path) -> None:
    for options, size in (([], 4096), (["readahead=256K"], 256)):
        mounted = mount_at(str(mount(archive, *options).path))
        assert mounted is not None
        setting = Path(f"/sys/class/bdi/{mounted.device}/read_ahead_kb")
        deadline = time.monotonic() + 60
        while int(setting.read_text()) != size and time.monotonic() < deadline:
            time.sleep(0.01)  # the daemon sets it once the mount answers
        assert int(setting.read_text()) == size


def test_api(mount, archive: Path, tmp_path: Path, gompfs_command) -> None:
    assert "\nfuse_api\tlow\n" in (mount(archive) / "stats/info").read_text()
    assert "fuse_api" not in gompfs_command("stats", archive, "info").stdout
    (tmp_path / "place").mkdir()
    done = gompfs_command("mount", "-o", "api=high,passthrough_size=1G", archive, tmp_path / "place")
    assert done.returncode == 1
    assert done.stderr == f"gompfs: {tmp_path / 'place'}: passthrough_size needs api=low\n"


def test_the_size_of_an_open_metrics_file_is_exact(mount, archive: Path) -> None:
    mounted = mount(archive)
    for _ in range(2):
        with open(mounted / "stats/metrics", "rb") as file:
            size = os.fstat(file.fileno()).st_size
            assert len(file.read()) == size
        time.sleep(1.1)  # metrics are cached for one second


def test_nothing_can_be_written(mount, archive: Path) -> None:
    for options in ([], ["rw"]):
        mounted = mount(archive, *options)
        with pytest.raises(OSError, match="Read-only file system"):
            (mounted / "d/file").write_bytes(b"")


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root, to become somebody else")
def test_other_users(mount, tree: Path, tmp_path: Path) -> None:
    """Other users are kept out. With allow_other, the permissions of the files decide."""
    for path, mode in ((tree, 0o755), (tree / "d", 0o755), (tree / "d/file", 0o644)):
        os.chmod(path, mode)
    (tree / "d/secret").write_text("secret")
    os.chmod(tree / "d/secret", 0o600)
    pack(tmp_path / "b.gomp", tree)
    places = {allowed: mount(tmp_path / "b.gomp", *allowed) for allowed in ((), ("allow_other",))}

    def cat_as_nobody(path: Path) -> tuple[int, bytes]:
        # Only its owner may enter pytest's temporary directory: go there as root, then become nobody.
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", f"./{path.name}"]
        done = subprocess.run(command, cwd=path.parent, capture_output=True, check=False)
        return done.returncode, done.stdout

    assert cat_as_nobody(places["allow_other",] / "d/file") == (0, b"content\n" * 100)
    assert cat_as_nobody(places["allow_other",] / "d/secret") == (1, b"")
    assert cat_as_nobody(places[()] / "d/file") == (1, b"")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_users_do_not_see_the_names_of_trusted_attributes(mount, tmp_path: Path) -> None:
    """listxattr returned trusted.* to every user; Linux returns them to root only."""
    (tmp_path / "tree").mkdir(mode=0o755)
    (tmp_path / "tree/file").write_text("x")
    os.setxattr(tmp_path / "tree/file", "user.note", b"1")
    os.setxattr(tmp_path / "tree/file", "trusted.note", b"2")
    pack(tmp_path / "xattrs.gomp", tmp_path / "tree")
    mounted = mount(tmp_path / "xattrs.gomp", "allow_other")
    before = os.getcwd()
    os.chdir(mounted.path)
    try:
        for _ in range(2):
            assert os.listxattr("file") == ["trusted.note", "user.note"]
            os.seteuid(65534)
            try:
                assert os.listxattr("file") == ["user.note"]
            finally:
                os.seteuid(0)
    finally:
        os.chdir(before)


def test_the_engine_and_its_memory(mount, archive: Path) -> None:
    mounted = mount(archive, "engine=cpu,gpu_memory=64M")
    assert "\nengine\tcpu\n" in (mounted / "stats/info").read_text()
