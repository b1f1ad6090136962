"""Mends the end of an archive after damage or an interrupted add."""

from __future__ import annotations

from gompfs.pack.repair.repair import repair_archive

__all__ = ["repair_archive"]
