"""The reference of commands and mount options as Markdown, from the help of the commands and the table of options."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from help_text import Command, commands, program

from gompfs.options import MOUNT_OPTIONS


def commands_reference() -> str:
    """Returns a section for the program and for each command: usage, help, options."""
    return "\n".join(line for command in (program(), *commands()) for line in _section(command))


def _section(command: Command) -> Iterator[str]:
    yield from (f"## {command.name}", "", "```text", f"{command.name} {command.usage}", "```", "")
    for paragraph in command.paragraphs:
        lines = ["```text", *paragraph.lines, "```"] if paragraph.is_preformatted else map(_literal, paragraph.lines)
        yield from (*lines, "")
    yield from ("| option | |", "|---|---|")
    yield from (f"| {_code(declaration)} | {_literal(text)} |" for declaration, text in command.options)
    yield ""


def mount_options_reference() -> str:
    """Returns a table of the options of `gompfs mount -o`."""
    rows = [
        f"| {_code(option.usage)} | {', '.join(map(_code, option.choices))} | {_literal(option.help)} |"
        for option in MOUNT_OPTIONS
    ]
    return "\n".join(["| option | values | |", "|---|---|---|", *rows])


def _code(text: str) -> str:
    if "|" in text:  # GitHub would split a cell there, and Markdown of the site shows a backslash
        return f"<code>{html.escape(text).replace('|', '&#124;')}</code>"
    return f"`{text}`"


def _literal(text: str) -> str:
    """Returns text in which Markdown interprets nothing."""
    escaped = re.sub(r"([\\`*_{}\[\]#])", r"\\\1", html.escape(text, quote=False))
    return escaped.replace("|", "&#124;")
