"""Imports modules of tools, which are not installed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = str(Path(__file__).parents[1])


def tool_module(name: str) -> ModuleType:
    """Returns the module of that name below tools."""
    if ROOT not in sys.path:
        sys.path.append(ROOT)  # last, since the sources of gompfs there may lack the compiled modules
    return importlib.import_module(f"tools.{name}")
