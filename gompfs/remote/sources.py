"""Fetch ranges of one remote file, and notice when it was replaced.

Web servers have their own class: fsspec gives the bytes of a range without the headers, so a replaced file could only
be noticed by another request, and it reads whatever a server sends, of any size, into memory. All other stores are
asked through fsspec.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from fsspec import AbstractFileSystem

from gompfs.remote.urls import shown_url

_Result = TypeVar("_Result")

_CONNECT_SECONDS, _STALL_SECONDS = 10, 20
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
_REASONS = {401: errno.EACCES, 403: errno.EACCES, 404: errno.ENOENT, 410: errno.ENOENT}
_VALIDATORS = ("ETag", "etag", "LastModified", "last_modified", "mtime", "updated", "generation", "md5Hash", "created")
_NOT_IN_KEYS = re.compile(r"pass|secret|token|key|auth|cred|header", re.IGNORECASE)
_THREADS = 4  # and connections, for stores without asyncio


class RefusedError(OSError):
    """An answer that another attempt would not change."""


class Opened(NamedTuple):
    """A remote file: its size, its first bytes, and a key that names this state of it.

    `key` is None if the store does not say what changes when the file is replaced.
    """

    size: int
    beginning: bytes
    key: str | None


class Source(Protocol):
    """A remote file. The methods run in the event loop of fsspec, and raise OSError or errors of the store."""

    async def open(self, size: int) -> Opened:
        """Returns the state of the file, which all later answers must match, and up to `size` bytes of it."""

    async def read(self, start: int, end: int) -> bytes:
        """Returns the bytes of a range inside the file. Raises RefusedError if the file was replaced."""

    def renew(self) -> None:
        """Connect again before the next request: the last one failed, or this process was forked."""


def replaced() -> RefusedError:
    """Returns the error for a file that is no longer the one that was opened."""
    return RefusedError(errno.EIO, "the archive was replaced on the server since it was opened")


class HttpSource:
    """A file on a web server."""

    def __init__(self, store: AbstractFileSystem, url: str) -> None:
        self._store = store
        self._url = url
        self._process = os.getpid()
        self._size = -1
        self._state: tuple[str | None, str | None] = (None, None)

    async def open(self, size: int) -> Opened:
        """See Source.open. Sends one request."""
        self._size = -1
        content = await self.read(0, size)
        etag, modified = self._state
        url = self._url if etag is None else self._url.partition("?")[0]  # a signature, say, differs each time
        key = None if etag is None and modified is None else json.dumps([url, etag, modified, self._size])
        return Opened(self._size, content, key)

    async def read(self, start: int, end: int) -> bytes:
        """See Source.read."""
        import aiohttp

        options = dict(self._store.kwargs)
        headers = {**options.pop("headers", {}), "Range": f"bytes={start}-{end - 1}", "Accept-Encoding": "identity"}
        options["timeout"] = aiohttp.ClientTimeout(None, sock_connect=_CONNECT_SECONDS, sock_read=_STALL_SECONDS)
        session = await self._store.set_session()
        async with session.get(self._store.encode_url(self._url), headers=headers, **options) as answer:
            if answer.status == 416 and self._size < 0:
                return self._empty()
            self._check_status(answer.status, answer.reason)
            end = self._check_range(answer.headers, start, end)
            content: bytes = await answer.content.readexactly(end - start)
            return content

    def renew(self) -> None:
        """See Source.renew. In the same process, a connection that failed is not used again anyway."""
        if os.getpid() != self._process:
            self._process, self._store = os.getpid(), _same_store(self._store)

    def _empty(self) -> bytes:
        """Called for a file that does not have a first byte."""
        self._size = 0
        return b""

    def _check_status(self, status: int, reason: str | None) -> None:
        if status == 200:
            raise RefusedError(
                errno.EIO, "the server ignores ranges, so it would send the whole archive for each read; copy it"
            )
        if status in (412, 416):
            raise replaced()
        if status != 206:
            error = OSError if status in _RETRIED else RefusedError
            raise error(_REASONS.get(status, errno.EIO), f"the server answers {status} {reason or ''}".rstrip())

    def _check_range(self, headers: Mapping[str, str], start: int, end: int) -> int:
        """Returns the end of the range, after a check that it is one of the file that was opened."""
        sent = re.fullmatch(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})", headers.get("Content-Range", "").strip())
        if sent is None or headers.get("Content-Encoding", "identity") != "identity":
            raise RefusedError(errno.EIO, "the server does not say which bytes of how many it sends")
        first, last, size = map(int, sent.groups())
        state = (headers.get("ETag"), headers.get("Last-Modified"))
        if self._size < 0:
            self._size, self._state = size, state
        elif (size, state) != (self._size, self._state):
            raise replaced()
        end = min(end, size)
        if (first, last) != (start, end - 1):
            reason = f"the server sends the bytes {first} to {last} instead of {start} to {end - 1}"
            raise RefusedError(errno.EIO, reason)
        return end


class StoreSource:
    """A file on any other store. After each range, the store is asked whether the file is still the same."""

    def __init__(self, store: AbstractFileSystem, path: str) -> None:
        self._store = store
        self._path = path
        self._size = 0
        self._state: dict[str, str] = {}
        self._disconnect()

    def _disconnect(self) -> None:
        self._slots = asyncio.Semaphore(_THREADS)
        self._idle: list[AbstractFileSystem] = []  # connections, each for one thread at a time

    async def open(self, size: int) -> Opened:
        """See Source.open. Sends three requests."""
        self._size, self._state = await self._ask()
        content = await self.read(0, min(size, self._size)) if self._size else b""
        store = self._store
        options = {name: repr(value) for name, value in store.storage_options.items() if not _NOT_IN_KEYS.search(name)}
        key = [store.protocol, self._path, sorted(options.items()), sorted(self._state.items()), self._size]
        return Opened(self._size, content, json.dumps(key) if self._state else None)

    async def read(self, start: int, end: int) -> bytes:
        """See Source.read."""
        content: bytes = await self._call("cat_file", start=start, end=end)
        if await self._ask() != (self._size, self._state):
            raise replaced()
        if len(content) != end - start:
            raise RefusedError(errno.EIO, f"the store returns {len(content)} bytes instead of {end - start}")
        return content

    def renew(self) -> None:
        """See Source.renew."""
        self._store = _same_store(self._store)
        self._disconnect()

    async def _ask(self) -> tuple[int, dict[str, str]]:
        info = await self._call("info")
        if info["size"] is None:
            raise RefusedError(errno.ESPIPE, "the store does not report the size of the archive")
        return int(info["size"]), {name: str(info[name]) for name in _VALIDATORS if info.get(name) is not None}

    async def _call(self, method: str, **options: Any) -> Any:
        if self._store.async_impl:
            self._store.invalidate_cache()
            return await getattr(self._store, f"_{method}")(self._path, **options)
        async with self._slots:
            connected = self._idle.pop() if self._idle else None
            work = partial(_ask_store, connected, self._store, method, self._path, options)
            connected, result = await _in_thread(work)
            self._idle.append(connected)
            return result


def _same_store(store: AbstractFileSystem) -> AbstractFileSystem:
    """Returns the same store with connections of its own."""
    return type(store)(*store.storage_args, **{**store.storage_options, "skip_instance_cache": True})


def _ask_store(
    connected: AbstractFileSystem | None, like: AbstractFileSystem, method: str, path: str, options: dict[str, Any]
) -> tuple[AbstractFileSystem, Any]:
    """Returns the connection that was used, a new one if there was none, and the result."""
    store = connected or _same_store(like)
    store.invalidate_cache()
    return store, getattr(store, method)(path, **options)


async def _in_thread(work: Callable[[], _Result]) -> _Result:
    """Returns what `work` returns, from a thread that nobody waits for at exit: a server may never answer."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[_Result] = loop.create_future()

    def run() -> None:
        try:
            value = work()
        except Exception as error:
            loop.call_soon_threadsafe(finish_with, result.set_exception, error)
        else:
            loop.call_soon_threadsafe(finish_with, result.set_result, value)

    def finish_with(finish: Callable[[Any], None], value: object) -> None:
        if not result.done():  # else it took too long
            finish(value)

    threading.Thread(target=run, name="gompfs-remote", daemon=True).start()
    return await result


def as_os_error(error: BaseException) -> OSError:
    """Returns an error of a store as OSError, whose message has no secrets."""
    if isinstance(error, OSError) and error.strerror and not isinstance(error, FileNotFoundError | PermissionError):
        return OSError(error.errno or errno.EIO, shown_url(error.strerror))
    kinds = ((FileNotFoundError, errno.ENOENT), (PermissionError, errno.EACCES))
    number = next((number for kind, number in kinds if isinstance(error, kind)), errno.EIO)
    if isinstance(error, TimeoutError):
        reason = "the server does not answer in time"
    elif number == errno.ENOENT:
        reason = "there is no such file on the server"
    else:
        reason = " ".join(f"{type(error).__name__}: {shown_url(str(error))}".split())
    return OSError(number, reason)
