"""A fixture for the documentation: a directory with the sample tree."""

from __future__ import annotations

from pathlib import Path

import documents  # noqa: F401 - makes tools importable
import pytest
from sample import make_sample


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A directory with the sample tree as `sample`."""
    make_sample(tmp_path / "sample")
    return tmp_path
