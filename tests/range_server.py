"""A web server for one folder that answers range requests and counts them."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote


@dataclass
class RangeServer:
    """Serves `folder` at `url`.

    `ranges` holds the first and last byte of each answer, `bytes_sent` is their total size.
    """

    folder: Path
    serves_ranges: bool = True
    url: str = ""
    ranges: list[tuple[int, int]] = field(default_factory=list)

    @property
    def bytes_sent(self) -> int:
        return sum(last + 1 - first for first, last in self.ranges)


@contextmanager
def serving(folder: Path, *, serves_ranges: bool = True) -> Iterator[RangeServer]:
    """Runs the server during the `with` body."""
    state = RangeServer(folder, serves_ranges)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(with_content=False)

        def do_GET(self) -> None:
            self._answer(with_content=True)

        def _answer(self, *, with_content: bool) -> None:
            path = state.folder / unquote(self.path).lstrip("/")
            if not path.is_file():
                self.send_error(404)
                return
            content = path.read_bytes()
            first, last = 0, len(content) - 1
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if asked and state.serves_ranges:
                first, last = int(asked[1]), min(int(asked[2]), last)
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
            else:
                self.send_response(200)
            self.send_header("Accept-Ranges", "bytes" if state.serves_ranges else "none")
            self.send_header("Content-Length", str(last + 1 - first))
            self.end_headers()
            if with_content:
                state.ranges.append((first, last))
                self.wfile.write(content[first : last + 1])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
