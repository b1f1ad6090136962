"""The command line `gompfs COMMAND ...`; each command is a module of its own, imported when it is run."""

from __future__ import annotations

import gc
import os
import sys

from gompfs import __version__

__all__ = ["main"]

_OBJECTS_BETWEEN_COLLECTIONS = 50_000
_EXIT_INTERRUPTED = 130


def main() -> None:
    """Run the command that sys.argv asks for, and exit with its status."""
    open_closed_streams()
    if sys.argv[1:] == ["--version"]:  # answered before the rest is imported; other spellings are as well, but later
        try:
            print_version()
            sys.stdout.flush()
        except OSError as error:
            sys.stdout = None  # which the interpreter would flush again
            sys.exit(f"gompfs: standard output: {error.strerror}")
    else:
        # Imports make many objects that stay: to look for garbage among them takes a twentieth of a short command.
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
        try:
            from gompfs.cli.application import run

            status = run()
        except KeyboardInterrupt:  # while this is imported
            sys.stderr.write("gompfs: interrupted\n")
            status = _EXIT_INTERRUPTED
        if status == _EXIT_INTERRUPTED:
            # The interpreter would wait for threads and for whoever reads the output; and it would die by SIGINT
            # instead where that came in an exec(), as modules have them that are being imported.
            os._exit(status)
        sys.exit(status)


def print_version() -> None:
    """The line of --version."""
    sys.stdout.write(f"gompfs {__version__}\n")


def open_closed_streams() -> None:
    """Give each standard stream that was closed at the start a descriptor that cannot be used (/dev/null).

    Otherwise the next file that is opened, an archive perhaps, would become the standard output.
    """
    streams = (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))
    for name, flags, mode in streams:
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))
