"""The codec `gompresso` of Zarr 3: what gompfs/integrations/zarr.py has for users."""

from __future__ import annotations

from gompfs.integrations.zarr import GompressoCodec

__all__ = ["GompressoCodec"]
