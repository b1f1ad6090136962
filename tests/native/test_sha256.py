"""SHA-256 of the C++ core is that of Python, with the processor's instructions for it and without."""

from __future__ import annotations

import hashlib
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from native_builds import ROOT, sha256_program

CONTENT = random.Random(1).randbytes(1000)
EXPECTED = [hashlib.sha256(CONTENT[:size]).hexdigest() for size in range(len(CONTENT) + 1)]
ARM_COMPILER, ARM_EMULATOR = shutil.which("aarch64-linux-gnu-g++"), shutil.which("qemu-aarch64-static")


def test_all_sizes_and_both_implementations() -> None:
    done = subprocess.run([sha256_program()], input=CONTENT, capture_output=True, check=True)
    assert done.stdout.decode().split() == EXPECTED


@pytest.mark.skipif(
    ARM_COMPILER is None or ARM_EMULATOR is None,
    reason="needs a compiler for ARM and QEMU (Debian: g++-aarch64-linux-gnu, qemu-user-static)",
)
def test_on_arm(tmp_path: Path) -> None:
    sources = [ROOT / "native/common/sha256.cpp", ROOT / "tests/native/sha256_check.cpp"]
    program = tmp_path / "sha256_check"
    flags = ["-std=c++20", "-O1", "-static", f"-I{ROOT / 'native'}"]
    subprocess.run([ARM_COMPILER, *flags, *sources, "-o", program], check=True)
    done = subprocess.run([ARM_EMULATOR, program], input=CONTENT, capture_output=True, check=True)
    assert done.stdout.decode().split() == EXPECTED
