"""Runs the CUDA kernels that encode blocks on the CPU, under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import pytest
from native_builds import run_cases_sanitized


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("num_examples", [20, pytest.param(2000, marks=pytest.mark.slow)])
def test_kernels_write_the_payloads_of_the_core(num_examples: int) -> None:
    run_cases_sanitized("encode_cases", str(num_examples))
