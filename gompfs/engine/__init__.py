"""Engines compress and decompress batches of blocks. They are `cpu`, `gpu`, and `auto`, which uses both."""

from __future__ import annotations

from gompfs.engine.base import Engine
from gompfs.engine.selection import ENGINE_NAMES, select_engine

__all__ = ["ENGINE_NAMES", "Engine", "select_engine"]
