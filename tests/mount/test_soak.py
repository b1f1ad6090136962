"""Random reading, with every byte compared with the source. The environment configures the slow tests:

GOMPFS_SOAK_SECONDS      how long test_many_readers reads; default 600
GOMPFS_SOAK_TREE         the tree that it reads; default: one made for it
GOMPFS_SOAK_OPERATIONS   the operations of test_a_million_operations; default 1,000,000
GOMPFS_SOAK_FILE         the file that it reads; default: one of 64 MB
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from random_reader import read_at_random
from tree_helpers import pack

READER = Path(__file__).with_name("random_reader.py")
NUM_READERS = 32
SECONDS = int(os.environ.get("GOMPFS_SOAK_SECONDS", "600"))
OPERATIONS = int(os.environ.get("GOMPFS_SOAK_OPERATIONS", "1000000"))
MountArchive = Callable[..., Any]


class Usage(NamedTuple):
    """The resources that the server of a mount uses: resident memory in bytes, threads, file descriptors."""

    memory: int
    threads: int
    descriptors: int


def usage(pid: int) -> Usage:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    facts = dict(line.split(":", 1) for line in lines)
    return Usage(int(facts["VmRSS"].split()[0]) << 10, int(facts["Threads"]), len(os.listdir(f"/proc/{pid}/fd")))


def mixed_file(path: Path, size: int) -> Path:
    """Writes text, noise and zeros in pieces of many sizes."""
    rng = random.Random(4)
    with open(path, "wb") as file:
        while file.tell() < size:
            length = int(2 ** rng.uniform(4, 19))
            kind = rng.randrange(3)
            file.write((rng.randbytes(length), bytes(length), b"word %d " % length * (length // 8))[kind])
    return path


@pytest.mark.parametrize("seed", range(3))
def test_reading_in_all_ways(tmp_path: Path, mount: MountArchive, seed: int) -> None:
    source = mixed_file(tmp_path / "file", 8 << 20)
    pack(tmp_path / "a.gomp", source, block_size=16 << 10)
    mounted = mount(tmp_path / "a.gomp", "cache_size=2M")
    done, num_bytes = read_at_random(source, mounted / "file", operations=3000, seed=seed)
    assert done == 3000
    assert num_bytes > 10 << 20


def test_a_wrong_byte_is_found(tmp_path: Path, mount: MountArchive) -> None:
    """Tests the reader itself: it must notice a difference."""
    source = mixed_file(tmp_path / "file", 1 << 20)
    content = source.read_bytes()
    middle = len(content) // 2
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/other").write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    (tmp_path / "tree/short").write_bytes(content[:-1])
    pack(tmp_path / "a.gomp", tmp_path / "tree")
    mounted = mount(tmp_path / "a.gomp")
    with pytest.raises(AssertionError, match=f"the byte at {middle} is"):
        read_at_random(source, mounted / "other", operations=20_000)
    with pytest.raises(AssertionError):
        read_at_random(source, mounted / "short", operations=20_000)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 1200)
def test_many_readers(tmp_path: Path, mount: MountArchive, corpora: ModuleType) -> None:
    tree = Path(os.environ.get("GOMPFS_SOAK_TREE", tmp_path / "tree"))
    if not tree.exists():
        corpora.make_tree(tree, ["contents", "sparse", "deep", "many"], num_entries=20_000)
    pack(tmp_path / "a.gomp", tree)
    mounted = mount(tmp_path / "a.gomp", "cache_size=128M")
    os.listdir(mounted.path)
    readers = [
        subprocess.Popen(
            [sys.executable, READER, tree, mounted.path, "--seconds", str(SECONDS), "--seed", str(seed)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(NUM_READERS)
    ]
    seen: list[Usage] = []
    while any(reader.poll() is None for reader in readers):
        seen.append(usage(mounted.process.pid))
        time.sleep(1)
    for reader in readers:
        _, errors = reader.communicate()
        assert reader.returncode == 0, errors
    fifth = len(seen) // 5  # the readers start during the first fifth; in the second, bounded caches fill up
    early, late = seen[2 * fifth : 3 * fifth], seen[-fifth:]
    print(*seen[::fifth], sep="\n")  # noqa: T201 - for manual runs
    growth = statistics.median(used.memory for used in late) - statistics.median(used.memory for used in early)
    assert growth < 16 << 20, f"memory grew by {growth} bytes"
    assert max(used.threads for used in late) <= max(used.threads for used in early)
    assert max(used.descriptors for used in late) <= max(used.descriptors for used in early)
    assert mounted.stop() == 0
    assert mounted.log == ""


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_million_operations(tmp_path: Path, mount: MountArchive) -> None:
    place = os.environ.get("GOMPFS_SOAK_FILE")
    source = Path(place) if place else mixed_file(tmp_path / "file", 64 << 20)
    pack(tmp_path / "a.gomp", source)
    mounted = mount(tmp_path / "a.gomp", "cache_size=32M")
    done, _ = read_at_random(source, mounted / source.name, operations=OPERATIONS, seed=1)
    assert done >= OPERATIONS
