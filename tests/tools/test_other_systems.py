"""What a build says on a system that gompfs does not run on."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not shutil.which("cmake"), reason="needs CMake")
@pytest.mark.parametrize("system", ["Darwin", "FreeBSD", "Windows"])
def test_a_build_elsewhere_says_that_it_needs_linux(tmp_path: Path, system: str) -> None:
    """It said that xxhash.h is missing, or failed in the middle."""
    command = ["cmake", "-S", ROOT, "-B", tmp_path, f"-DCMAKE_SYSTEM_NAME={system}"]
    command += ["-DCMAKE_CXX_COMPILER_WORKS=1", "-DCMAKE_CXX_ABI_COMPILED=1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    message = f"gompfs needs Linux; on Windows, use WSL2. {system} is not supported"
    assert message in " ".join(done.stderr.split())
    assert "xxhash" not in done.stderr
