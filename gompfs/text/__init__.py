"""Word grammars (TADOC): the text of many files as a dictionary and rules. Statistics are computed from them.

The module `grammar`, which needs NumPy, is not imported here: packing does not need it.
"""

from __future__ import annotations

from gompfs.text.probe import PROBE_SIZE, is_text

__all__ = ["PROBE_SIZE", "is_text"]
