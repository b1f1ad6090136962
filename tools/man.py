"""Writes the man pages of gompfs, of its commands and of mount.gompfs: `python tools/man.py [DIRECTORY]`.

They are made of the help of the commands and the table of mount options.

Without an argument, the pages in man/ are written again, which the wheel installs. A test compares them with the help.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from help_text import Command, Paragraph, commands, program

from gompfs import __version__
from gompfs.options import MOUNT_OPTIONS

DIRECTORY = Path(__file__).resolve().parents[1] / "man"
_STATUSES = (
    ("0", "Success."),
    ("1", "Failure: the archive is damaged, an entry does not exist, a file cannot be read or written."),
    ("2", "Wrong usage."),
    ("130", "Interrupted."),
    ("141", "The reader of the output has closed it."),
)
_MOUNT_STATUSES = (("0", "Success."), ("1", "Wrong usage."), ("32", "The mount failed."))
_MOUNT_HELPER = (
    "mount(8) and /etc/fstab mount archives of type gompfs with this program, which must be in /sbin. Several archives "
    "need the option union or subdir_per_archive; a colon in a name is written \\:. Options of any mount, such as ro, "
    "nofail and x-systemd.automount, are accepted. All mounts are read-only."
)
_SEE_ALSO = ("tar(1)", "fusermount3(1)", "fstab(5)", "mount(8)")
_SUMMARY = "mount compressed archives as directories"


def roff(text: str) -> str:
    """Returns the text with everything escaped that roff would interpret."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return "\n".join(rf"\&{line}" if line[:1] in (".", "'") else line for line in escaped.split("\n"))


def man_pages() -> dict[str, str]:
    """Returns all pages by file name."""
    all_commands = list(commands())
    pages = {f"{_page_name(command.name)}.1": _command_page(command) for command in all_commands}
    return {"gompfs.1": _main_page(program(), all_commands), **pages, "mount.gompfs.8": _mount_helper_page()}


def _page_name(command: str) -> str:
    return command.replace(" ", "-")


def _main_page(main: Command, all_commands: list[Command]) -> str:
    lines = [*_head("gompfs", _SUMMARY), ".SH SYNOPSIS"]
    lines += [r"\fBgompfs\fR [\fIOPTION\fR]... \fICOMMAND\fR [\fIARGUMENT\fR]...", ".SH DESCRIPTION"]
    lines += [*_text(main.paragraphs), ".SH OPTIONS", *_options(main), ".SH COMMANDS"]
    for command in all_commands:
        page = roff(_page_name(command.name))
        lines += [".TP", rf"\fB{page}\fR(1)", roff(_summary(command))]
    return _end(lines, [f"{_page_name(command.name)}(1)" for command in all_commands])


def _command_page(command: Command) -> str:
    summary = _summary(command)
    lines = [*_head(_page_name(command.name), summary[:1].lower() + summary[1:].rstrip(".")), ".SH SYNOPSIS"]
    lines += [rf"\fB{command.name}\fR {roff(command.usage)}", ".SH DESCRIPTION"]
    lines += [*_text(command.paragraphs), ".SH OPTIONS", *_options(command)]
    return _end(lines, ["gompfs(1)"])


def _mount_helper_page() -> str:
    lines = [*_head("mount.gompfs", "helper of mount(8) for gompfs archives", section=8), ".SH SYNOPSIS"]
    lines += [r"\fBmount \-t gompfs\fR [\fB\-o\fR \fIOPTION\fR,...] \fIARCHIVE\fR[:\fIARCHIVE\fR...] \fIDIRECTORY\fR"]
    lines += [".SH DESCRIPTION", ".PP", roff(_MOUNT_HELPER), ".SH OPTIONS"]
    for option in MOUNT_OPTIONS:
        lines += [".TP", rf"\fB{roff(option.usage)}\fR", roff(option.help)]
    return _end(lines, ["gompfs(1)", "gompfs-mount(1)"], _MOUNT_STATUSES)


def _summary(command: Command) -> str:
    """Returns the first sentence of a command's help."""
    return command.paragraphs[0].lines[0].split(". ")[0].split(": ")[0].rstrip(".") + "."


def _head(name: str, summary: str, section: int = 1) -> list[str]:
    manual = {1: "User Commands", 8: "System Administration"}[section]
    title = f'.TH {name.upper()} {section} "" "gompfs {__version__}" "{manual}"'
    return [title, ".SH NAME", rf"{roff(name)} \- {roff(summary)}"]


def _text(paragraphs: Iterable[Paragraph]) -> Iterator[str]:
    for paragraph in paragraphs:
        lines = [roff(line) for line in paragraph.lines]
        yield from (".PP", ".nf", *lines, ".fi") if paragraph.is_preformatted else (".PP", *lines)


def _options(command: Command) -> Iterator[str]:
    for declaration, text in command.options:
        yield from (".TP", rf"\fB{roff(declaration)}\fR", roff(text))


def _end(lines: list[str], related: list[str], statuses: tuple[tuple[str, str], ...] = _STATUSES) -> str:
    """Returns a page with the sections that all pages have at their end."""
    lines.append(".SH EXIT STATUS")
    for status, meaning in statuses:
        lines += [".TP", rf"\fB{status}\fR", roff(meaning)]
    lines += [".SH SEE ALSO", roff(", ".join([*related, *_SEE_ALSO]))]
    return "\n".join([*lines, ""])


def main() -> None:
    """Write the pages to the directory named on the command line, or to man/."""
    parser = argparse.ArgumentParser(description="Write the man pages of gompfs.")
    parser.add_argument("directory", nargs="?", type=Path, default=DIRECTORY, help="default: man in the checkout")
    directory: Path = parser.parse_args().directory
    directory.mkdir(parents=True, exist_ok=True)
    for name, page in man_pages().items():
        (directory / name).write_text(page)


if __name__ == "__main__":
    main()
