"""Makes modules of other tests importable: the plain counts of words, and the watch over forked children."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("statistics", "fuzz")]
