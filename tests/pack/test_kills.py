"""A process killed at any moment loses no data, exposes no content of an attacker, and leaves no temporary files."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_campaign import COMMANDS, run_campaign


@pytest.mark.timeout(20_000)
@pytest.mark.parametrize("number", [6, pytest.param(1000, marks=pytest.mark.slow)])
def test_kills(tmp_path: Path, number: int) -> None:
    outcome = run_campaign(tmp_path, number, number)
    assert outcome.num_kills >= number
    assert {command for command, _ in outcome.kills} == set(COMMANDS)
