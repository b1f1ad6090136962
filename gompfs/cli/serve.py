"""`gompfs serve`: shows archives to web browsers and other clients of HTTP."""

from __future__ import annotations

import os
import sys

from gompfs.cli.application import EXIT_INTERRUPTED, print_error
from gompfs.cli.command_line import PATH, BadValueError, argument, command, option
from gompfs.log import log_to_stderr, set_up_with, shut_down

_HOST, _MAX_PORT = "127.0.0.1", 65535


def _parse_address(value: str) -> tuple[str, int]:
    host, colon, port = value.rpartition(":")
    is_bracketed = host[:1] + host[-1:] == "[]"
    if not (port.isascii() and port.isdigit() and int(port[:6]) <= _MAX_PORT) or (":" in host and not is_bracketed):
        raise BadValueError(f"{value!r} is not PORT, HOST:PORT or [ADDRESS]:PORT")
    return host.strip("[]") if colon else _HOST, int(port)


@command("serve")
@argument("archives", metavar="ARCHIVE...", several=True, type=PATH)
@option(
    "--listen",
    "address",
    metavar="[HOST:]PORT",
    default=f"{_HOST}:8080",
    show_default=True,
    parse=_parse_address,
    help="Where to listen. HOST 0.0.0.0 or [::] stands for all networks, PORT 0 for a free port.",
)
@option(
    "--all",
    "serves_all",
    is_flag=True,
    help="Also serve what modes or ACLs do not let every user read, and statistics of it.",
)
def serve_command(archives: tuple[str, ...], *, address: tuple[str, int], serves_all: bool) -> None:
    """Serve ARCHIVE over HTTP, read-only.

    For places where FUSE is refused. Prints the URL, and serves files, listings and the directory stats until it is
    interrupted. Each of several archives is in a directory named after its file, without .gomp. Listings are in
    HTML, or in JSON if the URL ends with ?format=json. There is no encryption and no password: every user of this
    machine can read what is served, and with another HOST, everybody who can reach it.
    """
    from gompfs.serve.server import serving

    set_up_with(log_to_stderr)
    with serving(archives, *address, serves_all=serves_all) as server:
        if not server.tree.may_read(server.tree.root()):
            print_error("warning: not every user may list the root, so nothing is served; see --all")
        sys.stdout.write(f"serving at {server.url}\n")
        sys.stdout.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            # Other threads may be reading. The archives are not closed under them.
            shut_down()
            os._exit(EXIT_INTERRUPTED)
