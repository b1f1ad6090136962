"""The fsspec file system `gompfs`: what gompfs/integrations/filesystem.py has for users."""

from __future__ import annotations

from gompfs.integrations.filesystem import GompfsFileSystem

__all__ = ["GompfsFileSystem"]
