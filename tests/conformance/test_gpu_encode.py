"""The kernels that encode blocks, on a GPU: the payloads of the C++ core."""

from __future__ import annotations

import pytest
from encode_cases import check_all

pytestmark = pytest.mark.gpu


def test_payloads_are_those_of_the_core() -> None:
    cupy_arrays = pytest.importorskip("gompfs.gpu.cupy_arrays")
    with cupy_arrays.GpuArrays() as device:
        check_all(device, 30)
