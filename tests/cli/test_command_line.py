"""How command lines are parsed: options in all their forms, arguments, values, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from gompfs.cli.command_line import (
    BadValueError,
    Choice,
    Command,
    HelpRequested,
    IntegerRange,
    NoSuchOptionError,
    NumberRange,
    UsageError,
    argument,
    command,
    option,
)

DEFAULTS = {"flag": False, "level": 6, "name": (), "fast": None, "kind": None, "near": False, "far": False}


def parse_name(values: tuple[str, ...]) -> tuple[str, ...]:
    if "bad" in values:
        raise BadValueError("it is bad")
    return tuple(value.upper() for value in values)


@command("copy", passes_given=True)
@argument("sources", metavar="SOURCE...", several=True)
@argument("target")
@option("-f", "--flag", is_flag=True)
@option("-l", "--level", type=IntegerRange(1, 8), default=6)
@option("--name", multiple=True, parse=parse_name)
@option("--fast/--slow", default=None)
@option("--union", "kind", flag_value="union")
@option("--near", is_flag=True, group="distance")
@option("--far", is_flag=True, group="distance")
def copy_command(**values: Any) -> int:
    """Copies."""
    return len(values["sources"])


@command("show", advice=lambda name: "leave it out" if name == "--old" else None)
@argument("name", default="list")
@argument("rest", metavar="[REST...]", several=True, required=False)
@option("--sort", type=Choice(["name", "size"]), default="name")
@option("--seconds", type=NumberRange(0), default=1.0)
def show_command(**_values: Any) -> None:
    """Shows."""


def parsed(line: str, of: Command = copy_command) -> dict[str, Any]:
    return of.parse(line.split())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a b", {}),
        ("a b c", {"sources": ("a", "b"), "target": "c"}),
        ("-f a b", {"flag": True}),
        ("a --flag b", {"flag": True}),
        ("a b -l3", {"level": 3}),
        ("-fl 3 a b", {"flag": True, "level": 3}),
        ("-fl3 a b", {"flag": True, "level": 3}),
        ("--level=3 --level 8 a b", {"level": 8}),
        ("--name x --name=y=z a b", {"name": ("X", "Y=Z")}),
        ("--name -f a b", {"name": ("-F",)}),
        ("--fast a b", {"fast": True}),
        ("--fast --slow a b", {"fast": False}),
        ("--union a b", {"kind": "union"}),
        ("--near --far a b", {"far": True}),
        ("--far --near a b", {"near": True}),
        ("a -- -f", {"target": "-f"}),
        ("-- a b", {}),
        ("- b", {"sources": ("-",)}),
    ],
)
def test_values(line: str, expected: dict[str, Any]) -> None:
    values = parsed(line)
    given = values.pop("given")
    assert values == DEFAULTS | {"sources": ("a",), "target": "b"} | expected
    assert given >= expected.keys() - {"sources", "target"}


def test_what_was_given_is_told() -> None:
    assert parsed("-l 6 a b")["given"] == {"level"}
    assert copy_command.run(["a", "b", "c"]) == 2
    assert show_command.run([]) == 0


def test_optional_arguments() -> None:
    values = {"name": "list", "rest": (), "sort": "name", "seconds": 1.0}
    assert parsed("", show_command) == values
    assert parsed("x", show_command) == values | {"name": "x"}
    assert parsed("x y z --sort size", show_command) == values | {"name": "x", "rest": ("y", "z"), "sort": "size"}


@pytest.mark.parametrize(
    ("of", "line", "message"),
    [
        (copy_command, "", "Missing argument 'SOURCE...'."),
        (copy_command, "a", "Missing argument 'TARGET'."),
        (copy_command, "--bogus a b", "No such option '--bogus'."),
        (copy_command, "--lev 3 a b", "No such option '--lev'."),
        (copy_command, "-fz a b", "No such option '-z'."),
        (copy_command, "-f=1 a b", "No such option '-='."),
        (copy_command, "--flag=1 a b", "Option '--flag' does not take a value."),
        (copy_command, "--help=1", "Option '--help' does not take a value."),
        (copy_command, "a b -l", "Option '-l' requires an argument."),
        (copy_command, "-l 9 a b", "Invalid value for '-l' / '--level': '9' is not a whole number from 1 to 8"),
        (copy_command, "-l x a b", "Invalid value for '-l' / '--level': 'x' is not a whole number from 1 to 8"),
        (copy_command, "--name bad a b", "Invalid value for '--name': it is bad"),
        (show_command, "--sort x", "Invalid value for '--sort': 'x' is not one of 'name', 'size'"),
        (show_command, "--seconds nan", "Invalid value for '--seconds': 'nan' is not a number of at least 0"),
        (show_command, "--seconds -1", "Invalid value for '--seconds': '-1' is not a number of at least 0"),
        (show_command, "--old", "--old is not supported: leave it out"),
    ],
)
def test_errors(of: Command, line: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parsed(line, of)
    assert str(raised.value) == message
    assert raised.value.command is of
    assert isinstance(raised.value, NoSuchOptionError) == message.startswith("No such option")


def test_too_many_arguments() -> None:
    for line, message in (("a", "argument (a)"), ("a b", "arguments (a b)")):
        with pytest.raises(UsageError) as raised:
            Command("none", None, [], "").parse(line.split())
        assert str(raised.value) == f"Got unexpected extra {message}"


def test_help_comes_before_missing_arguments_but_after_wrong_options() -> None:
    for line in ("-h", "--help", "-fh", "a b --help"):
        with pytest.raises(HelpRequested):
            parsed(line)
    with pytest.raises(NoSuchOptionError):
        parsed("--bogus --help")
