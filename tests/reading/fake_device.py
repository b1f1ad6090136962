"""A stand-in for the FUSE device, so that the daemon's threads can answer requests without a mount."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

from gompfs._native.blocks import BlockReader
from gompfs._native.fuse import FuseServer, ListingTable, ReaderTable, ReplyCache, ServedArchive

HEADER = struct.Struct("<IIQQIIIHH")


def request(opcode: int, node: int, body: bytes = b"", unique: int = 5, thread: int = 0) -> bytes:
    """Returns a request as the kernel makes it, from the thread of that number."""
    return HEADER.pack(HEADER.size + len(body), opcode, unique, node, 0, 0, thread, 0, 0) + body


def reply(content: bytes, unique: int = 5, error: int = 0) -> bytes:
    """Returns the answer that the kernel should get."""
    return struct.pack("<IiQ", 16 + len(content), error, unique) + content


class _RefusedError(Exception):
    """Raised instead of answering."""


class Unanswered:
    """Handlers that answer no request: they call `forward` with the name of each operation."""

    def __init__(self, forward: Callable[[str], None]) -> None:
        self._forward = forward

    def __getattr__(self, name: str) -> Callable[..., None]:
        def refuse(*_arguments: object) -> None:
            raise _RefusedError(name)

        return refuse

    def failed(self, operation: str, _error: BaseException, _answer_again: Callable[[], None]) -> None:
        """Leaves the request waiting."""
        self._forward(operation)


class Device:
    """A socket that keeps message boundaries, as the FUSE device does, with threads that answer requests.

    Without `handlers`, requests that Python would have to answer are answered with b"forwarded". `descriptor` replaces
    the daemon's end of the socket.
    """

    def __init__(
        self,
        reader: BlockReader | None = None,
        listings: ListingTable | None = None,
        replies: ReplyCache | None = None,
        num_threads: int = 1,
        handlers: Any = None,
        descriptor: int | None = None,
    ) -> None:
        self.kernel, self._daemon = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.kernel.settimeout(20)
        self.forwarded: list[str] = []  # the names of the operations
        self.readers = ReaderTable()
        self.served = ServedArchive(BlockReader(0, 1 << 12, 0) if reader is None else reader)
        self.readers.insert(0, self.served)
        tables = (self.readers, listings or ListingTable(0), replies or ReplyCache(0))
        handlers = handlers or Unanswered(lambda operation: self.forward(operation))
        self.server = FuseServer(self._daemon.fileno() if descriptor is None else descriptor, *tables, handlers)
        self._threads = [threading.Thread(target=self.server.run) for _ in range(num_threads)]
        for thread in self._threads:
            thread.start()

    def forward(self, operation: str) -> None:
        """Stands for the Python code that handles forwarded requests."""
        self.forwarded.append(operation)
        self._daemon.send(b"forwarded")

    @property
    def cores(self) -> set[int]:
        """The cores on which the only thread may run."""
        (thread,) = self._threads
        assert thread.native_id is not None
        return os.sched_getaffinity(thread.native_id)

    def ask(self, message: bytes) -> bytes:
        """Sends a request and returns the answer, which is `forwarded` if the request went to Python."""
        self.kernel.send(message)
        return self.kernel.recv(1 << 20)

    def close(self) -> None:
        """Ends the threads."""
        self.kernel.close()
        for thread in self._threads:
            thread.join()
        self._daemon.close()
