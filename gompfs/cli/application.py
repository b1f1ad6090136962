"""The click group of all commands, and the one place that turns errors into a line on stderr and an exit status.

Exit statuses: 0 success, 1 failure, 2 wrong usage, 130 interrupted, 141 broken pipe on the output, 143 terminated.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from types import FrameType
from typing import NoReturn, TextIO

import click

from gompfs.errors import GompfsError, OptionError, display_path, display_text
from gompfs.memory import spare_address_space

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
    "cat": "contents",
    "extract": "contents",
    "info": "info",
    "verify": "verify",
    "repair": "repair",
    "repack": "repack",
    "stats": "stats",
    "bench": "bench",
    "completion": "completion",
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


class _Commands(click.Group):
    """Imports the module of a command when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return list(COMMAND_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command named `cmd_name`, None if there is none."""
        if cmd_name not in COMMAND_MODULES:
            return None
        module = import_module(f"gompfs.cli.{COMMAND_MODULES[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command and its arguments. A path stands for `mount PATH`: mount.fuse3 runs gompfs without a command.

        `help COMMAND` stands for `COMMAND --help`.
        """
        if "/" in args[0]:
            args = ["mount", *args]
        elif args[0] == "help" and not ctx.resilient_parsing:
            if len(args) == 1:
                click.echo(ctx.get_help())
                ctx.exit()
            args = [args[1], "--help"]
        if args[0] not in COMMAND_MODULES and not args[0].startswith("-") and not ctx.resilient_parsing:
            from gompfs.cli.suggestions import unknown_command

            ctx.fail(unknown_command(args[0], COMMAND_MODULES))
        return super().resolve_command(ctx, args)


def _print_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from gompfs import __version__

        click.echo(f"{PROGRAM_NAME} {__version__}")
        ctx.exit()


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--debug", is_flag=True, help="Show a traceback when a command fails.")
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version.",
)
@click.pass_context
def application(ctx: click.Context, debug: bool) -> None:
    """Pack files into a compressed archive, mount the archive as a directory, and read word statistics as files."""
    ctx.ensure_object(Settings).debug = debug
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(EXIT_USAGE)


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
    try:
        _invoke(arguments, settings)
    except click.exceptions.Exit as error:
        return error.exit_code
    return 0


def _invoke(arguments: Sequence[str], settings: Settings) -> None:
    # Not through click's main(), which exits with status 1 on a broken pipe and prints two lines on an interrupt.
    instruction = os.environ.get(COMPLETION_VARIABLE)
    if instruction:
        from click.shell_completion import ShellComplete

        from gompfs.cli.completion import answer_shell

        completion = ShellComplete(application, {}, PROGRAM_NAME, COMPLETION_VARIABLE)
        raise click.exceptions.Exit(answer_shell(completion, instruction, arguments))
    with application.make_context(PROGRAM_NAME, list(arguments), obj=settings) as context:
        application.invoke(context)


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
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return _fail("interrupted", EXIT_INTERRUPTED)
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else PROGRAM_NAME
        from gompfs.cli.suggestions import usage_message

        message = usage_message(error)
        return _fail(f"{message}{'' if message.endswith('?') else '.'} See: {command} --help", EXIT_USAGE)
    if isinstance(error, click.ClickException):
        return _fail(error.format_message(), error.exit_code)
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
        click.echo(f"{PROGRAM_NAME}: {display_text(' '.join(message.splitlines()))}", err=True)
    except BrokenPipeError:
        raise
    except OSError:
        _drop_unwritten(sys.stderr)
