"""All commands, and the one place that turns errors into a line on stderr and an exit status.

Exit statuses: 0 success, 1 failure, 2 wrong usage, 130 interrupted, 141 broken pipe on the output, 143 terminated.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import import_module

from gompfs.cli.command_line import Command, CommandLine, HelpRequested, Option, UsageError
from gompfs.errors import GompfsError, OptionError, display_path, display_text
from gompfs.light_types import TYPE_CHECKING
from gompfs.memory import spare_address_space

if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn, TextIO

PROGRAM_NAME = "gompfs"
COMPLETION_VARIABLE = "_GOMPFS_COMPLETE"

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
EXIT_TERMINATED = 143

# Command -> the module that defines <command>_command. The help lists commands in this order.
COMMAND_MODULES = {
    "pack": "pack",
    "add": "pack",
    "remove": "remove",
    "mount": "mount",
    "umount": "mount",
    "ps": "ps",
    "top": "top",
    "ls": "ls",
    "grep": "grep",
    "search": "search",
    "cat": "contents",
    "extract": "contents",
    "serve": "serve",
    "info": "info",
    "verify": "verify",
    "repair": "repair",
    "repack": "repack",
    "stats": "stats",
    "bench": "bench",
    "setup": "setup",
}


_terminated = threading.Event()
"""Whether SIGTERM was received. As with SIGINT, the resulting exception may be an error of sqlite3."""


def leave_on_sigterm() -> None:
    """Turn SIGTERM into SystemExit, so that a writer's cleanup code removes its unfinished files."""

    def leave(_number: int, _frame: FrameType | None) -> NoReturn:
        _terminated.set()
        _cancel_native_work()
        sys.exit(EXIT_TERMINATED)

    signal.signal(signal.SIGTERM, leave)


class _Interrupts:
    """Turns SIGINT into KeyboardInterrupt, and cancels the native work of all threads, for which exit would wait.

    If SIGINT is ignored, as in a command that a shell runs in the background, it stays ignored.
    """

    def __init__(self) -> None:
        self.has_come = False
        """Whether SIGINT was received. The resulting exception may be another one, such as an error of sqlite3."""
        if threading.current_thread() is threading.main_thread() and (
            signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            signal.signal(signal.SIGINT, self._interrupt)

    def ignore(self) -> None:
        """Ignore SIGINT from now on: the command has ended, and a signal would kill the interpreter during shutdown."""
        if signal.getsignal(signal.SIGINT) == self._interrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> NoReturn:
        self.has_come = True
        _cancel_native_work()
        raise KeyboardInterrupt


def _cancel_native_work() -> None:
    native = sys.modules.get("gompfs._native")  # loading it here would slow down commands that do not need it
    if native is not None:
        threading.excepthook = _report_error_of_thread
        native.cancel_all()


def _report_error_of_thread(error: threading.ExceptHookArgs) -> None:
    """Reports an exception that has ended a thread, but not the KeyboardInterrupt of cancelled work."""
    if not issubclass(error.exc_type, KeyboardInterrupt):
        threading.__excepthook__(error)


class Settings:
    """The values of the options before the command name."""

    def __init__(self) -> None:
        self.debug = False


PROGRAM = Command(
    PROGRAM_NAME,
    None,
    [
        Option("--debug", is_flag=True, help="Show a traceback when a command fails."),
        Option("-V", "--version", is_flag=True, help="Show the version."),
    ],
    "Pack files into a compressed archive, mount the archive as a directory, and read word statistics as files.",
)


def command_named(name: str) -> Command:
    """Returns a command of COMMAND_MODULES. Imports its module."""
    module = import_module(f"gompfs.cli.{COMMAND_MODULES[name]}")
    command: Command = getattr(module, f"{name}_command")
    return command


def find_command(arguments: Sequence[str]) -> tuple[Command, Sequence[str]] | None:
    """Returns the command that a command line names, and its arguments; None if there is no such command.

    A path stands for `mount PATH`: mount.fuse3 runs gompfs without a command. `help COMMAND` stands for
    `COMMAND --help`, and `help` for `--help`.
    """
    name, *rest = arguments
    if "/" in name:
        return command_named("mount"), arguments
    if name == "help":
        if not rest:
            raise HelpRequested(PROGRAM)
        name, rest = rest[0], ["--help"]
    return (command_named(name), rest) if name in COMMAND_MODULES else None


def summaries() -> dict[str, str]:
    """Returns what each command does, by its name, in the order of the help."""
    from gompfs.cli.help import first_sentence

    return {name: first_sentence(command_named(name).help) for name in COMMAND_MODULES}


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (sys.argv by default) and return the exit status. Prints errors, never raises them."""
    settings = Settings()
    interrupts = _Interrupts()
    _terminated.clear()
    spare_address_space()
    try:
        status = _run_command(sys.argv[1:] if arguments is None else arguments, settings)
        sys.stdout.flush()
        return status
    except BaseException as error:
        if settings.debug:
            import traceback

            traceback.print_exc()
        # Flushing may block after an interrupt: the interrupted write may have waited for a stalled reader.
        if not interrupts.has_come:
            drop_unwritten_output()
        if _terminated.is_set():
            return EXIT_TERMINATED
        try:
            return _report(KeyboardInterrupt() if interrupts.has_come else error)
        except BrokenPipeError:  # standard error has no reader
            return EXIT_BROKEN_PIPE
    finally:
        if not interrupts.has_come:
            _drop_unwritten(sys.stderr)
        interrupts.ignore()


def _run_command(arguments: Sequence[str], settings: Settings) -> int:
    """Runs a command, and returns its exit status."""
    shell = os.environ.get(COMPLETION_VARIABLE)
    if shell:
        from gompfs.cli.completion import answer_shell
        from gompfs.cli.completions import completions

        return answer_shell(lambda words: completions(PROGRAM, summaries, find_command, words), shell, arguments)
    try:
        return _invoke(arguments, settings)
    except HelpRequested as asked:
        sys.stdout.write(_help_of(asked.command))
        return 0


def _invoke(arguments: Sequence[str], settings: Settings) -> int:
    line = CommandLine(PROGRAM)
    line.read(arguments, is_program=True)
    options = line.values()
    if line.asks_for_help:
        raise HelpRequested(PROGRAM)
    if options["version"]:
        from gompfs.cli import print_version

        print_version()
        return 0
    settings.debug = options["debug"]
    if not line.rest:
        sys.stderr.write(_help_of(PROGRAM))
        return EXIT_USAGE
    found = find_command(line.rest)
    if found is not None:
        command, rest = found
        return command.run(rest)
    from gompfs.cli.suggestions import unknown_command

    name = line.rest[1] if line.rest[0] == "help" else line.rest[0]
    raise UsageError(unknown_command(name, COMMAND_MODULES))


def _help_of(command: Command) -> str:
    from gompfs.cli.help import help_text

    return help_text(command, PROGRAM_NAME, summaries().items() if command is PROGRAM else ())


def drop_unwritten_output() -> None:
    """Write what standard output has buffered, or discard it if that fails.

    What is kept would be written again when the interpreter exits, which then prints a message of its own.
    """
    _drop_unwritten(sys.stdout)


def _drop_unwritten(stream: TextIO) -> None:
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _report(error: BaseException) -> int:
    """Print one line about the error and return the exit status."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else EXIT_FAILURE
    if isinstance(error, BrokenPipeError):
        return EXIT_BROKEN_PIPE
    if isinstance(error, KeyboardInterrupt):
        return _fail("interrupted", EXIT_INTERRUPTED)
    if isinstance(error, UsageError):
        from gompfs.cli.suggestions import usage_message

        command = "" if error.command in (None, PROGRAM) else f" {error.command.name}"
        message = usage_message(error)
        return _fail(f"{message}{'' if message.endswith('?') else '.'} See: {PROGRAM_NAME}{command} --help", EXIT_USAGE)
    if isinstance(error, GompfsError):
        from gompfs.cli.suggestions import with_advice

        return _fail(with_advice(str(error)), EXIT_USAGE if isinstance(error, OptionError) else EXIT_FAILURE)
    if isinstance(error, OSError):
        path = f"{display_path(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
        return _fail(path + (error.strerror or str(error)), EXIT_FAILURE)
    if isinstance(error, MemoryError):
        return _fail("out of memory", EXIT_FAILURE)
    name = type(error).__name__
    return _fail(f"internal error: {name}: {error} (run gompfs --debug for a traceback)", EXIT_FAILURE)


def _fail(message: str, status: int) -> int:
    print_error(message)
    return status


def print_error(message: str) -> None:
    """Print an error or a warning as one line on stderr, prefixed with the program name.

    The text may come from an archive or from the daemon of another user: control characters are escaped here.
    Raises BrokenPipeError. After another error of stderr, nobody can be told, and the exit status remains.
    """
    try:
        sys.stderr.write(f"{PROGRAM_NAME}: {display_text(' '.join(message.splitlines()))}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        raise
    except OSError:
        _drop_unwritten(sys.stderr)
