"""Searches in the daemon, for `gompfs grep` on paths of the mount: index, words and some blocks are in memory there.

The command connects to a Unix socket without a file (its name is in the kernel's table of abstract names). Name and
token are the content of `stats/search-socket`, a file with the permissions of statistics of all files. So whoever can
open that file in the mount may search, and nobody else: others see the name, but not the token.
"""

from __future__ import annotations

import errno
import json
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import gompfs
from gompfs.archive import Archive
from gompfs.errors import EntryNotFoundError, GompfsError
from gompfs.log import Logger

if TYPE_CHECKING:
    from typing import BinaryIO

    from gompfs._native.search import Cancellation
    from gompfs.search.messages import SearchRequest
    from gompfs.search.search import ArchiveSearch, SearchTotals
    from gompfs.search.search_memory import SearchMemory

log = Logger(__name__)

_SEARCHES_AT_ONCE = 4  # each uses all threads, and has tables of all files
_MAX_CONNECTIONS = 16
_REQUEST_SECONDS = 10.0  # within which a request must have come
_TOTALS_SECONDS = 0.1


class SearchService:
    """Answers searches of one archive. Thread-safe."""

    def __init__(self, archive: Archive, ino_of: Callable[[int], int]) -> None:
        """`ino_of` returns the inode number in the archive of one in the mount. It raises EntryNotFoundError."""
        self._archive = archive
        self._ino_of = ino_of
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(_SEARCHES_AT_ONCE)
        self._token = ""
        self._listener: socket.socket | None = None
        self._connections: set[socket.socket] = set()
        self._threads: set[threading.Thread] = set()
        self._is_closed = False
        self._memory: SearchMemory | None = None

    def address(self) -> bytes:
        """Returns where and how to ask, in lines: the name of the socket, the token, the version of gompfs.

        The first call begins to listen. Raises OSError.
        """
        with self._lock:
            listener = self._listener = self._listener or self._listen()
        name = listener.getsockname()[1:].decode()
        return f"{name}\n{self._token}\n{gompfs.__version__}\n".encode()

    def _listen(self) -> socket.socket:
        import secrets

        from gompfs.search.messages import SOCKET_PREFIX, TOKEN_SIZE

        if self._is_closed:
            raise OSError(errno.ESHUTDOWN, os.strerror(errno.ESHUTDOWN))
        self._token = secrets.token_hex(TOKEN_SIZE // 2)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"\0{SOCKET_PREFIX}{os.getpid()}-{secrets.token_hex(8)}")
        listener.listen(_MAX_CONNECTIONS)
        self._start(self._accept, listener)
        return listener

    def close(self) -> None:
        """Ends all searches."""
        with self._lock:
            self._is_closed = True
            sockets = [*self._connections, *([self._listener] if self._listener is not None else [])]
            threads = list(self._threads)
        for each in sockets:
            with suppress(OSError):  # the other side has gone already
                each.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        self._memory = None

    def _start(self, work: Callable[[socket.socket], None], argument: socket.socket) -> None:
        """Runs `work` in a thread, and closes the socket when it is done. The caller holds the lock."""

        def run() -> None:
            try:
                with argument:
                    work(argument)
            except Exception as error:
                log.error("a search for another process failed: %s", error)
            finally:
                with self._lock:
                    self._connections.discard(argument)
                    self._threads.discard(threading.current_thread())

        thread = threading.Thread(target=run, name="gompfs-search", daemon=True)
        self._threads.add(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection = listener.accept()[0]
            except OSError:
                return  # `close` was called
            with self._lock:
                if self._is_closed or len(self._connections) >= _MAX_CONNECTIONS:
                    connection.close()
                    continue
                self._connections.add(connection)
                self._start(self._answer, connection)

    def _answer(self, connection: socket.socket) -> None:
        import secrets

        from gompfs.search.messages import TOKEN_SIZE, Message, receive, send

        with suppress(OSError, EOFError), connection.makefile("rb") as stream:  # the other side may go at any time
            connection.settimeout(_REQUEST_SECONDS)
            try:
                # The token comes first: the request of a user without it must not take memory.
                is_allowed = secrets.compare_digest(receive(stream, TOKEN_SIZE)[1], self._token.encode())
                is_allowed = is_allowed and self._turns.acquire(blocking=False)
            except ValueError:
                is_allowed = False
            if not is_allowed:
                send(connection, Message.REFUSED)
                return
            try:
                self._answer_request(connection, stream)
            finally:
                self._turns.release()

    def _answer_request(self, connection: socket.socket, stream: BinaryIO) -> None:
        """Raises OSError and EOFError if the other side has gone."""
        from gompfs._native.search import SearchStoppedError
        from gompfs.search.messages import MAX_REQUEST_SIZE, Message, SearchRequest, receive, send

        try:
            request = SearchRequest.decode(receive(stream, MAX_REQUEST_SIZE)[1])
        except ValueError:
            send(connection, Message.REFUSED)
            return
        connection.settimeout(None)
        with _ended_by(connection) as cancellation:
            try:
                self._search(connection, request, cancellation)
            except SearchStoppedError:
                return
            except GompfsError as error:
                send(connection, Message.ERROR, os.fsencode(str(error)))

    def _begin(self, request: SearchRequest, cancellation: Cancellation) -> ArchiveSearch | None:
        """Returns None for an entry that the mount does not show, and for a query that no command makes.

        Raises the errors of ArchiveSearch.
        """
        from gompfs._native.search import SearchStoppedError
        from gompfs.search.search import ArchiveSearch
        from gompfs.search.search_memory import SearchMemory

        try:
            roots = [(path, self._archive.inode(self._ino_of(number)).ino) for path, number in request.roots]
            with self._lock:
                memory = self._memory = self._memory or SearchMemory(self._archive)
            return ArchiveSearch(self._archive, request.query, roots, cancellation=cancellation, memory=memory)
        except EntryNotFoundError:
            return None
        except (GompfsError, SearchStoppedError):
            raise
        except (RuntimeError, TypeError, ValueError):
            return None

    def _search(self, connection: socket.socket, request: SearchRequest, cancellation: Cancellation) -> None:
        """Raises OSError if the other side has gone, and the errors of ArchiveSearch."""
        from gompfs.search.messages import MAX_PIECE_SIZE, Message, send

        search = self._begin(request, cancellation)
        if search is None:
            send(connection, Message.REFUSED)
            return

        def send_totals(totals: SearchTotals) -> None:
            send(connection, Message.TOTALS, json.dumps(totals).encode())

        send_totals(search.totals)
        sent_at = time.monotonic()
        for output in search.steps():
            if output or time.monotonic() - sent_at > _TOTALS_SECONDS:
                send_totals(search.totals)
                sent_at = time.monotonic()
            for begin in range(0, len(output), MAX_PIECE_SIZE):
                send(connection, Message.OUTPUT, output[begin : begin + MAX_PIECE_SIZE])
        for failure in search.failures:
            send(connection, Message.FAILURE, os.fsencode(str(failure)))
        send_totals(search.totals)
        send(connection, Message.END)


@contextmanager
def _ended_by(connection: socket.socket) -> Iterator[Cancellation]:
    """Yields what ends the search as soon as the connection ends, on either side. Then shuts the connection down."""
    from gompfs._native.search import Cancellation

    cancellation = Cancellation()
    end = select.poll()
    end.register(connection, 0)  # the end is always reported

    def wait() -> None:
        end.poll()
        cancellation.cancel()

    thread = threading.Thread(target=wait, name="gompfs-search-end", daemon=True)
    thread.start()
    try:
        yield cancellation
    finally:
        with suppress(OSError):  # the other side has gone already
            connection.shutdown(socket.SHUT_RDWR)
        thread.join()
