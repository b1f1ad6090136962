"""Rows of items of gompresso-tadoc give the same results with AVX-512 and without."""

from __future__ import annotations

import subprocess
import time

import pytest
from native_builds import item_rows_program

QUICK, MANY = 20_000, 2_000_000


def compare(count: int, first_seed: int) -> None:
    done = subprocess.run([item_rows_program(), str(count), str(first_seed)], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    num_valid, num_avx512 = map(int, done.stdout.split())
    assert count // 10 < num_valid < count - count // 10
    if num_avx512 == 0:
        pytest.skip("this processor has no AVX-512")
    assert count // 10 < num_avx512 < count - count // 10


@pytest.mark.timeout(600)  # mostly compilation if tools/test has not done it before
def test_same_results() -> None:
    compare(QUICK, 1)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_same_results_of_many_streams() -> None:
    compare(MANY, int(time.time()) % 1_000_000_000)
