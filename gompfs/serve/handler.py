"""Answers the requests of one connection to the web server."""

from __future__ import annotations

import errno
import ipaddress
import mimetypes
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes

from gompfs import __version__
from gompfs.errors import GompfsError, display_path
from gompfs.log import Logger
from gompfs.model import Inode
from gompfs.mount.fuse.errno_map import errno_of, is_expected
from gompfs.serve.conditions import (
    UnsatisfiableRangeError,
    has_version,
    http_date,
    is_unchanged_since,
    matches,
    wanted_range,
)
from gompfs.serve.listing import as_html, as_json, url_of
from gompfs.serve.public_tree import PublicTree, is_statistic

if TYPE_CHECKING:
    from gompfs.serve.server import Server

log = Logger("gompfs")

_PIECE = 256 << 10  # must be taken within `timeout`
_LISTING_MEMORY = 1 << 20  # a longer listing is sent from a temporary file
_SECOND_NS = 1_000_000_000
_METHODS = "GET, HEAD"
# What an archive holds may be a web page. It gets no scripts, and no access to other pages of this server.
_FOR_CONTENT = {"Content-Security-Policy": "sandbox", "X-Content-Type-Options": "nosniff"}
_FOR_LISTING = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'", "Cache-Control": "no-cache"}
_STATUS_OF = {
    **dict.fromkeys((errno.EACCES, errno.EPERM), HTTPStatus.FORBIDDEN),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG), HTTPStatus.NOT_FOUND),
    **dict.fromkeys((errno.EINVAL, errno.ENODATA), HTTPStatus.NOT_FOUND),  # of statistics
    **dict.fromkeys((errno.ENOMEM, errno.EBUSY), HTTPStatus.SERVICE_UNAVAILABLE),
}


class Answer(NamedTuple):
    """An answer to a request. `size` is that of the body. `close` frees what the body is read from."""

    status: HTTPStatus
    headers: dict[str, str]
    size: int
    body: Iterator[bytes] = iter(())
    close: Callable[[], None] = lambda: None


class Handler(BaseHTTPRequestHandler):
    """One connection, which may ask several times."""

    protocol_version = "HTTP/1.1"
    timeout = 30.0  # seconds for a line of a request, and for a piece of an answer
    server: Server

    def handle_one_request(self) -> None:
        """Read a request and answer it."""
        self.server.note_idle(self.connection)
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Read the headers. Returns False if the request cannot be answered."""
        is_whole = super().parse_request()
        self.server.note_busy(self.connection)
        if is_whole and (self.headers["Content-Length"] or self.headers["Transfer-Encoding"]):
            self.close_connection = True  # a body is not read, and would be taken for the next request
        return is_whole

    def do_GET(self) -> None:
        """Answer a request for a file or a listing, for HEAD without its body."""
        answer = self._answer()
        try:
            self._send(answer)
        finally:
            answer.close()

    do_HEAD = do_GET  # noqa: N815

    def _refuse_method(self) -> None:
        self.close_connection = True
        self._send(_refusal(HTTPStatus.METHOD_NOT_ALLOWED, Allow=_METHODS))

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_PROPFIND = _refuse_method  # noqa: N815

    def version_string(self) -> str:
        """Returns the value of the header Server."""
        return f"gompfs/{__version__}"

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status != HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Length", str(answer.size))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        try:
            for piece in answer.body if self.command != "HEAD" else ():
                self.wfile.write(piece)
        except GompfsError as error:
            log.error("%s: %s", display_path(self.path), error)
            self.close_connection = True  # the client sees that bytes are missing

    def _answer(self) -> Answer:
        """Returns the answer. Errors become one that says what is wrong."""
        if self.server.is_local and not _names_this_machine(self.headers["Host"]):
            return _refusal(HTTPStatus.MISDIRECTED_REQUEST)
        path, _, query = self.path.partition("?")
        names = [unquote_to_bytes(name.encode("latin-1")) for name in path.split("/") if name]
        if not path.startswith("/") or any(name in (b".", b"..") or b"/" in name or b"\0" in name for name in names):
            return _refusal(HTTPStatus.NOT_FOUND)
        try:
            return self._answer_for(names, query, is_directory=path.endswith("/"))
        except (GompfsError, OSError, MemoryError) as error:
            if not is_expected(error):
                log.error("%s: %s", display_path(b"/".join(names)), error)
            return _refusal(_STATUS_OF.get(errno_of(error), HTTPStatus.INTERNAL_SERVER_ERROR))

    def _answer_for(self, names: Sequence[bytes], query: str, *, is_directory: bool) -> Answer:
        tree = self.server.tree
        inode = tree.resolve(names)
        if stat.S_ISDIR(inode.mode):
            if not is_directory:
                location = url_of(names) + "/" + "?" * bool(query) + query
                return _refusal(HTTPStatus.MOVED_PERMANENTLY, Location=location)
            return _listing(tree, names, inode, is_json=query == "format=json" or self._prefers_json())
        if is_directory or not stat.S_ISREG(inode.mode):
            return _refusal(HTTPStatus.NOT_FOUND)
        return self._file(tree, names, inode)

    def _prefers_json(self) -> bool:
        accepted = self.headers["Accept"] or ""
        return "application/json" in accepted and "text/html" not in accepted

    def _file(self, tree: PublicTree, names: Sequence[bytes], inode: Inode) -> Answer:
        version = tree.version(inode)
        etag = None if version is None else f'"{version}"'
        seconds = inode.mtime_ns // _SECOND_NS
        modified = None if etag is None else http_date(seconds, time.time())
        fields = {"Accept-Ranges": "bytes", "Cache-Control": "no-cache", "ETag": etag, "Last-Modified": modified}
        validators = {name: value for name, value in fields.items() if value is not None}
        tree.read(inode, 0, 0)  # raises PermissionError
        if self.headers["If-Match"] and not matches(self.headers["If-Match"], etag):
            return _refusal(HTTPStatus.PRECONDITION_FAILED)
        if self._has_it(etag, modified, seconds):
            return Answer(HTTPStatus.NOT_MODIFIED, validators, 0)
        wanted = None
        if self.command == "GET" and has_version(self.headers["If-Range"], etag, modified):
            try:
                wanted = wanted_range(self.headers["Range"], inode.size)
            except UnsatisfiableRangeError:
                return _refusal(
                    HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, **{"Content-Range": f"bytes */{inode.size}"}
                )
        headers = {**validators, **_FOR_CONTENT, "Content-Type": _type_of(tree, names[-1], inode)}
        status = HTTPStatus.OK
        if wanted is not None:
            status = HTTPStatus.PARTIAL_CONTENT
            headers["Content-Range"] = f"bytes {wanted.start}-{wanted.stop - 1}/{inode.size}"
        wanted = wanted or range(inode.size)
        body = _content(tree, inode, wanted) if self.command == "GET" else iter(())
        return Answer(status, headers, len(wanted), chain([next(body, b"")], body))  # an error becomes an answer

    def _has_it(self, etag: str | None, modified: str | None, seconds: int) -> bool:
        """Returns whether the client says that it has this content."""
        if self.headers["If-None-Match"]:
            return matches(self.headers["If-None-Match"], etag)
        return modified is not None and is_unchanged_since(self.headers["If-Modified-Since"], seconds)


def _content(tree: PublicTree, inode: Inode, wanted: range) -> Iterator[bytes]:
    for start in range(wanted.start, wanted.stop, _PIECE):
        yield tree.read(inode, start, min(_PIECE, wanted.stop - start))


def _listing(tree: PublicTree, names: Sequence[bytes], directory: Inode, *, is_json: bool) -> Answer:
    """Returns a listing. It is complete before it is sent: a slow client does not keep all entries in memory."""
    with tree.entries(directory) as entries:
        file = tempfile.SpooledTemporaryFile(_LISTING_MEMORY)  # noqa: SIM115 - closed when it has been sent
        file.writelines((as_json if is_json else as_html)(names, entries))
    size = file.tell()
    file.seek(0)
    kind = "application/json" if is_json else "text/html; charset=utf-8"
    headers = {**_FOR_LISTING, "Content-Type": kind, "Vary": "Accept"}
    return Answer(HTTPStatus.OK, headers, size, iter(partial(file.read, _PIECE), b""), file.close)


def _type_of(tree: PublicTree, name: bytes, inode: Inode) -> str:
    """Returns the media type that the name and the content of a file suggest."""
    kind, encoding = (None, None) if is_statistic(inode) else mimetypes.guess_type(display_path(name))
    if kind == "text/plain" or kind is None:
        kind = "text/plain; charset=utf-8" if tree.is_text(inode) else kind
    return "application/octet-stream" if kind is None or encoding is not None else kind


def _names_this_machine(host: str | None) -> bool:
    """Returns whether the header Host has an address, or the name localhost.

    A web page of another host, whose name leads to this machine (DNS rebinding), is refused.
    """
    name = (host or "localhost").strip().rpartition("]")[0].lstrip("[") or (host or "localhost").partition(":")[0]
    if name.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _refusal(status: HTTPStatus, **headers: str) -> Answer:
    text = f"{status.value} {status.phrase}\n".encode()
    fields = {"Content-Type": "text/plain; charset=utf-8", **headers}
    return Answer(status, fields, len(text), iter([text]))
