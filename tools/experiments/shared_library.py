"""Builds small C++ files as shared libraries that experiments call through ctypes."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gompfs.errors import GompfsError


def build_library(sources: Sequence[Path], include_folders: Sequence[Path] = ()) -> ctypes.CDLL:
    """Returns the library. Raises GompfsError if there is no compiler, CalledProcessError if it fails."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        raise GompfsError("this experiment needs a C++ compiler")
    includes = [f"-I{folder}" for folder in include_folders]
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "library.so")
        subprocess.run(
            [compiler, "-std=c++20", "-O3", "-shared", "-fPIC", *includes, *sources, "-o", target], check=True
        )
        return ctypes.CDLL(str(target))
