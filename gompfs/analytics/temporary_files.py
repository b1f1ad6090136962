"""Where large temporary files go."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import BinaryIO


def temporary_directory() -> str:
    """$TMPDIR, else /var/tmp, which is for large files, where /tmp may be memory; else what Python has."""
    place = os.environ.get("TMPDIR", "/var/tmp")
    return place if os.access(place, os.W_OK | os.X_OK) else tempfile.gettempdir()


def temporary_file() -> BinaryIO:
    """A new file there that has no name, without a buffer of Python's."""
    return tempfile.TemporaryFile(dir=temporary_directory(), buffering=0)


def free_space(directory: str) -> int:
    """How many bytes may be written there."""
    return shutil.disk_usage(directory).free
