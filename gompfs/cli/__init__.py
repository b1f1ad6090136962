"""The command line `gompfs COMMAND ...`; each command is a module of its own, imported when it is run."""

from __future__ import annotations

import sys

from gompfs import __version__

__all__ = ["main"]


def main() -> None:
    """Run the command that sys.argv asks for, and exit with its status."""
    if sys.argv[1:] == ["--version"]:  # answered before the rest is imported; other spellings are as well, but later
        print_version()
    else:
        from gompfs.cli.application import run

        sys.exit(run())


def print_version() -> None:
    """The line of --version."""
    sys.stdout.write(f"gompfs {__version__}\n")
