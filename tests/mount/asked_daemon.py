"""Asks the daemon of a mount to search, as any program can, and not as `gompfs grep` does."""

from __future__ import annotations

import io
import os
import re
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from gompfs.cli.application import run
from gompfs.search.messages import Message, SearchRequest, receive, send
from gompfs.search.query import SearchQuery

ADDRESS = ".gompfs/stats/search-socket"
NOBODY = 65534


class Asked:
    """A connection to the daemon of a mount."""

    def __init__(self, mounted: Path) -> None:
        name, self.token, _ = (mounted / ADDRESS).read_text().splitlines()
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(f"\0{name}")
        self.connection.settimeout(20)

    def ask(self, query: SearchQuery, token: str | None = None, number: int = 1) -> list[tuple[Message, bytes]]:
        """Asks, and returns all answers."""
        with self.connection:
            self.send(query, token, number)
            return self.answers()

    def send(self, query: SearchQuery, token: str | None = None, number: int = 1) -> None:
        """Sends a request for what is at and below an inode number."""
        send(self.connection, Message.TOKEN, (self.token if token is None else token).encode())
        send(self.connection, Message.REQUEST, SearchRequest(query, [(b"", number)]).encode())

    def answers(self) -> list[tuple[Message, bytes]]:
        """Returns all messages until the daemon closes the connection."""
        answers = []
        with self.connection, self.connection.makefile("rb") as stream, suppress(EOFError):
            while True:
                answers.append(receive(stream, 16 << 20))
        return answers


def is_answered(mounted: Path) -> bool:
    """Whether the daemon searches."""
    answers = Asked(mounted).ask(SearchQuery((b"no such word",)))
    return [kind for kind, _ in answers][-1:] == [Message.END]


def peak_of(process: int) -> int:
    """Returns the most memory that a process has had so far, in MiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmHWM:\s*([0-9]+)", status)[1]) >> 10  # type: ignore[index]


def wait_until_answered(mounted: Path) -> None:
    """Waits until the daemon searches again."""
    deadline = time.monotonic() + 60
    while True:
        with suppress(OSError):  # the connection was refused
            if is_answered(mounted):
                return
        assert time.monotonic() < deadline
        time.sleep(0.02)


def output_as_nobody(*arguments: str | Path) -> tuple[int, bytes]:
    """The exit status of a command of another user, and what it prints. Errors are printed too."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        status = 99
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            sys.stdout = sys.stderr = io.TextIOWrapper(os.fdopen(writer, "wb", buffering=0), write_through=True)
            status = run(list(map(str, arguments)))
        finally:
            os._exit(status)
    os.close(writer)
    with open(reader, "rb") as output:
        printed = output.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), printed
