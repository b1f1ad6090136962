"""The native module is built with the hardening options of compiler and linker, which were missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import gompfs._native

MODULE = Path(gompfs._native.__file__)

pytestmark = [
    pytest.mark.skipif(not shutil.which("readelf"), reason="readelf is not installed"),
    pytest.mark.skipif("GOMPFS_SANITIZE" in os.environ.get("CMAKE_ARGS", ""), reason="sanitizers replace them"),
]


def readelf(*arguments: str | Path) -> str:
    return subprocess.run(["readelf", "--wide", *arguments], capture_output=True, text=True, check=True).stdout


def test_the_module_is_hardened() -> None:
    """Symbols are bound at load and then read-only, the stack has canaries and is not executable."""
    segments = {line.split()[0]: line.split() for line in readelf("--segments", MODULE).splitlines() if line.split()}
    assert "GNU_RELRO" in segments
    assert "E" not in segments["GNU_STACK"][6]
    assert "BIND_NOW" in readelf("--dynamic", MODULE)
    symbols = readelf("--dyn-syms", MODULE)
    if "__asan_init" not in symbols:
        assert "__stack_chk_fail" in symbols


def test_calls_that_copy_are_checked() -> None:
    """_FORTIFY_SOURCE: calls of functions that know the size of their target."""
    symbols = readelf("--dyn-syms", MODULE)
    assert "__memcpy_chk" in symbols or "__asan_init" in symbols
