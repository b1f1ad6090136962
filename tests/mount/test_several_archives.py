"""Several archives in one mount: merged, or each in a directory of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mount_states import observe_anew
from tree_helpers import pack

from gompfs.mount.metric_set import samples_of

NAMES = ("one", "two", "three")
CONTENTS = {name: os.urandom(100_000) for name in NAMES}


@pytest.fixture
def archives(tmp_path: Path) -> list[Path]:
    """Archives of trees that share directories, have files of the same path, and entries of different types."""
    for name in NAMES:
        tree = tmp_path / name
        (tree / "shared/deep").mkdir(parents=True)
        (tree / f"only-{name}/d").mkdir(parents=True)
        (tree / f"only-{name}/d/file").write_bytes(CONTENTS[name])
        (tree / "shared/file").write_text(f"of {name}\n")
        (tree / f"shared/deep/{name}").write_bytes(CONTENTS[name])
        (tree / "mixed").mkdir()
        (tree / f"mixed/{name}").write_text(name)
        os.chmod(tree / "shared", {"one": 0o700, "two": 0o711, "three": 0o755}[name])
    os.setxattr(tmp_path / "three/shared", "user.mine", b"three")
    # A file hides the directories of the same path in all archives before it.
    (tmp_path / "two/mixed/two").unlink()
    (tmp_path / "two/mixed").rmdir()
    (tmp_path / "two/mixed").write_text("a file")
    (tmp_path / "one/link").symlink_to("shared/file")
    os.utime(tmp_path / "three", (5, 5))
    for name in NAMES:
        pack(tmp_path / f"{name}.gomp", tmp_path / name, block_size=16 << 10)
    return [tmp_path / f"{name}.gomp" for name in NAMES]


@pytest.fixture
def mount_all(tmp_path: Path, gompfs_command) -> Iterator[Callable[..., Path]]:
    """Mounts archives with a daemon."""
    place = tmp_path / "place"
    place.mkdir()

    def run(archives: list[Path], *arguments: str) -> Path:
        done = gompfs_command("mount", *arguments, *archives, place)
        assert (done.returncode, done.stderr) == (0, "")
        return place

    yield run
    subprocess.run(["umount", "-l", place], capture_output=True, check=False)


def test_union(mount_all, archives: list[Path], tmp_path: Path) -> None:
    place = mount_all(archives, "--union")
    assert sorted(os.listdir(place)) == ["link", "mixed", "only-one", "only-three", "only-two", "shared"]
    assert os.stat(place).st_mtime == 5
    assert sorted(os.listdir(place / "shared")) == ["deep", "file"]
    assert sorted(os.listdir(place / "shared/deep")) == sorted(NAMES)
    assert os.listdir(place / "mixed") == ["three"]
    assert (place / "shared/file").read_text() == "of three\n"
    assert (place / "link").read_text() == "of three\n"
    assert os.stat(place / "shared").st_mode & 0o777 == 0o755
    assert os.getxattr(place / "shared", "user.mine") == b"three"
    for _ in range(2):  # the second time, the blocks are cached
        for name in NAMES:
            assert (place / f"shared/deep/{name}").read_bytes() == CONTENTS[name]
            assert (place / f"only-{name}/d/file").read_bytes() == CONTENTS[name]
    assert not (place / "shared/none").exists()
    found = subprocess.run(["find", place, "-type", "f"], capture_output=True, text=True, check=True).stdout
    assert len(found.splitlines()) == 8
    sizes = sum(path.stat().st_size for path in map(Path, found.splitlines()))
    assert os.statvfs(place).f_blocks * 4096 >= sizes


def test_directories_that_were_read_ahead(mount_all, archives: list[Path]) -> None:
    """Directories of a single archive come from its index in batches.

    Merged directories must not be taken from a batch.
    """
    place = mount_all(archives, "--union")
    for name in NAMES:
        assert os.listdir(place / f"only-{name}") == ["d"]
        time.sleep(0.2)  # time for the next batch, which contains `shared`
    assert sorted(os.listdir(place / "shared/deep")) == sorted(NAMES)
    assert sorted(os.listdir(place / "shared")) == ["deep", "file"]
    assert len({os.stat(place / path).st_ino for path in (".", "shared", "shared/deep", "mixed")}) == 4
    with os.scandir(place) as entries:
        assert all(entry.inode() == os.lstat(entry.path).st_ino for entry in entries)


def test_the_union_equals_copying_the_archives_over_each_other(mount_all, archives: list[Path], tmp_path: Path) -> None:
    """The union equals copying the archives over each other in order.

    If a file replaces a directory, nothing of it stays.
    """
    merged = tmp_path / "merged"
    merged.mkdir()
    for name in ("one", "three"):
        subprocess.run(["cp", "-a", f"{tmp_path / name}/.", merged], check=True)
    place = mount_all([archives[0], archives[2]], "--union", "-o", "stats=off")
    done = subprocess.run(["diff", "-r", "--no-dereference", merged, place], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")


def test_a_directory_per_archive(mount_all, archives: list[Path], tmp_path: Path) -> None:
    place = mount_all(archives, "--subdir-per-archive")
    assert sorted(os.listdir(place)) == sorted(NAMES)
    for name in NAMES:
        compared = ["diff", "-r", "--no-dereference", tmp_path / name, place / name]
        done = subprocess.run(compared, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (0, b"")
    assert not (place / "shared").exists()
    assert (place / "one/link").read_text() == "of one\n"
    with pytest.raises(OSError, match="Read-only"):
        (place / "new").mkdir()


@pytest.mark.parametrize("how", ["--union", "--subdir-per-archive"])
def test_names_of_many_directories_come_from_the_index(mount_all, tmp_path: Path, how: str) -> None:
    """The C++ core, not Python, answers lookups, except in merged directories."""
    archives = []
    for name in ("one", "two"):
        for directory in range(200):
            (tmp_path / f"many-{name}/{name}/{directory:03}/sub").mkdir(parents=True)
            (tmp_path / f"many-{name}/{name}/{directory:03}/sub/{name}").touch()
        archives.append(tmp_path / f"{name}.gomp")
        pack(archives[-1], tmp_path / f"many-{name}")
    place = mount_all(archives, how)
    for name in ("one", "two"):
        top = place / name if how == "--union" else place / name / name
        assert len(os.listdir(top)) == 200
        for directory in range(200):
            assert os.listdir(top / f"{directory:03}/sub") == [name]
    state = observe_anew(place)
    counts = {
        path: state.value("gompfs_request_seconds_count", request="other", path=path) for path in ("fast", "slow")
    }
    assert counts["fast"] > 600
    assert counts["slow"] < 250


@pytest.mark.parametrize("how", ["--union", "--subdir-per-archive"])
def test_each_archive_has_its_statistics(mount_all, archives: list[Path], how: str) -> None:
    place = mount_all(archives, how, "-o", "stats=visible,cache_size=48M")
    assert {".gompfs", "stats"} <= set(os.listdir(place))
    assert sorted(os.listdir(place / "stats")) == sorted(NAMES)
    assert os.listdir(place / ".gompfs") == ["stats"]
    for name in NAMES:
        counts = (place / f"stats/{name}/wordcount").read_bytes().splitlines()
        assert b"of\t1" in counts
        assert f"{name}\t".encode() in b"\n".join(counts)
        assert (place / f"stats/{name}/files/shared/file/wordcount").read_bytes() == b"of\t1\n%s\t1\n" % name.encode()
    state = observe_anew(place)
    assert state.state == "serving"
    assert state.label("archive") is None
    assert state.mount.source == ":".join(map(str, archives))
    assert state.value("gompfs_cache_capacity_bytes") == 48 << 20
    # All archives share one engine, whose work must not be counted three times.
    one = samples_of((place / "stats/one/metrics.json").read_bytes())
    ((_, num_blocks),) = one["gompfs_decoded_blocks_total"]
    assert state.value("gompfs_decoded_blocks_total") <= num_blocks
    assert state.value("gompfs_decoded_blocks_total") >= 3
    assert 0 < state.value("gompfs_uptime_seconds") < 60


def test_an_entry_called_stats_is_not_replaced(mount_all, archives: list[Path], tmp_path: Path) -> None:
    (tmp_path / "stats").write_text("mine")
    pack(tmp_path / "more.gomp", tmp_path / "stats")
    place = mount_all([archives[0], tmp_path / "more.gomp"], "--union")
    assert (place / "stats").read_text() == "mine"
    assert "mine\t1" in (place / ".gompfs/stats/more/wordcount").read_text()


def test_one_archive_alone(mount_all, archives: list[Path]) -> None:
    place = mount_all(archives[:1], "--subdir-per-archive", "-o", "stats=off,uid=7")
    assert os.listdir(place) == ["one"]
    assert not (place / "stats").exists()
    assert os.stat(place / "one/shared/file").st_uid == 7


def test_invalid_combinations_are_refused(archives: list[Path], tmp_path: Path, gompfs_command) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "d").mkdir()
    (tmp_path / "d/one.gomp").write_bytes(archives[0].read_bytes())
    for arguments, reason in (
        (archives, "Several archives need --union or --subdir-per-archive."),
        (["--union", archives[0], tmp_path / "d/one.gomp"], "two archives have the name 'one'"),
        (["--subdir-per-archive", archives[0], archives[0]], "two archives have the name 'one'"),
        (["--union", "-o", "follow", *archives], "follow works only with one archive"),
        (["--union", archives[0], tmp_path / "missing.gomp"], "No such file or directory"),
        (["--union", "-o", "subdir=only-one", *archives], "only-one: no such file or directory"),
    ):
        done = gompfs_command("mount", *arguments, place)
        assert done.returncode in (1, 2)
        assert reason in done.stderr
        assert done.stderr.count("\n") == 1
        assert not os.path.ismount(place)


def test_damage_in_one_of_them(mount_all, archives: list[Path]) -> None:
    """The other archives stay readable."""
    content = bytearray(archives[1].read_bytes())
    content[200] ^= 1
    archives[1].write_bytes(content)
    place = mount_all(archives, "--union")
    script = f"import os, sys; sys.stdout.write(str(sum(1 for _ in os.walk({str(place)!r}))))"
    walked = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(walked.stdout) == 10
    for name in ("one", "three"):
        assert (place / f"shared/deep/{name}").read_bytes() == CONTENTS[name]
    broken = 0
    for path in ("shared/deep/two", "only-two/d/file"):
        try:
            assert (place / path).read_bytes() == CONTENTS["two"]
        except OSError:
            broken += 1
    assert broken >= 1
