"""The help of all commands as plain values: the man pages and the reference of the documentation are made of them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass

import click

from gompfs.cli.application import application

_HELP_OPTIONS = ["-h", "--help"]


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of a help text. `lines` has one element unless the paragraph keeps its line breaks."""

    lines: list[str]
    is_preformatted: bool


@dataclass(frozen=True)
class Command:
    """One command: its name with the program's, its usage, its help, and (declaration, help) of each option."""

    name: str
    usage: str
    paragraphs: list[Paragraph]
    options: list[tuple[str, str]]


def program() -> Command:
    """Returns the program itself, with the options that come before a command."""
    return _described(application, _program_context())


def commands() -> Iterator[Command]:
    """Yields all commands in the order in which the program's help lists them."""
    parent = _program_context()
    for name in application.list_commands(parent):
        command = application.get_command(parent, name)
        assert command is not None
        context = click.Context(command, parent=parent, info_name=name, help_option_names=_HELP_OPTIONS)
        yield _described(command, context)


def _program_context() -> click.Context:
    return click.Context(application, info_name="gompfs", help_option_names=_HELP_OPTIONS)


def _described(command: click.Command, context: click.Context) -> Command:
    usage = " ".join(command.collect_usage_pieces(context))
    records = [
        parameter.get_help_record(context)
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option)
    ]
    options = [record for record in records if record is not None]
    return Command(context.command_path, usage, list(_paragraphs(command.help or "")), options)


def _paragraphs(help_text: str) -> Iterator[Paragraph]:
    """Yields the paragraphs of a help text; those after a line with \\b keep their line breaks, as in click."""
    for paragraph in inspect.cleandoc(help_text).split("\n\n"):
        lines = paragraph.split("\n")
        if lines[0].strip() == "\b":
            yield Paragraph(lines[1:], is_preformatted=True)
        else:
            yield Paragraph([" ".join(lines)], is_preformatted=False)
