"""The C++ core (native/), one extension module: this file and its neighbours only describe it to type checkers.

Cancelled work raises KeyboardInterrupt. A failed system call raises OSError.
"""

from gompfs._native import blocks as blocks
from gompfs._native import codec as codec
from gompfs._native import fuse as fuse
from gompfs._native import gpu as gpu
from gompfs._native import grammar as grammar
from gompfs._native import index as index
from gompfs._native import search as search
from gompfs._native import statistics as statistics

def cancel_all() -> None:
    """Stops all work of this module in all threads, which then raises KeyboardInterrupt."""
