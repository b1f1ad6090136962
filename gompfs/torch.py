"""Datasets for PyTorch: what gompfs/integrations/torch.py has for users."""

from __future__ import annotations

from gompfs.integrations.torch import ArchiveDataset, RunSampler

__all__ = ["ArchiveDataset", "RunSampler"]
