"""Measures gompfs beside its peers, in one run on one machine, and prints tables: `python -m tools.bench --help`.

`python -m` puts the current directory first in sys.path. In a checkout, the sources there, without the compiled
modules, would hide the installed gompfs. So that entry moves to the end, and the tables measure the installed gompfs or
the one that PYTHONPATH names.
"""

from __future__ import annotations

import sys
from pathlib import Path

if not sys.flags.safe_path and Path(sys.path[0]).resolve() == Path(__file__).resolve().parents[2]:
    sys.path.append(sys.path.pop(0))
