"""The command line `gompfs COMMAND ...`. Each command has its own module, imported when the command runs."""

from __future__ import annotations

import gc
import io
import os
import sys

from gompfs import __version__

__all__ = ["main"]

_OBJECTS_BETWEEN_COLLECTIONS = 50_000
_EXIT_INTERRUPTED = 130

OUTPUT_NAME = "standard output"
"""In messages."""


def main() -> None:
    """Run the command in sys.argv and exit with its status."""
    open_closed_streams()
    buffer_output()
    if any("://" in argument for argument in sys.argv):
        from gompfs.remote.urls import hide_secrets_of_process

        hide_secrets_of_process()
    if sys.argv[1:] == ["--version"]:  # without the imports of application
        try:
            print_version()
            sys.stdout.flush()
        except OSError as error:
            from gompfs.cli.application import drop_unwritten_output

            drop_unwritten_output()  # otherwise the interpreter writes it again at exit
            sys.exit(f"gompfs: {error.filename}: {error.strerror}")
    else:
        # Imports create many objects that live until exit. Collections over them take 5% of a short command's time.
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
        try:
            from gompfs.cli.application import run

            status = run()
        except KeyboardInterrupt:  # during the import
            sys.stderr.write("gompfs: interrupted\n")
            status = _EXIT_INTERRUPTED
        if status == _EXIT_INTERRUPTED:
            # A normal exit waits for other threads and for the reader of the output. It also kills the process with
            # SIGINT instead of this status if the signal arrived inside an exec(), as during the import of a module.
            os._exit(status)
        gc.freeze()  # the interpreter need not look for garbage in its last moments: that takes 10% of a short command
        sys.exit(status)


def print_version() -> None:
    """Print the line of --version."""
    sys.stdout.write(f"gompfs {__version__}\n")


class _StandardOutput(io.FileIO):
    """Names standard output in the errors of writing, as other files are named in theirs."""

    def write(self, content: bytes | memoryview, /) -> int:  # type: ignore[override]
        """Write, and return the number of bytes that were written. Raises OSError."""
        try:
            return super().write(content)
        except OSError as error:
            error.filename = OUTPUT_NAME
            raise


def buffer_output() -> None:
    """Name standard output in errors, and give it a buffer, which PYTHONUNBUFFERED takes away.

    Without a buffer, a write may end early at a signal.
    """
    output = _StandardOutput(sys.stdout.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(output), sys.stdout.encoding, sys.stdout.errors, line_buffering=output.isatty()
    )


def open_closed_streams() -> None:
    """Open /dev/null, in the wrong direction, for each standard stream that was closed when the process started.

    Otherwise the next file that the process opens, perhaps an archive, gets the descriptor of standard output.
    """
    streams = (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))
    for name, flags, mode in streams:
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))
