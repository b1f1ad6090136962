"""`python -m gompfs`: the same as the command `gompfs`."""

from __future__ import annotations

from gompfs.cli import main

main()
