"""tools/setup says that it still builds, and has the status of the build."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

SETUP = (Path(__file__).resolve().parents[2] / "tools" / "setup").read_text()


@pytest.mark.parametrize("status", [0, 3])
def test_a_long_build_is_not_silent(status: int) -> None:
    """It printed nothing for minutes."""
    function = re.search(r"^while_building\(\) \{\n.*?^\}\n", SETUP, re.MULTILINE | re.DOTALL)
    assert function is not None
    assert "    while_building 20 " in SETUP
    script = f"set -euo pipefail\n{function[0]}while_building 1 sh -c 'sleep 2.5; exit {status}'\necho done"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=20)
    assert done.stderr.splitlines() == [
        f"  still building, after {seconds} s; it takes about 250 s of CPU time" for seconds in (1, 2)
    ]
    assert (done.returncode, done.stdout) == (status, "" if status else "done\n")
