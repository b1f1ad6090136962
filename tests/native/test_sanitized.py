"""10,000 damaged inputs to each decoder of the C++ core, under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import re
import subprocess

import pytest
from native_builds import fuzz_program

NUM_MUTATIONS = 10_000


@pytest.mark.timeout(1200)  # mostly compilation if tools/test has not done it before
def test_no_damage_causes_access_out_of_bounds() -> None:
    result = subprocess.run([fuzz_program(), str(NUM_MUTATIONS)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    refused = [int(count) for count in re.findall(r"(\d+) of", result.stdout)]
    assert len(refused) == 4
    assert min(refused) > NUM_MUTATIONS / 4
