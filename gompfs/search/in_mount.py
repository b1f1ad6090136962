"""Asks the daemon of a mount to search, so that the archive need not be opened. See gompfs.mount.search_service."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import gompfs
from gompfs.errors import MountError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    from gompfs.search.query import SearchQuery
    from gompfs.search.search import SearchTotals

_ADDRESS = ".gompfs/stats/search-socket"
_MAX_ADDRESS_SIZE = 200
_CONNECT_SECONDS = 2.0
_MAX_MESSAGE_SIZE = 16 << 20
_MAX_TOTALS_SIZE = 1 << 10
_MAX_ERROR_SIZE = 64 << 10  # what is longer is cut
_MAX_FAILURES_SIZE = 64 << 20  # of all together


class SearchInMount:
    """A search that a daemon runs. Has the members of ArchiveSearch that print what it finds."""

    def __init__(self, mountpoint: str, stream: BinaryIO, sockets: ExitStack, totals: SearchTotals) -> None:
        """`stream` has the messages of the daemon after the first totals. `sockets` are closed at the end."""
        self._mountpoint = mountpoint
        self._stream = stream
        self._sockets = sockets
        self._size_of_failures = 0
        self.totals = totals
        self.failures: list[str] = []

    def steps(self) -> Iterator[bytes]:
        """See ArchiveSearch.steps. Raises MountError, also for what the daemon could not do."""
        from gompfs.search.messages import Message, receive

        with self._sockets:
            while True:
                try:
                    kind, content = receive(self._stream, _MAX_MESSAGE_SIZE)
                    if kind is Message.TOTALS:
                        self.totals = _totals_of(content)
                    if kind is Message.FAILURE:
                        self._add_failure(content)
                except (EOFError, OSError, ValueError) as error:
                    raise MountError(f"the daemon ended the search: {error}", path=self._mountpoint) from None
                if kind is Message.END:
                    return
                if kind is Message.ERROR:
                    raise MountError(_text_of(content))
                yield content if kind is Message.OUTPUT else b""

    def _add_failure(self, content: bytes) -> None:
        """Raises ValueError if these are too many to keep."""
        self.failures.append(_text_of(content))
        self._size_of_failures += len(content)
        if self._size_of_failures > _MAX_FAILURES_SIZE:
            raise ValueError("it has sent too many errors of files")


def search_in_mount(mountpoint: str, query: SearchQuery, roots: Sequence[tuple[bytes, int]]) -> SearchInMount | None:
    """Begins a search at and below `roots`: paths to print, and inode numbers in the mount.

    Returns None if the daemon cannot be asked: if the mount has stats=off or shows several archives together, if the
    user may not read statistics of all files, or if the daemon is busy, of another release, or in another network
    namespace.
    """
    address = _address_of(mountpoint)
    if address is None:
        return None
    from socket import AF_UNIX, socket

    from gompfs.search.messages import MAX_REQUEST_SIZE, Message, SearchRequest, receive, send

    name, token = address
    request = SearchRequest(query, list(roots)).encode()
    if len(request) > MAX_REQUEST_SIZE:
        return None
    with ExitStack() as sockets:
        connection = sockets.enter_context(socket(AF_UNIX))
        stream = sockets.enter_context(connection.makefile("rb"))
        try:
            connection.settimeout(_CONNECT_SECONDS)
            connection.connect(f"\0{name}")
            connection.settimeout(None)
            send(connection, Message.TOKEN, token.encode())
            send(connection, Message.REQUEST, request)
            kind, content = receive(stream, _MAX_MESSAGE_SIZE)
            totals = _totals_of(content) if kind is Message.TOTALS else None
        except (EOFError, OSError, ValueError):
            return None
        if kind is Message.ERROR:
            raise MountError(_text_of(content))
        return None if totals is None else SearchInMount(mountpoint, stream, sockets.pop_all(), totals)


def _address_of(mountpoint: str) -> tuple[str, str] | None:
    """Returns the name of the daemon's socket, and the token for it."""
    try:
        with open(os.path.join(mountpoint, _ADDRESS), "rb") as file:
            name, token, version = file.read(_MAX_ADDRESS_SIZE).decode().split("\n")[:3]
    except (OSError, ValueError):
        return None
    from gompfs.search.messages import SOCKET_PREFIX

    # The mount may be that of another user, with any content.
    return (name, token) if name.startswith(SOCKET_PREFIX) and version == gompfs.__version__ else None


def _text_of(content: bytes) -> str:
    """Returns the text of an error."""
    return os.fsdecode(content[:_MAX_ERROR_SIZE])


def _totals_of(content: bytes) -> SearchTotals:
    """Raises ValueError."""
    import json

    from gompfs.search.search import SearchTotals

    try:
        numbers = json.loads(content) if len(content) <= _MAX_TOTALS_SIZE else None
    except RecursionError:
        numbers = None
    if not (
        isinstance(numbers, list)
        and len(numbers) <= len(SearchTotals._fields)
        and all(type(number) is int and number >= 0 for number in numbers)
    ):
        raise ValueError("these are not the totals of a search")
    return SearchTotals(*numbers)
