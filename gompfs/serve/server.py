"""The web server: one thread for each connection, and so many at most."""

from __future__ import annotations

import ipaddress
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from gompfs.log import Logger
from gompfs.mount.tree.opening import open_content
from gompfs.options import MountOptions
from gompfs.serve.handler import Handler
from gompfs.serve.public_tree import PublicTree

log = Logger("gompfs")

MAX_CONNECTIONS = 64


class Server(ThreadingHTTPServer):
    """Serves a tree. If all connections are taken, one that waits for its next request is closed for a new one."""

    daemon_threads = True
    request_queue_size = MAX_CONNECTIONS

    def __init__(self, host: str, port: int, tree: PublicTree) -> None:
        """Listen at an address. Port 0 means any free port. Raises OSError."""
        self.tree = tree
        self._changed = threading.Condition()
        self._idle_since: dict[socket.socket, float | None] = {}  # of all connections; None while one is answered
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family, *_, address = found[0]
        super().__init__(address[:2], Handler)  # type: ignore[arg-type]
        self.is_local = ipaddress.ip_address(str(self.server_address[0])).is_loopback

    def server_bind(self) -> None:
        """Bind without asking for the name of the address, which may take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    @property
    def url(self) -> str:
        """Where the root of the tree is."""
        host, port = self.server_address[:2]
        return f"http://[{host!s}]:{port}/" if self.address_family == socket.AF_INET6 else f"http://{host!s}:{port}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection on a thread of its own, as soon as it may have one."""
        with self._changed:
            while len(self._idle_since) >= MAX_CONNECTIONS:
                self._drop_idle()
                self._changed.wait(1)
            self._idle_since[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        super().shutdown_request(request)
        with self._changed:
            self._idle_since.pop(request, None)
            self._changed.notify()

    def note_idle(self, connection: socket.socket) -> None:
        """Note that a connection waits for a request."""
        with self._changed:
            self._idle_since[connection] = time.monotonic()
            self._changed.notify()

    def note_busy(self, connection: socket.socket) -> None:
        """Note that a connection has sent a request."""
        with self._changed:
            self._idle_since[connection] = None

    def _drop_idle(self) -> None:
        """End the connection that has waited for a request for the longest time."""
        idle = {since: connection for connection, since in self._idle_since.items() if since is not None}
        if idle:
            try:
                idle[min(idle)].shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the client has closed it

    def handle_error(self, *_: object) -> None:
        """Log an error that ended a connection, unless the client did."""
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError):
            log.error("a connection ended: %s: %s", type(error).__name__, error, cause=error)


@contextmanager
def serving(archives: Sequence[str], host: str, port: int, *, serves_all: bool) -> Iterator[Server]:
    """Returns a server of archives: one in the root, several in a directory each.

    Raises GompfsError for an archive that cannot be read, OSError if the address cannot be used.
    """
    options = MountOptions(
        api="none", stats="visible", stats_public=serves_all, several="subdirs" if len(archives) > 1 else None
    )
    with open_content(archives, options) as content:
        tree = PublicTree(content, num_archives=len(archives), serves_all=serves_all)
        with Server(host, port, tree) as server:
            yield server
