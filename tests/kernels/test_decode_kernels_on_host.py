"""Runs the CUDA kernels that decode blocks and open heads on the CPU, under sanitizers of addresses and behaviour."""

from __future__ import annotations

import pytest
from check_decode_kernels import CASES
from native_builds import run_cases_sanitized

NUM_DAMAGED = {"byte": 100, "bit": 100, "dictionary": 100, "tadoc": 600, "heads": 50}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", CASES)
def test_kernels_and_core_agree(case: str) -> None:
    run_cases_sanitized("check_decode_kernels", case, str(NUM_DAMAGED[case]))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("case", CASES)
def test_kernels_and_core_agree_on_much_damage(case: str) -> None:
    run_cases_sanitized("check_decode_kernels", case, "20000")
