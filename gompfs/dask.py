"""Statistics and search over many archives as Dask collections: what gompfs/integrations/dask.py has for users."""

from __future__ import annotations

from gompfs.integrations.dask import SearchOutput, StatsOutput, grep, grep_outputs, stats, stats_output

__all__ = ["SearchOutput", "StatsOutput", "grep", "grep_outputs", "stats", "stats_output"]
