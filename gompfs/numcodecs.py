"""The codec `gompresso` of numcodecs: what gompfs/integrations/numcodecs.py has for users."""

from __future__ import annotations

from gompfs.integrations.numcodecs import Gompresso

__all__ = ["Gompresso"]
