"""Loads libfuse 3 for `-o api=high`, through mfusepy.

mfusepy prefers libfuse 2 if both versions are installed, so this module tells it which library to load.
"""

from __future__ import annotations

import ctypes
import os

from gompfs.errors import MountError

_NAMES = ("libfuse3.so.4", "libfuse3.so.3")
_VARIABLE = "FUSE_LIBRARY_PATH"  # the library that mfusepy loads, if set


def _find() -> str:
    """Returns the name by which the dynamic linker finds the library. Raises MountError."""
    reason: OSError | None = None
    for name in [os.environ[_VARIABLE]] if os.environ.get(_VARIABLE) else _NAMES:
        try:
            ctypes.CDLL(name)
        except OSError as error:
            reason = error
        else:
            return name
    raise MountError(f"api=high needs libfuse 3 (Debian, Ubuntu: apt-get install fuse3): {reason}")


os.environ[_VARIABLE] = _find()

import mfusepy as mfusepy  # noqa: E402
