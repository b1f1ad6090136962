"""Listings of directories, as HTML and as JSON."""

from __future__ import annotations

import html
import json
import stat
import time
from collections.abc import Iterator, Sequence
from urllib.parse import quote_from_bytes

from gompfs.archive.entry_facts import entry_facts
from gompfs.errors import display_path
from gompfs.model import Inode
from gompfs.serve.public_tree import is_statistic

_HEAD = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>td, th {{ padding: 0 1em; text-align: left }} td:nth-child(2) {{ text-align: right }}</style>
<h1>{title}</h1>
<table><tr><th>name<th>size<th>modified
"""


def url_of(names: Sequence[bytes]) -> str:
    """Returns the path of a URL for a path in the archive. Bytes that a URL cannot have are escaped."""
    return "/" + "/".join(quote_from_bytes(name, safe="") for name in names)


def as_html(names: Sequence[bytes], entries: Sequence[tuple[bytes, Inode]]) -> Iterator[bytes]:
    """Yields a page in pieces. `names` is the path of the directory."""
    title = html.escape(display_path(b"/" + b"".join(name + b"/" for name in names)))
    yield _HEAD.format(title=title).encode()
    if names:
        yield b'<tr><td><a href="../">../</a><td><td>\n'
    for name, inode in entries:
        slash = "/" if stat.S_ISDIR(inode.mode) else ""
        shown = html.escape(display_path(name)) + slash
        if inode.symlink_target is not None:
            shown += " &rarr; " + html.escape(display_path(inode.symlink_target))
        size = str(inode.size) if stat.S_ISREG(inode.mode) and not is_statistic(inode) else ""
        link = quote_from_bytes(name, safe="") + slash
        yield f'<tr><td><a href="./{link}">{shown}</a><td>{size}<td>{_time(inode.mtime_ns)}\n'.encode()
    yield b"</table></html>\n"


def as_json(names: Sequence[bytes], entries: Sequence[tuple[bytes, Inode]]) -> Iterator[bytes]:
    """Yields an array of what `gompfs ls --json` says of each entry, with its URL, in pieces.

    The size of a statistic is null: it is known when it has been computed.
    """
    separator = b"["
    for name, inode in entries:
        path = [*names, name]
        facts = entry_facts(b"/".join(path), inode) | {"url": url_of(path) + "/" * stat.S_ISDIR(inode.mode)}
        if is_statistic(inode) and stat.S_ISREG(inode.mode):
            facts["size"] = None
        yield separator + json.dumps(facts).encode()
        separator = b",\n "
    yield b"[]\n" if separator == b"[" else b"]\n"


def _time(mtime_ns: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.gmtime(mtime_ns // 1_000_000_000)) + " UTC"
    except (OverflowError, ValueError, OSError):
        return ""  # a year that the C library cannot format
