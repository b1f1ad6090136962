"""Fixtures: trees that are difficult for an archiver; devices that run kernels, on the host and on a GPU."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from gompfs.mount.system.mount_table import read_mount_table

if TYPE_CHECKING:
    from host_device import HostDevice

    from gompfs.gpu.device.arrays import ArrayDevice

# pytest rewrites the assertions of all tests, for 6 s in each worker, unless it keeps the bytecode. It does here,
# whatever the environment says.
sys.dont_write_bytecode = False

# The same examples in every run, so that a run of the whole suite says something about the commit under test.
# `pytest --hypothesis-profile=default` draws new ones, and more.
settings.register_profile("repeatable", derandomize=True, max_examples=30)
settings.load_profile("repeatable")
os.environ.setdefault("SOURCE_DATE_EPOCH", "1700000000")  # archives that are packed twice have the same bytes


@pytest.fixture(autouse=True, scope="session")
def _own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keeps what tests fetch of remote archives out of the user's cache."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True, scope="session")
def _no_mounts_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Detaches what this run leaves mounted, and what runs left that were killed.

    pytest deletes old folders, and would hang in a mount whose daemon hangs.
    """
    own = tmp_path_factory.getbasetemp()
    run = own.parent if own.name.startswith("popen-") else own
    for other in run.parent.glob("pytest-[0-9]*"):
        lock = other / ".lock"  # of pytest, with the number of its process
        if not lock.exists() or not Path("/proc", lock.read_text()).exists():
            detach_mounts(other)
    yield
    detach_mounts(own)


def detach_mounts(folder: Path) -> None:
    """Detaches the mounts of gompfs below a folder. Does not access them."""
    for entry in reversed(read_mount_table()):
        if entry.is_gompfs and Path(entry.mountpoint).is_relative_to(folder):
            subprocess.run(["fusermount3", "-uz", entry.mountpoint], capture_output=True, check=False)


@pytest.fixture(autouse=True)
def _same_directory() -> Iterator[None]:
    """Leaves the directory that a test goes to: pytest removes the folders of tests that passed."""
    before = os.getcwd()
    yield
    os.chdir(before)


@pytest.fixture(autouse=True)
def _same_signal_handlers() -> Iterator[None]:
    """Restores what commands in the process of a test change. Processes that other tests start would ignore SIGINT."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.fixture(autouse=True)
def _gpu_decodes_small_batches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the engine `gpu` decode the small batches of tests that need a GPU."""
    if request.node.get_closest_marker("gpu"):
        pytest.importorskip("cupy")
        monkeypatch.setattr("gompfs.engine.gpu.GpuEngine.least_decoded", 0)


@pytest.fixture(scope="session")
def corpora() -> ModuleType:
    path = Path(__file__).parents[1] / "tools" / "corpora.py"
    spec = importlib.util.spec_from_file_location("corpora", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def odd_tree(corpora: ModuleType, tmp_path: Path) -> Path:
    root = tmp_path / "odd"
    corpora.make_tree(root)
    return root


@pytest.fixture(scope="session")
def shared_odd_tree(corpora: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The odd tree, made once for all tests that only read it."""
    root = tmp_path_factory.mktemp("shared") / "odd"
    corpora.make_tree(root)
    return root


@pytest.fixture
def empty_device_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A pool of device memory for one test, which may limit it: devices of other tests have their memory elsewhere."""
    import cupy

    pool, common = cupy.cuda.MemoryPool(), cupy.get_default_memory_pool()
    monkeypatch.setattr(cupy, "get_default_memory_pool", lambda: pool)
    cupy.cuda.set_allocator(pool.malloc)
    yield
    cupy.cuda.set_allocator(common.malloc)


@pytest.fixture(scope="session")
def library() -> Path:
    from native_builds import kernel_library

    return kernel_library()


@pytest.fixture
def device(library: Path) -> HostDevice:
    from host_device import HostDevice

    return HostDevice(library)


@pytest.fixture(scope="module")
def gpu() -> ArrayDevice:
    """What computes statistics on the first GPU."""
    from gompfs.engine import select_engine

    device = select_engine("gpu").accelerator.arrays(0)
    assert device is not None
    return device
