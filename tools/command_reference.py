"""The reference of commands and mount options as Markdown, from the help of the commands."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from help_text import Command, commands, program

_OPTION_COLUMN = re.compile(r"  (\S.*?)(?:  +(\S.*))?$")


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
    (mount,) = (command for command in commands() if command.name == "gompfs mount")
    (listed,) = (paragraph for paragraph in mount.paragraphs if paragraph.lines[0] == "Mount options:")
    rows: list[list[str]] = []
    for line in listed.lines[1:]:
        match = _OPTION_COLUMN.match(line)
        if match is None or line.startswith("   "):
            rows[-1][1] += f" {line.strip()}"
        else:
            rows.append([match[1], match[2] or ""])
    return "\n".join(["| option | |", "|---|---|", *(f"| {_code(name)} | {_literal(text)} |" for name, text in rows)])


def _code(text: str) -> str:
    if "|" in text:  # GitHub would split a cell there, and Markdown of the site shows a backslash
        return f"<code>{html.escape(text).replace('|', '&#124;')}</code>"
    return f"`{text}`"


def _literal(text: str) -> str:
    """Returns text in which Markdown interprets nothing."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", text)
