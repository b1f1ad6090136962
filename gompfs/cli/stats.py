"""`gompfs stats`: the files of a mount's /stats, without a mount."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import click
from click.shell_completion import CompletionItem

from gompfs.cli.output import print_json, print_json_array, write_bytes
from gompfs.cli.parameters import archive_argument, engine_option, json_option, opened
from gompfs.errors import OptionError

_LIST = "list"
_REPEATED_FACT = "binary_file"


def _names() -> list[str]:
    from gompfs.mount.virtual_files import VIRTUAL_FILES

    return sorted(name.decode() for name in VIRTUAL_FILES)


def _complete_name(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in [*_names(), _LIST] if name.startswith(incomplete)]


@click.command("stats")
@archive_argument
@click.argument("name", default=_LIST, shell_complete=_complete_name)
@engine_option
@json_option
def stats_command(archive: str, name: str, *, engine: str, as_json: bool) -> None:
    """Print the statistic NAME of ARCHIVE, byte for byte as the file of that name in /stats of a mount.

    \b
    wordcount  word and count, the most frequent first
    sort       word and count, by word
    info       what the archive is
    list       these names; the default
    """
    from gompfs.mount.virtual_files import VIRTUAL_FILES

    names = _names()
    if name != _LIST and name not in names:
        raise OptionError(f"no statistic {name!r}; there are {', '.join([*names, _LIST])}")
    with opened(archive, engine=engine) as opened_archive:
        content = None if name == _LIST else VIRTUAL_FILES[name.encode()](opened_archive)
    if content is None:
        if as_json:
            print_json(names)
        else:
            write_bytes("".join(f"{name}\n" for name in names).encode())
    elif not as_json:
        write_bytes(content)
    elif name == "info":
        print_json(_facts(content))
    else:
        print_json_array(_counts(content))


def _facts(content: bytes) -> dict[str, Any]:
    """The facts of the file info: numbers as numbers, and the binary files as one list."""
    facts: dict[str, Any] = {f"{_REPEATED_FACT}s": []}
    for line in content.decode().splitlines():
        name, _, value = line.partition("\t")
        if name == _REPEATED_FACT:
            facts[f"{_REPEATED_FACT}s"].append(value)
        else:
            facts[name] = int(value) if value.isdecimal() else value
    return facts


def _counts(content: bytes) -> Iterator[dict[str, Any]]:
    """The lines of wordcount or sort, one after another."""
    for line in content.split(b"\n"):
        word, separator, count = line.rpartition(b"\t")
        if separator:
            yield {"word": os.fsdecode(word), "count": int(count)}
