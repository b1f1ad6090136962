"""Archives of very many files: `ls` and `find` see all of them, the first answer comes soon, and memory is bounded."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

MIB = 1 << 20
BLANK = bytearray(tarfile.TarInfo("name").tobuf(tarfile.USTAR_FORMAT))


def tar_of(names: Iterable[bytes]) -> Iterator[bytes]:
    """Yields a tar whose members contain their own names.

    Made by hand, since tarfile takes minutes for a million members.
    """
    for name in names:
        header = BLANK.copy()
        header[:100] = name.ljust(100, b"\0")
        header[124:136] = b"%011o\0" % len(name)
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        yield bytes(header) + name.ljust(512, b"\0")
    yield bytes(1024)


def pack_names(target: Path, names: Iterable[bytes]) -> Path:
    command = [sys.executable, "-P", "-m", "gompfs", "pack", "-q", "--codec", "gompresso-bit", "-", target]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.writelines(tar_of(names))
        process.stdin.close()
        assert process.wait() == 0
    return target


def found(path: Path) -> list[bytes]:
    """Returns all files that `find` lists."""
    output = subprocess.run(["find", ".", "-type", "f"], cwd=path, capture_output=True, check=True).stdout
    return sorted(line.removeprefix(b"./") for line in output.splitlines())


def peak_memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM:"))


def test_a_wide_directory_and_many_small_ones(mount, tmp_path: Path) -> None:
    names = [b"wide/%05d" % number for number in range(20_000)]
    names += [b"many/%03d/%d/file" % (number // 10, number % 10) for number in range(3000)]
    mounted = mount(pack_names(tmp_path / "a.gomp", names))
    assert found(mounted.path) == sorted(names)
    for name in names[::997]:
        path = os.path.join(os.fsencode(mounted.path), name)
        assert Path(os.fsdecode(path)).read_bytes() == name
        assert not os.path.exists(path + b"-not")
    assert found(mounted.path) == sorted(names)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("is_flat", [False, True])
def test_a_million(mount, tmp_path: Path, is_flat: bool) -> None:
    names = [
        b"%07d" % number if is_flat else b"%03d/%d/%07d" % (number // 10_000, number // 1000 % 10, number)
        for number in range(1_000_000)
    ]
    mounted = mount(pack_names(tmp_path / "a.gomp", names))
    start = time.monotonic()
    with os.scandir(mounted.path) as entries:
        next(entries)
        assert time.monotonic() - start < (5 if is_flat else 0.5)
    assert found(mounted.path) == names
    assert peak_memory(mounted.process.pid) < 500 * MIB
