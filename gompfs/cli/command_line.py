"""Commands with their options and arguments as data, and the parser of command lines.

A command is a function with decorators: @command outermost, then one for each argument and option, in the order of its
help. Its parameters have the names of the options and arguments, and it returns an exit status, or None for 0. Help
(gompfs/cli/help.py) and completions (gompfs/cli/completions.py) are made of the same data, when they are asked for.

This takes the place of a library for command lines: the import of one takes longer than most commands do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeVar

    from gompfs.cli.completions import Completion

    Decorated = TypeVar("Decorated", bound=Callable[..., Any])
    Function = Callable[..., int | None]
    Complete = Callable[[Mapping[str, Any], str], Iterable[str | Completion]]
    """Returns what an incomplete value may become, given the values of the arguments and options before it."""

HELP_NAMES = ("-h", "--help")
_PARAMETERS = "_gompfs_parameters"  # of a function that becomes a command


class BadValueError(Exception):
    """A value that an option or argument does not take."""


class UsageError(Exception):
    """A command line that cannot be run. `command` is the one that it names, None for the program."""

    def __init__(self, message: str, command: Command | None = None) -> None:
        super().__init__(message)
        self.command = command


class NoSuchOptionError(UsageError):
    """An option that the command does not have."""

    def __init__(self, name: str, command: Command) -> None:
        super().__init__(f"No such option {name!r}.", command)
        self.name = name


class HelpRequested(Exception):  # noqa: N818 - not an error
    """The command line asks for help."""

    def __init__(self, command: Command) -> None:
        super().__init__()
        self.command = command


class Text:
    """Values that are taken as they are."""

    metavar = "TEXT"
    kind = ""
    """What a shell completes: `file`, `dir`, or nothing."""

    def convert(self, value: str) -> Any:
        """Returns what a value stands for. Raises BadValueError."""
        return value

    @property
    def limits(self) -> str:
        """The limits of the values in a few characters, empty if there are none."""
        return ""


class Path(Text):
    """Paths. They are not checked: a check would block on a mount whose daemon hangs."""

    metavar = "PATH"
    kind = "file"


class Directory(Text):
    """Paths of directories. They are not checked either."""

    metavar = "DIRECTORY"
    kind = "dir"


class Choice(Text):
    """One of several words."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        self.metavar = f"[{'|'.join(self.words)}]"

    def convert(self, value: str) -> str:
        """Returns the word."""
        if value not in self.words:
            raise BadValueError(f"{value!r} is not one of {', '.join(map(repr, self.words))}")
        return value


class NumberRange(Text):
    """A number with limits."""

    metavar = "FLOAT"
    name = "a number"
    type: Callable[[str], float] = float

    def __init__(self, least: float, most: float | None = None) -> None:
        self._least, self._most = least, most

    def convert(self, value: str) -> float:
        """Returns the number."""
        try:
            number = self.type(value)
        except ValueError:
            number = self._least - 1
        if not self._least <= number or (self._most is not None and number > self._most):
            limits = f"of at least {self._least:g}" if self._most is None else f"from {self._least:g} to {self._most:g}"
            raise BadValueError(f"{value!r} is not {self.name} {limits}")
        return number

    @property
    def limits(self) -> str:
        """The limits of the values."""
        return f"x>={self._least}" if self._most is None else f"{self._least}<=x<={self._most}"


class IntegerRange(NumberRange):
    """A whole number with limits."""

    metavar = "INTEGER"
    name = "a whole number"
    type = int


TEXT, PATH, DIRECTORY = Text(), Path(), Directory()


class Parameter(ABC):
    """An option or an argument."""

    def __init__(
        self,
        name: str,
        *,
        metavar: str,
        type: Text,  # noqa: A002 - the word that libraries for command lines have
        several: bool,
        default: Any,
        parse: Callable[[Any], Any] | None,
        complete: Complete | None,
    ) -> None:
        """`parse` is applied to the value or the default; it may raise BadValueError. `several` values are a tuple."""
        self.name = name
        self.metavar = metavar
        self.type = type
        self.several = several
        self.default = () if several else default
        self.complete = complete
        self._parse = parse

    @property
    @abstractmethod
    def title(self) -> str:
        """How messages name it."""

    def value_of(self, given: Any) -> Any:
        """Returns the value for what the command line says, the default for None. Raises BadValueError."""
        value = self.default
        if given is not None:
            value = tuple(map(self.type.convert, given)) if self.several else self.type.convert(given)
        return self._parse(value) if self._parse is not None else value


class Option(Parameter):
    """An option: a flag if it has no value, or a switch if it has `opposites`, the names that turn it off."""

    def __init__(
        self,
        *names: str,
        metavar: str | None = None,
        type: Text = TEXT,  # noqa: A002
        is_flag: bool = False,
        flag_value: str | None = None,
        multiple: bool = False,
        default: Any = None,
        show_default: bool = False,
        parse: Callable[[Any], Any] | None = None,
        complete: Complete | None = None,
        group: str | None = None,
        help: str = "",  # noqa: A002
    ) -> None:
        """`names` begin with a dash, but for one that may say how the parameter of the function is called.

        `on/off` are the names of a switch. A flag with a `flag_value` has that instead of True. Of the options of a
        `group`, the last one on a command line counts.
        """
        dashed = [name.split("/") for name in names if name[0] == "-"]
        own_name = next((name for name in names if name[0] != "-"), None)
        self.names = sorted((first for first, *_ in dashed), key=_num_dashes)
        self.opposites = sorted((second for _, *rest in dashed for second in rest), key=_num_dashes)
        self.flag_value = flag_value
        self.takes_value = not (is_flag or self.opposites or flag_value is not None)
        self.shows_default = show_default
        self.group = group
        self.help = help
        super().__init__(
            own_name or self.names[-1].strip("-").replace("-", "_"),
            metavar=metavar or type.metavar,
            type=type,
            several=multiple,
            default=False if is_flag else default,
            parse=parse,
            complete=complete,
        )

    @property
    def title(self) -> str:
        """How messages name it."""
        return " / ".join(map(repr, self.names))


def _num_dashes(name: str) -> int:
    return 2 if name.startswith("--") else 1


class Argument(Parameter):
    """An argument. It is `required` unless it has a default; of `several` values, one must be there."""

    def __init__(
        self,
        name: str,
        *,
        metavar: str | None = None,
        type: Text = TEXT,  # noqa: A002
        several: bool = False,
        required: bool = True,
        default: Any = None,
        parse: Callable[[Any], Any] | None = None,
        complete: Complete | None = None,
    ) -> None:
        self.required = required and default is None
        super().__init__(
            name,
            metavar=metavar or (name.upper() if self.required else f"[{name.upper()}]"),
            type=type,
            several=several,
            default=default,
            parse=parse,
            complete=complete,
        )

    @property
    def title(self) -> str:
        """How messages name it."""
        return repr(self.metavar)


class Command:
    """A command, or the program with the options before a command."""

    def __init__(
        self,
        name: str,
        function: Function | None,
        parameters: Sequence[Parameter],
        help: str | Callable[[], str],  # noqa: A002
        advice: Callable[[str], str | None] | None = None,
        passes_given: bool = False,
    ) -> None:
        """See `command`. The program itself has no function."""
        self.name = name
        self.function = function
        self.options = [parameter for parameter in parameters if isinstance(parameter, Option)]
        self.arguments = [parameter for parameter in parameters if isinstance(parameter, Argument)]
        self._help = help
        self._advice = advice
        self._passes_given = passes_given

    @property
    def help(self) -> str:
        """Its help, in paragraphs."""
        return self._help if isinstance(self._help, str) else self._help()

    def run(self, arguments: Sequence[str]) -> int:
        """Run the command with these arguments, and return the exit status. Raises UsageError or HelpRequested."""
        assert self.function is not None
        values = self.parse(arguments)
        try:
            return self.function(**values) or 0
        except UsageError as error:
            error.command = error.command or self
            raise

    def parse(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Returns the values of all options and arguments by name. Raises UsageError, or HelpRequested."""
        line = CommandLine(self)
        line.read(arguments)
        if line.asks_for_help:
            raise HelpRequested(self)
        values = line.values()
        if self._passes_given:
            values["given"] = frozenset(parameter.name for parameter in line.given)
        return values

    def unknown(self, name: str) -> UsageError:
        """Returns the error for an option that the command does not have."""
        advice = self._advice(name) if self._advice is not None else None
        if advice is None:
            return NoSuchOptionError(name, self)
        return UsageError(f"{name} is not supported: {advice}", self)


class CommandLine:
    """What a command line says, before values are checked."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.given: dict[Option, Any] = {}
        """What was given for each option, in the order of the last time that it was."""
        self.operands: list[str] = []
        """The arguments."""
        self.rest: list[str] = []
        """What `read` has not read: arguments of another command."""
        self.asks_for_help = False
        self._options: dict[str, tuple[Option, Any]] = {}
        for option in command.options:
            value = True if option.flag_value is None else option.flag_value
            self._options.update((name, (option, value)) for name in option.names)
            self._options.update((name, (option, False)) for name in option.opposites)

    def read(self, arguments: Sequence[str], *, is_program: bool = False) -> None:
        """Read options and arguments; for the program itself, up to the first argument. Raises UsageError."""
        self.rest = list(reversed(arguments))
        while self.rest:
            argument = self.rest.pop()
            if argument == "--":
                break
            if argument[:1] != "-" or argument == "-":
                if is_program:
                    self.rest.append(argument)
                    break
                self.operands.append(argument)
            elif argument.startswith("--"):
                name, equals, value = argument.partition("=")
                self._take(name, value if equals else None)
            else:
                self._read_letters(argument)
        self.rest.reverse()
        if not is_program:
            self.operands += self.rest

    def _read_letters(self, argument: str) -> None:
        """Reads options of one letter, as in -lR, of which the last may have its value right after it."""
        for index, letter in enumerate(argument[1:], 2):
            name = f"-{letter}"
            takes_value = name in self._options and self._options[name][0].takes_value
            self._take(name, argument[index:] or None if takes_value else None)
            if takes_value:
                break

    def _take(self, name: str, value: str | None) -> None:
        if name in HELP_NAMES:
            if value is not None:
                raise UsageError(f"Option {name!r} does not take a value.", self.command)
            self.asks_for_help = True
            return
        if name not in self._options:
            raise self.command.unknown(name)
        option, constant = self._options[name]
        if option.takes_value and value is None:
            if not self.rest:
                raise UsageError(f"Option {name!r} requires an argument.", self.command)
            value = self.rest.pop()
        elif not option.takes_value and value is not None:
            raise UsageError(f"Option {name!r} does not take a value.", self.command)
        before = self.given.pop(option, [])
        self.given[option] = constant if not option.takes_value else [*before, value] if option.several else value

    def values(self) -> dict[str, Any]:
        """Returns the values of all options and arguments by name. Raises UsageError."""
        of_arguments, left_over = self.argument_values()
        values: dict[str, Any] = {}
        for parameter, given in (*self.given.items(), *of_arguments):
            if isinstance(parameter, Argument) and given is None and parameter.required:
                raise UsageError(f"Missing argument {parameter.title}.", self.command)
            try:
                values[parameter.name] = parameter.value_of(given)
            except BadValueError as error:
                raise UsageError(f"Invalid value for {parameter.title}: {error}", self.command) from None
        last = {option.group: option for option in self.given if option.group is not None}
        for option in self.command.options:
            if option.group is not None and last.get(option.group, option) is not option:
                values[option.name] = False
            elif option.name not in values:
                values[option.name] = option.value_of(None)
        if left_over:
            plural = "s" if len(left_over) > 1 else ""
            raise UsageError(f"Got unexpected extra argument{plural} ({' '.join(left_over)})", self.command)
        return values

    def argument_values(self) -> tuple[list[tuple[Argument, Any]], list[str]]:
        """Returns each argument with what was given for it, and what was given for none."""
        rest = list(self.operands)
        values: list[tuple[Argument, Any]] = []
        arguments = self.command.arguments
        for index, argument in enumerate(arguments):
            if argument.several:
                count = max(len(rest) - (len(arguments) - index - 1), int(argument.required))
                values.append((argument, tuple(rest[:count]) or None))
            else:
                count = 1
                values.append((argument, rest[0] if rest else None))
            rest = rest[count:]
        return values, rest


def command(
    name: str,
    *,
    help: str | Callable[[], str] | None = None,  # noqa: A002
    advice: Callable[[str], str | None] | None = None,
    passes_given: bool = False,
) -> Callable[[Function], Command]:
    """Returns a decorator that makes a command of a function.

    `help` is its help, or returns it; by default, that is the docstring. `advice` returns what to do instead of using
    an option that the command does not have, or None. With `passes_given`, the function gets the argument `given`: the
    names of the options that the command line has.
    """

    def decorate(function: Function) -> Command:
        return Command(name, function, _parameters_of(function), help or function.__doc__ or "", advice, passes_given)

    return decorate


def option(*names: str, **details: Any) -> Callable[[Decorated], Decorated]:
    """Returns a decorator that gives a command an option; see Option."""
    return _adding(Option(*names, **details))


def argument(name: str, **details: Any) -> Callable[[Decorated], Decorated]:
    """Returns a decorator that gives a command an argument; see Argument."""
    return _adding(Argument(name, **details))


def _adding(parameter: Parameter) -> Callable[[Decorated], Decorated]:
    def decorate(function: Decorated) -> Decorated:
        setattr(function, _PARAMETERS, [parameter, *_parameters_of(function)])
        return function

    return decorate


def _parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    parameters: list[Parameter] = getattr(function, _PARAMETERS, [])
    return parameters
