"""A web server for one folder that answers range requests and counts them."""

from __future__ import annotations

import hashlib
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast
from urllib.parse import unquote


@dataclass
class RangeServer:
    """Serves `folder` at `url`.

    `ranges` holds the first and last byte of each answer, `bytes_sent` is their total size. The next `num_failures`
    answers are errors. `queries` holds what follows `?` in requests.
    """

    folder: Path
    serves_ranges: bool = True
    has_etags: bool = True
    num_failures: int = 0
    url: str = ""
    ranges: list[tuple[int, int]] = field(default_factory=list)
    queries: set[str] = field(default_factory=set)

    @property
    def bytes_sent(self) -> int:
        return sum(last + 1 - first for first, last in self.ranges)


class _Server(ThreadingHTTPServer):
    """Remembers its connections, which clients keep open for their next requests."""

    allow_reuse_address = True
    state: RangeServer

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        self.connections.append(cast("socket.socket", request))
        super().process_request(request, client_address)

    def handle_error(self, *_: object) -> None:
        """Ignores clients that were killed."""

    def __init__(self, port: int) -> None:
        self.connections: list[socket.socket] = []
        super().__init__(("127.0.0.1", port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(with_content=False)

    def do_GET(self) -> None:
        self._answer(with_content=True)

    def _answer(self, *, with_content: bool) -> None:
        state = cast("_Server", self.server).state
        name, _, query = self.path.partition("?")
        state.queries.add(query)
        path = state.folder / unquote(name).lstrip("/")
        if state.num_failures or not path.is_file():
            self.send_error(503 if state.num_failures else 404)
            state.num_failures = max(state.num_failures - 1, 0)
            return
        content = path.read_bytes()
        first, last = 0, len(content) - 1
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked and state.serves_ranges:
            first, last = int(asked[1]), min(int(asked[2]), last)
            self.send_response(206 if first <= last else 416)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        else:
            self.send_response(200)
        if state.has_etags:
            self.send_header("ETag", f'"{hashlib.md5(content).hexdigest()}"')
        self.send_header("Accept-Ranges", "bytes" if state.serves_ranges else "none")
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        if with_content:
            state.ranges.append((first, last))
            self.wfile.write(content[first : last + 1])

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(
    folder: Path, *, serves_ranges: bool = True, has_etags: bool = True, port: int = 0
) -> Iterator[RangeServer]:
    """Runs the server during the `with` body."""
    server = _Server(port)
    server.state = state = RangeServer(folder, serves_ranges, has_etags)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        for connection in server.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        server.server_close()
        thread.join()
