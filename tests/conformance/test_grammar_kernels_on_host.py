"""Runs the CUDA kernels that build grammars on the CPU, under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from native_builds import kernel_library, sanitizer_environment

FOLDER = Path(__file__).parent
GRAMMAR = FOLDER.parent / "grammar"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("num_examples", [15, pytest.param(1000, marks=pytest.mark.slow)])
def test_kernels_build_the_rules_of_the_core(num_examples: int) -> None:
    done = subprocess.run(
        [sys.executable, FOLDER / "check_grammar_kernels.py", kernel_library(sanitized=True), str(num_examples)],
        env={**sanitizer_environment(), "PYTHONPATH": os.pathsep.join(map(str, (FOLDER, GRAMMAR, *sys.path)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
