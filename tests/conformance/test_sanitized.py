"""10,000 damaged inputs to each decoder of the C++ core, under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from native_builds import build_sanitized, core_sources

NUM_MUTATIONS = 10_000


@pytest.mark.timeout(1200)  # mostly compilation: 60 s on two idle cores, much more on busy ones
def test_no_damage_causes_access_out_of_bounds() -> None:
    sources = [*core_sources(), Path(__file__).with_name("fuzz.cpp")]
    program = build_sanitized(sources)
    result = subprocess.run([program, str(NUM_MUTATIONS)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    refused = [int(count) for count in re.findall(r"(\d+) of", result.stdout)]
    assert len(refused) == 4
    assert min(refused) > NUM_MUTATIONS / 4
