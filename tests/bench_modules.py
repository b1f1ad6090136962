"""Modules of tools/bench, which are no part of what is installed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = str(Path(__file__).parents[1])


def bench_module(name: str) -> ModuleType:
    """The module of that name below tools.bench."""
    if ROOT not in sys.path:
        sys.path.append(ROOT)  # last: the sources of gompfs there may lack the compiled modules
    return importlib.import_module(f"tools.bench.{name}")
