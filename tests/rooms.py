"""Puts the folders on the path whose modules several tests import, as pytest does. Programs import it first.

The checkout comes last: its gompfs has no compiled modules.
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_OPTIONS = tomllib.loads((_ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]

os.environ.setdefault("SOURCE_DATE_EPOCH", "1700000000")  # archives that are packed twice have the same bytes
sys.path = [str(_ROOT / folder) for folder in _OPTIONS["pythonpath"]] + [
    path for path in sys.path if path not in ("", str(_ROOT))
]
sys.path.append(str(_ROOT))
