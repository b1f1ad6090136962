"""Devices of the tests that run kernels: on the host, and on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_device import HostDevice
from native_builds import kernel_library

from gompfs.engine import select_engine
from gompfs.gpu.arrays import ArrayDevice


@pytest.fixture(scope="session")
def library() -> Path:
    return kernel_library()


@pytest.fixture
def device(library: Path) -> HostDevice:
    return HostDevice(library)


@pytest.fixture(scope="module")
def gpu() -> ArrayDevice:
    """What computes statistics on the first GPU."""
    device = select_engine("gpu").accelerator.arrays(0)
    assert device is not None
    return device
