"""Where the documentation is, and how the output that it shows is compared.

Importing this module makes the modules of tools importable, which are not installed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))


def comparable(output: str) -> str:
    """Returns output of a command without what differs from run to run and from system to system: all figures."""
    without_numbers = re.sub(r"\d[\d,.]*", "N", output)
    return re.sub(r"N [kMG]?B\b", "N B", without_numbers).replace("duplicate files,", "duplicate file,").strip()
