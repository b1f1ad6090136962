"""An archive at a URL, read in ranges that are cached on disk.

Everything is fetched in whole chunks. A read takes the chunks that the cache has, and waits for the others. The event
loop of fsspec fetches these: a chunk that is under way is not requested again, and chunks next to each other are
requested together, in pieces of a size that suits the connection. Readers that go through the file in order find what
comes next under way already; so does a caller that has announced what it will read.

Members from `_flying` on are changed by the event loop alone.
"""

from __future__ import annotations

import asyncio
import errno
import random
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from gompfs.errors import GompfsError, pip_install
from gompfs.forks import call_in_child
from gompfs.format import ArchiveFile, LocalFile
from gompfs.remote.chunk_cache import CHUNK_SIZE, ChunkCache
from gompfs.remote.link_speed import LinkSpeed
from gompfs.remote.urls import shown_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fsspec import AbstractFileSystem

    from gompfs.remote.sources import Opened, Source

_Result = TypeVar("_Result")
_Answer = TypeVar("_Answer", bytes, "Opened")

_WAITS = (0.2, 0.5, 1.0, 2.0)  # seconds between attempts
_MAX_SECONDS = 60  # for all attempts of one request
_SECONDS_WITHOUT_HOPE = 10  # once all attempts of a request have failed, others are attempted once
_MAX_REQUESTS = 32  # at the same time, and as many ahead of readers
_BEGINNING = 4 << 10  # bytes
_LEAST_ANNOUNCED = 32 << 20  # bytes that are requested at once, if they will be read surely
_MAX_STREAMS = 8  # places in the file from which reads go on
_FIRST_AHEAD = 4  # chunks
_LATE = 2  # chunks that are read again by what goes on after them


def open_url(url: str, options: Mapping[str, Any]) -> ArchiveFile:
    """Opens the archive at a URL. `options` are those of its store in fsspec.

    Raises GompfsError if fsspec cannot open such URLs, and OSError.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        reason = f"archives at URLs need fsspec: {pip_install('remote')}"
        raise GompfsError(reason, archive=shown_url(url)) from None
    try:
        store, path = url_to_fs(url, **options)
    except (ImportError, ValueError) as error:  # a package for this kind of store is missing, or there is none
        raise GompfsError(shown_url(str(error)), archive=shown_url(url)) from None
    return open_in(store, path, url)


def open_in(store: AbstractFileSystem, path: str, url: str | None = None) -> ArchiveFile:
    """Opens the archive at `path` of `store`, which `url` names: as a local file if the store is that of local files.

    Raises OSError.
    """
    from fsspec.implementations.http import HTTPFileSystem
    from fsspec.implementations.local import LocalFileSystem

    from gompfs.remote.sources import HttpSource, StoreSource

    if isinstance(store, LocalFileSystem):
        return LocalFile.open(path)
    is_http = isinstance(store, HTTPFileSystem)
    return RemoteFile(HttpSource(store, path) if is_http else StoreSource(store, path), shown_url(url or path))


class RemoteFile:
    """A remote archive. Implements ArchiveFile."""

    def __init__(self, source: Source, name: str) -> None:
        """Open the file, which messages call `name`. Raises OSError."""
        from fsspec.asyn import get_loop

        self._source = source
        self._name = name
        self._get_loop = get_loop
        self._lock = threading.Lock()
        self._streams: list[_Stream] = []
        self._known: set[int] = set()  # chunks of which somebody has said that no others near them will be read
        self._is_inherited = False
        self._flying: dict[int, asyncio.Task[bytes]] = {}
        self._speed = LinkSpeed()
        self._fails_until = 0.0
        self._make_slots()
        opened = self._run(self._attempt(lambda: source.open(_BEGINNING), self._slots))
        self._size = opened.size
        self._beginning = opened.beginning
        self._cache = ChunkCache(opened.key, opened.size)
        call_in_child(self, RemoteFile._inherit)

    def _inherit(self) -> None:
        """Called in a child of a fork, which has no event loop, and where other connections are needed."""
        self._is_inherited = True
        self._lock = threading.Lock()

    def _make_slots(self) -> None:
        self._slots = asyncio.Semaphore(_MAX_REQUESTS)
        self._slots_ahead = asyncio.Semaphore(_MAX_REQUESTS)

    def size(self) -> int:
        """See ArchiveFile.size."""
        return self._size

    def read(self, size: int, archive_offset: int) -> bytes:
        """See ArchiveFile.read."""
        end = min(archive_offset + size, self._size)
        if end <= len(self._beginning):
            return self._beginning[archive_offset:end]
        if archive_offset >= end:
            return b""
        first, last = archive_offset // CHUNK_SIZE, (end - 1) // CHUNK_SIZE
        chunks = self._cache.load(first, last + 1)
        missing = [number for number, chunk in enumerate(chunks, first) if chunk is None]
        ahead = self._ahead(first, last, may_begin=not self._known.issuperset(missing))
        if missing or ahead:
            fetched = self._wait_for(missing, ahead)
            found = [chunk if chunk is not None else fetched[number] for number, chunk in enumerate(chunks, first)]
        else:
            found = [chunk for chunk in chunks if chunk is not None]
        content = found[0] if len(found) == 1 else b"".join(found)
        begin = archive_offset - first * CHUNK_SIZE
        return content[begin : begin + end - archive_offset]

    def _wait_for(self, missing: Sequence[int], ahead: Sequence[int]) -> dict[int, bytes]:
        try:
            return self._run(self._obtain(missing, ahead))
        except OSError as error:
            error.errno = errno.EIO  # programs that read a mount do not expect that a connection was refused
            raise

    def read_into(self, buffer: memoryview, archive_offset: int) -> int:
        """See ArchiveFile.read_into."""
        content = self.read(len(buffer), archive_offset)
        size = len(content)
        buffer[:size] = content
        return size

    def announce(self, ranges: Iterable[tuple[int, int]], *, are_all: bool = True) -> None:
        """See ArchiveFile.announce."""
        chunks: list[int] = []
        room = max(self._speed.window, _LEAST_ANNOUNCED) // CHUNK_SIZE
        for first, end in self._merged(ranges):
            reach = min(end, first + room)
            chunks += self._cache.missing(first, reach)
            room -= reach - first
            if reach < end:
                with self._lock:
                    self._add_stream(_Stream(first, reach))
                break
        if are_all:
            self._known.update(chunks)
        if chunks:
            self._run(self._obtain([], chunks))

    def close(self) -> None:
        """See ArchiveFile.close; the store belongs to fsspec."""
        if not self._is_inherited:
            self._run(self._stop())
        self._cache.close()

    def _run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Returns the result of a coroutine. Raises OSError."""
        with self._lock:
            if self._is_inherited:
                self._is_inherited = False
                self._flying = {}
                self._make_slots()
                self._source.renew()
        try:
            return asyncio.run_coroutine_threadsafe(work, self._get_loop()).result()
        except CancelledError:
            raise OSError(errno.EIO, "the archive was closed", self._name) from None
        except OSError as error:
            raise OSError(error.errno or errno.EIO, error.strerror or str(error), self._name) from None

    def _ahead(self, first: int, last: int, *, may_begin: bool) -> Sequence[int]:
        """Returns the chunks to fetch beyond those of a read.

        There are some if it goes on where one before ended. `may_begin` says whether the next one may go on here.
        """
        with self._lock:
            most = self._speed.window // CHUNK_SIZE
            near = [each for each in self._streams if each.next - _LATE <= first <= each.reach]
            stream = min(near, key=lambda each: abs(each.next - first), default=None)
            if stream is None:
                if may_begin:
                    self._add_stream(_Stream(last + 1))
                return ()
            begin, end = stream.advance(last + 1, most, -(-self._size // CHUNK_SIZE))
        return self._cache.missing(begin, end) if begin < end else ()

    def _merged(self, ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Returns the chunks of ranges: the first, and the end. Ranges next to each other become one."""
        merged: list[tuple[int, int]] = []
        for archive_offset, size in ranges:
            first, end = archive_offset // CHUNK_SIZE, -(-min(archive_offset + size, self._size) // CHUNK_SIZE)
            if merged and merged[-1][0] <= first <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            elif first < end:
                merged.append((first, end))
        return merged

    def _add_stream(self, stream: _Stream) -> None:
        self._streams = [*self._streams[1 - _MAX_STREAMS :], stream]

    # In the event loop

    async def _obtain(self, wanted: Sequence[int], ahead: Sequence[int]) -> dict[int, bytes]:
        """Returns the wanted chunks. Has them and the others fetched, as far as they are not under way.

        Some may have come since the caller looked.
        """
        found = {number: chunk for number in wanted if (chunk := self._arrived(number)) is not None}
        self._start([number for number in wanted if number not in found], self._slots)
        tasks = {number: self._flying[number] for number in wanted if number not in found}
        self._start([number for number in ahead if self._cache.missing(number, number + 1)], self._slots_ahead)
        await asyncio.gather(*dict.fromkeys(tasks.values()))
        return found | {number: _chunk_of(task, number) for number, task in tasks.items()}

    def _arrived(self, number: int) -> bytes | None:
        return None if number in self._flying else self._cache.load(number, number + 1)[0]

    def _start(self, chunks: Sequence[int], slots: asyncio.Semaphore) -> None:
        new = [number for number in dict.fromkeys(chunks) if number not in self._flying]
        for run in _runs(new, self._speed.request_size(len(new) * CHUNK_SIZE) // CHUNK_SIZE):
            task = asyncio.get_running_loop().create_task(self._fetch(run, slots), name=str(run.start))
            task.add_done_callback(_look_at_error)  # nobody may wait for it
            self._flying |= dict.fromkeys(run, task)

    async def _fetch(self, run: range, slots: asyncio.Semaphore) -> bytes:
        """Returns chunks that lie next to each other, after they were written to the cache."""
        start, end = run.start * CHUNK_SIZE, min(run.stop * CHUNK_SIZE, self._size)
        try:
            content: bytes = await self._attempt(lambda: self._source.read(start, end), slots)
            view = memoryview(content)
            for number in run:
                begin = (number - run.start) * CHUNK_SIZE
                self._cache.store(number, view[begin : begin + CHUNK_SIZE])
            return content
        finally:
            for number in run:
                del self._flying[number]

    async def _attempt(self, request: Callable[[], Coroutine[Any, Any, _Answer]], slots: asyncio.Semaphore) -> _Answer:
        """Returns the result of a request, which is repeated if it fails. Raises OSError."""
        from gompfs.remote.sources import RefusedError, as_os_error

        deadline = monotonic() + _MAX_SECONDS
        for wait in (*(() if monotonic() < self._fails_until else _WAITS), None):
            async with slots:
                began, received = self._speed.begin(), 0
                try:
                    async with asyncio.timeout(deadline - monotonic()):
                        result = await request()
                    received = len(result)
                    self._fails_until = 0
                    return result
                except RefusedError:
                    raise
                except Exception as error:
                    failure = as_os_error(error)
                finally:
                    self._speed.end(began, received)
            is_final = failure.errno in (errno.ENOENT, errno.EACCES)
            if is_final or wait is None or monotonic() + wait > deadline:
                self._fails_until = monotonic() + _SECONDS_WITHOUT_HOPE
                raise failure
            self._source.renew()
            await asyncio.sleep(wait * random.uniform(0.5, 1.5))
        raise AssertionError("unreachable")

    async def _stop(self) -> None:
        tasks = set(self._flying.values())
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


class _Stream:
    """A reader that goes through the file in order. It may be several threads, which are not in order exactly."""

    def __init__(self, next_chunk: int, reach: int | None = None) -> None:
        """`next_chunk` will be read next. If it was announced, the chunks before `reach` are requested already."""
        self.next = next_chunk
        self.reach = next_chunk if reach is None else reach
        self._least = 0 if reach is None else _LEAST_ANNOUNCED // CHUNK_SIZE
        self._ahead = self._least or _FIRST_AHEAD // 2

    def advance(self, next_chunk: int, most: int, end: int) -> tuple[int, int]:
        """Note that the chunks before `next_chunk` were read. Returns the chunks to request now.

        Each time that half of what was requested is read, twice as much is requested, up to `most` chunks.
        """
        self.next = max(self.next, next_chunk)
        if self.reach - self.next > self._ahead // 2:
            return 0, 0
        self._ahead = max(min(2 * self._ahead, most), self._least)
        begin = max(self.reach, self.next)
        self.reach = max(begin, min(self.next + self._ahead, end))
        return begin, self.reach


def _runs(chunks: Sequence[int], most: int) -> Iterator[range]:
    """Yields the runs of numbers that follow each other, in pieces of at most `most`."""
    begin = 0
    for index in range(1, len(chunks) + 1):
        if index == len(chunks) or chunks[index] != chunks[index - 1] + 1 or index - begin >= most:
            yield range(chunks[begin], chunks[index - 1] + 1)
            begin = index


def _chunk_of(task: asyncio.Task[bytes], number: int) -> bytes:
    begin = (number - int(task.get_name())) * CHUNK_SIZE
    return task.result()[begin : begin + CHUNK_SIZE]


def _look_at_error(task: asyncio.Task[bytes]) -> None:
    if not task.cancelled():
        task.exception()
