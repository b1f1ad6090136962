"""Fixtures of the tests that run kernels on the host."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_device import HostDevice
from native_builds import kernel_library


@pytest.fixture(scope="session")
def library() -> Path:
    return kernel_library()


@pytest.fixture
def device(library: Path) -> HostDevice:
    return HostDevice(library)
