"""The messages by which `gompfs grep` asks the daemon of a mount to search, over a Unix socket.

The command sends a TOKEN and a REQUEST. The daemon answers with REFUSED, or with TOTALS, any number of further
messages, and END or ERROR. Both sides close the socket when they want to stop. A message is its kind (1 byte), the size
of its content (4 bytes, little-endian) and the content.
"""

from __future__ import annotations

import json
import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from gompfs.search.query import SearchQuery

if TYPE_CHECKING:
    from socket import socket

SOCKET_PREFIX = "gompfs-"
"""How the names of sockets begin, so that nothing is ever sent to the socket of another program."""
TOKEN_SIZE = 32
"""In bytes."""
MAX_REQUEST_SIZE = 2 << 20
"""In bytes. Larger queries, as with very many patterns, are not given to a daemon.

To read a request takes up to 30 times as much memory.
"""
_MAX_REPLACEMENT = 64 << 10
MAX_PIECE_SIZE = 1 << 20
"""The size up to which output comes in one message, in bytes."""
_HEADER = struct.Struct("<BI")
_BYTES = "bytes"


class Message(IntEnum):
    """The kinds of messages."""

    TOKEN = 0
    """Shows that the user may read the file that has it."""
    REQUEST = 1
    """See SearchRequest."""
    REFUSED = 2
    """The daemon does not search: too much is asked at once, or it does not understand the request."""
    OUTPUT = 3
    """A piece of the output."""
    TOTALS = 4
    """The members of SearchTotals so far, in JSON."""
    FAILURE = 5
    """A file could not be read: the text of the error."""
    ERROR = 6
    """The search ended with an error: its text."""
    END = 7
    """The search is complete."""


class SearchRequest(NamedTuple):
    """The request that is sent to a daemon."""

    query: SearchQuery
    roots: list[tuple[bytes, int]]
    """Paths to print, and inode numbers in the mount."""

    def encode(self) -> bytes:
        """Returns the content of a REQUEST."""
        return json.dumps(
            {"query": self.query.as_dict(), "roots": self.roots}, default=_described, ensure_ascii=False
        ).encode()

    @classmethod
    def decode(cls, content: bytes) -> SearchRequest:
        """Reads the content of a REQUEST. Raises ValueError. Types of the members of a query are not checked."""
        try:
            fields = json.loads(content, object_hook=_restored)
            query: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value for name, value in fields["query"].items()
            }
            roots = [(bytes(path), int(number)) for path, number in fields["roots"]]
            return cls(_checked(SearchQuery(**query)), roots)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise ValueError(f"not a request to search: {error}") from None


def _described(value: object) -> dict[str, str]:
    """Returns bytes as JSON has them."""
    if not isinstance(value, bytes):
        raise TypeError(f"{value!r} cannot be in a request")
    return {_BYTES: value.decode("latin-1")}


def _restored(value: dict[str, Any]) -> Any:
    """Returns what _described was given."""
    return value[_BYTES].encode("latin-1") if value.keys() == {_BYTES} else value


def _checked(query: SearchQuery) -> SearchQuery:
    """Raises ValueError for a query that makes more output than any user wants, and for a wrong encoding."""
    if len(query.replace or b"") > _MAX_REPLACEMENT:
        raise ValueError("a replacement is too long")
    if not isinstance(query.encoding, str):
        raise ValueError("an encoding is a name")
    return query


def send(connection: socket, kind: Message, content: bytes = b"") -> None:
    """Sends a message. Raises OSError if the other side has gone."""
    connection.sendall(_HEADER.pack(kind, len(content)))
    connection.sendall(content)


def receive(stream: BinaryIO, max_size: int) -> tuple[Message, bytes]:
    """Returns the next message. Raises EOFError if there is none, ValueError if it is not valid, and OSError."""
    header = stream.read(_HEADER.size)
    if len(header) != _HEADER.size:
        raise EOFError("the other side has gone")
    kind, size = _HEADER.unpack(header)
    if size > max_size:
        raise ValueError(f"a message of {size} bytes")
    content = stream.read(size)
    if len(content) != size:
        raise EOFError("the other side has gone")
    return Message(kind), content
