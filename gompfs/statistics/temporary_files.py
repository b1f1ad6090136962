"""Large temporary files."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import BinaryIO


def temporary_directory() -> str:
    """Returns $TMPDIR or /var/tmp, else Python's default. /tmp comes last, since it may be in memory."""
    directory = os.environ.get("TMPDIR", "/var/tmp")
    return directory if os.access(directory, os.W_OK | os.X_OK) else tempfile.gettempdir()


def temporary_file() -> BinaryIO:
    """Returns a new, unbuffered file without a name in the temporary directory."""
    return tempfile.TemporaryFile(dir=temporary_directory(), buffering=0)


def free_space(directory: str) -> int:
    """Returns how many bytes are free in the file system of a directory."""
    return shutil.disk_usage(directory).free
