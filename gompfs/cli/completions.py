"""Finds what may complete a command line: commands, options, and values of options and arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gompfs.cli.command_line import HELP_NAMES, Choice, Command, CommandLine, Option, Parameter, UsageError

Find = Callable[[Sequence[str]], tuple[Command, Sequence[str]] | None]
"""Returns the command that a command line names, and its arguments; None if there is no such command."""


class Completion(NamedTuple):
    """What the last word may become, and its `kind`: see gompfs.cli.completion."""

    value: str
    kind: str = "plain"
    help: str = ""


def completions(
    program: Command, summaries: Callable[[], Mapping[str, str]], find: Find, words: Sequence[str]
) -> Iterator[Completion]:
    """Yields the completions of the last of `words`, which follow the name of the program.

    `summaries` returns what each command does, by name.
    """
    *before, incomplete = words
    line = _read(program, before, is_program=True)
    if line.rest:
        found = find(line.rest)
        if found is not None:
            yield from _of_command(_read(*found), before, incomplete)
    elif incomplete[:1] == "-":
        yield from _of_options(line, incomplete)
    else:
        for name, text in summaries().items():
            if name.startswith(incomplete):
                yield Completion(name, help=text)


def _read(command: Command, arguments: Sequence[str], *, is_program: bool = False) -> CommandLine:
    """Returns what a command line says before the word that is incomplete, as far as it is right."""
    line = CommandLine(command)
    try:
        line.read(arguments, is_program=is_program)
    except UsageError:
        pass
    return line


def _of_command(line: CommandLine, before: Sequence[str], incomplete: str) -> Iterator[Completion]:
    may_be_option = "--" not in before
    name, equals, value = incomplete.partition("=")
    if equals and may_be_option and name.startswith("--"):
        before, incomplete = [name], value
    elif incomplete[:1] == "-" and may_be_option:
        yield from _of_options(line, incomplete)
        return
    option = _option_named(line.command, before[-1]) if before and may_be_option else None
    if option is not None and option.takes_value:
        yield from _of_value(option, line, incomplete)
        return
    for argument, given in line.argument_values()[0]:
        if given is None or argument.several:
            yield from _of_value(argument, line, incomplete)
            return


def _option_named(command: Command, name: str) -> Option | None:
    return next((option for option in command.options if name in option.names), None)


def _of_options(line: CommandLine, incomplete: str) -> Iterator[Completion]:
    for option in line.command.options:
        if option not in line.given or option.several:
            for name in (*option.names, *option.opposites):
                if name.startswith(incomplete):
                    yield Completion(name, help=option.help)
    for name in HELP_NAMES:
        if name.startswith(incomplete):
            yield Completion(name, help="Show this message and exit.")


def _of_value(parameter: Parameter, line: CommandLine, incomplete: str) -> Iterator[Completion]:
    if parameter.complete is not None:
        given = {option.name: value for option, value in line.given.items()}
        given |= {argument.name: value for argument, value in line.argument_values()[0]}
        for found in parameter.complete(given, incomplete):
            yield found if isinstance(found, Completion) else Completion(found)
    elif isinstance(parameter.type, Choice):
        yield from (Completion(word) for word in parameter.type.words if word.startswith(incomplete))
    elif parameter.type.kind:
        yield Completion(incomplete, parameter.type.kind)
