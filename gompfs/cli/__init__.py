"""The command line `gompfs COMMAND ...`; each command is a module of its own, imported when it is run."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command that sys.argv asks for, and exit with its status."""
    from gompfs.cli.application import run

    sys.exit(run())
