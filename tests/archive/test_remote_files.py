"""What is kept of remote files, and servers that answer in wrong ways."""

from __future__ import annotations

import errno
import os
import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gompfs.archive import Archive
from gompfs.errors import ArchiveFormatError
from gompfs.remote import open_file, remote_file
from gompfs.remote.chunk_cache import CHUNK_SIZE, ChunkCache, cache_folder

CONTENT = random.Random(1).randbytes(3 * CHUNK_SIZE + 1000)
CHUNKS = [CONTENT[begin : begin + CHUNK_SIZE] for begin in range(0, len(CONTENT), CHUNK_SIZE)]


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(remote_file, "_WAITS", (0.01, 0.01))


@pytest.fixture
def cache() -> Iterator[ChunkCache]:
    cache = ChunkCache("key", len(CONTENT))
    yield cache
    cache.close()


def cached_file() -> Path:
    (path,) = Path(cache_folder()).iterdir()
    return path


def test_chunks_are_right_or_missing(cache: ChunkCache) -> None:
    """Whatever happened to the file: here, each of its pages in turn is lost, or the file is cut."""
    for number, chunk in enumerate(CHUNKS):
        cache.store(number, chunk)
    assert cache.load(0, 4) == CHUNKS
    assert cache.missing(0, 4) == []
    path = cached_file()
    stored = path.read_bytes()
    for begin in range(0, len(stored), 4096):
        path.write_bytes(stored[:begin] + bytes(4096) + stored[begin + 4096 :])
        assert all(found in (chunk, None) for found, chunk in zip(cache.load(0, 4), CHUNKS, strict=True))
        assert cache.load(0, 4) != CHUNKS
        os.truncate(path, begin)
        assert all(found in (chunk, None) for found, chunk in zip(cache.load(0, 4), CHUNKS, strict=True))
    os.truncate(path, 0)
    cache.store(2, CHUNKS[2])
    assert cache.load(1, 4) == [None, CHUNKS[2], None]


def test_another_process_sees_the_chunks(cache: ChunkCache) -> None:
    cache.store(3, CHUNKS[3])
    other, unlike, alone = ChunkCache("key", len(CONTENT)), ChunkCache("other", len(CONTENT)), ChunkCache(None, 100)
    assert other.load(2, 4) == [None, CHUNKS[3]]
    assert unlike.load(3, 4) == [None]
    assert len(list(Path(cache_folder()).iterdir())) == 2
    for each in (other, unlike, alone):
        each.close()


def test_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of others that were opened earlier are emptied first, and removed if nobody has them open."""
    monkeypatch.setenv("GOMPFS_CACHE_SIZE", "1M")
    noise = random.Random(2).randbytes(CHUNK_SIZE)
    caches = [ChunkCache(f"{number}", 1 << 24) for number in range(3)]
    caches[0].close()
    for cache in caches[1:]:
        for number in range(12):
            cache.store(number, noise)
    total = sum(path.stat().st_blocks * 512 for path in Path(cache_folder()).iterdir())
    assert total <= 1 << 20
    assert len(list(Path(cache_folder()).iterdir())) == 2
    assert caches[2].load(11, 12) == [noise]
    assert caches[1].load(0, 12) == [None] * 12
    for number in range(40):  # more than the limit in one file
        caches[2].store(number, noise)
        assert sum(path.stat().st_blocks * 512 for path in Path(cache_folder()).iterdir()) <= (1 << 20) + (1 << 18)
    for cache in caches[1:]:
        cache.close()


@pytest.mark.parametrize("folder", ["link", "shared", "missing"])
def test_folders_that_are_not_used(tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There, chunks are kept as long as the file is open."""
    place = Path(cache_folder())
    if folder == "link":
        with ChunkCacheOf("key") as cache:
            pass
        name = cached_file()
        name.unlink()
        (tmp_path / "target").write_bytes(b"of somebody else")
        name.symlink_to(tmp_path / "target")
    elif folder == "shared":
        place.mkdir(parents=True)
        place.chmod(0o777)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nothing")
    with ChunkCacheOf("key") as cache:
        cache.store(1, CHUNKS[1])
        assert cache.load(0, 2) == [None, CHUNKS[1]]
    if folder == "link":
        assert (tmp_path / "target").read_bytes() == b"of somebody else"
    with ChunkCacheOf("key") as cache:
        assert cache.load(0, 2) == [None, None]


@contextmanager
def ChunkCacheOf(key: str) -> Iterator[ChunkCache]:  # noqa: N802
    cache = ChunkCache(key, len(CONTENT))
    yield cache
    cache.close()


Answer = Callable[[int, int], bytes]


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """A server that gives what `answer` returns for a range, and closes the connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                request = b""
                while b"\r\n\r\n" not in request:
                    request += connection.recv(4096)
                asked = request.lower().partition(b"range: bytes=")[2].partition(b"\r\n")[0].partition(b"-")
                try:
                    connection.sendall(answer(int(asked[0]), int(asked[2])))
                except OSError:
                    pass  # the client has seen enough

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/x"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def sound(first: int, last: int, **others: object) -> bytes:
    """Returns a right answer, but for other headers."""
    last = min(last, len(CONTENT) - 1)
    headers = {
        "Content-Range": f"bytes {first}-{last}/{len(CONTENT)}",
        "Content-Length": last + 1 - first,
        "ETag": '"1"',
    }
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in (headers | others).items() if value is not None]
    return (
        "\r\n".join(["HTTP/1.1 206 Partial", *lines, "Connection: close", "", ""]).encode() + CONTENT[first : last + 1]
    )


WRONG: list[tuple[Answer, str]] = [
    (lambda first, last: sound(first, last, **{"Content-Range": None}), "does not say which bytes"),
    (
        lambda first, last: sound(first, last, **{"Content-Range": f"bytes {first}-{last}/*"}),
        "does not say which bytes",
    ),
    (lambda first, last: sound(first, last, **{"Content-Encoding": "gzip"}), "gzip|does not say"),
    (lambda first, last: sound(first, last, **{"Content-Range": f"bytes 1-{last + 1}/{len(CONTENT)}"}), "instead of"),
    (lambda first, last: sound(first, last)[:-1000], "IncompleteRead|closed|payload"),
    (
        lambda first, last: sound(first, last, **{"Content-Range": f"bytes {first}-{last}/{2**62}"}),
        "not a gompfs archive",
    ),
    (lambda _first, _last: b"SSH-2.0-OpenSSH_9.2\r\n", "BadStatusLine|Invalid|closed|Expected"),
    (lambda _first, _last: b"", "disconnected|closed"),
    (lambda _first, _last: b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", "."),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_servers_that_answer_wrongly(number: int) -> None:
    answer, reason = WRONG[number]
    with answering(answer) as url:
        with pytest.raises((OSError, ArchiveFormatError), match=reason) as caught:
            Archive(url)
        assert url in str(caught.value) or url == getattr(caught.value, "filename", None)


@pytest.mark.parametrize("header", [{"ETag": '"2"'}, {"ETag": None}, {"Last-Modified": "now"}, {"Content-Range": True}])
def test_files_that_change(header: dict[str, object]) -> None:
    """Nothing of the new file is read, and what was read of the old one stays."""
    changed = {}
    with answering(
        lambda first, last: sound(first, last, **{k: new(v, first, last) for k, v in changed.items()})
    ) as url:
        file = open_file(url)
        assert file.read(100, 70_000) == CONTENT[70_000:70_100]
        changed |= header
        with pytest.raises(OSError, match="was replaced") as caught:
            file.read(100, 2 * CHUNK_SIZE)
        assert caught.value.errno == errno.EIO
        assert file.read(100, 70_000) == CONTENT[70_000:70_100]
        file.close()


def new(value: object, first: int, last: int) -> object:
    return f"bytes {first}-{last}/{len(CONTENT) + 1}" if value is True else value


def test_a_server_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_file, "_MAX_SECONDS", 0.1)
    silent = threading.Event()

    def answer(first: int, last: int) -> bytes:
        silent.wait(60)
        return sound(first, last)

    with answering(answer) as url:
        with pytest.raises(OSError, match="does not answer in time"):
            open_file(url)
        silent.set()


def test_ranges_that_overlap_are_fetched_once() -> None:
    """A chunk that was announced twice was fetched twice, and the end of the second request raised KeyError."""
    with answering(sound) as url:
        file = open_file(url)
        file.announce([(2 * CHUNK_SIZE, CHUNK_SIZE), (0, len(CONTENT)), (CHUNK_SIZE, CHUNK_SIZE)])
        assert file.read(len(CONTENT), 0) == CONTENT
        file.close()


def test_a_longer_answer_is_not_read() -> None:
    """The client closes the connection after what it wanted."""
    with answering(lambda first, last: sound(first, last, **{"Content-Length": 1 << 40}) + bytes(1 << 20)) as url:
        file = open_file(url)
        assert file.read(100, 5000) == CONTENT[5000:5100]
        file.close()
