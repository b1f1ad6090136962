"""Mistakes of kernels are found when the host runs them."""

from __future__ import annotations

import subprocess

import pytest
from native_builds import kernel_mistakes_program

MISTAKES = {
    "memory": "heap-buffer-overflow",
    "shared memory": "use-after-poison",
    "operations of a warp": "one thread is at syncwarp, another at vote",
    "operations of a warp and of the CTA": "threads wait for each other at different operations",
    "barrier of two warps": "threads wait for each other at different operations",
    "end": "a thread ends while others wait at",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str) -> None:
    done = subprocess.run([kernel_mistakes_program(), mistake], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert MISTAKES[mistake] in done.stderr


def test_without_a_mistake() -> None:
    done = subprocess.run([kernel_mistakes_program(), "none"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1\n", "")
