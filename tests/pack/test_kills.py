"""A process that is killed at any moment loses nothing, shows nothing of an attacker's, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_campaign import COMMANDS, run_campaign


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [15, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(20_000)])])
def test_kills(tmp_path: Path, number: int) -> None:
    outcome = run_campaign(tmp_path, number, seed=number)
    assert outcome.num_kills >= number
    assert {command for command, _ in outcome.kills} == set(COMMANDS)
