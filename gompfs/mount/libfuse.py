"""Loads libfuse 3 for `-o api=high`, through mfusepy.

mfusepy takes libfuse 2 where both versions are installed, so it is told which one to load.
"""

from __future__ import annotations

import ctypes
import os

from gompfs.errors import MountError

_NAMES = ("libfuse3.so.4", "libfuse3.so.3")
_VARIABLE = "FUSE_LIBRARY_PATH"  # what mfusepy loads, where it is set


def _find() -> str:
    """The name of the library, as the dynamic linker finds it. Raises MountError."""
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
