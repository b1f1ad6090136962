"""Tables of gompfs beside its peers, measured in one run on one machine: `python -m tools.bench --help`.

`python -m` looks in the current directory first, where a checkout's sources without the compiled modules would hide
the gompfs that is installed. That entry goes last: an installed gompfs, or one that PYTHONPATH names, is measured.
"""

from __future__ import annotations

import sys
from pathlib import Path

if not sys.flags.safe_path and Path(sys.path[0]).resolve() == Path(__file__).resolve().parents[2]:
    sys.path.append(sys.path.pop(0))
