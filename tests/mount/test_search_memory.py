"""No request to the daemon of a mount makes it take much memory."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from asked_daemon import Asked, is_answered, peak_of, wait_until_answered
from tree_helpers import pack

from gompfs.cli.application import run
from gompfs.mount.answer_cache import MAX_TEMPORARY_FILES, AnswerCache
from gompfs.mount.not_ready import NotReadyError
from gompfs.mount.virtual_files import VirtualFile
from gompfs.search.messages import Message, send
from gompfs.search.query import SearchQuery
from gompfs.statistics.report import FixedReport

if TYPE_CHECKING:
    from conftest import Mount

MountArchive = Callable[..., "Mount"]
Capture = pytest.CaptureFixture[bytes]

SEARCHES_AT_ONCE = 4
MOST = 1_100
"""In MiB, of all searches together, as docs/threat-model.md says."""
LONG = 2_000_000
ATTACKS = {
    "a long replacement": SearchQuery((b"a",), replace=b"$0" * 100_000),
    "a replacement": SearchQuery((b"a",), replace=b"$0" * 30_000),
    "whole lines in a replacement": SearchQuery((b"a*",), replace=b"$0" * 30_000),
    "replacements as lines": SearchQuery((b"a",), replace=b"$0" * 30_000, only_matching=True),
    "a replacement in columns": SearchQuery((b"a",), replace=b"$0" * 30_000, max_columns=100),
    "matches as lines": SearchQuery((b"a",), only_matching=True, column=True),
    "lines for each match": SearchQuery((b"a",), vimgrep=True, color=True),
    "JSON": SearchQuery((b"a",), json=True),
    "context": SearchQuery((b"zz",), before_context=1 << 40, after_context=1 << 40),
    "context in JSON": SearchQuery((b"zz",), before_context=1 << 40, after_context=1 << 40, json=True),
    "context everywhere": SearchQuery((b"x",), before_context=1 << 40, after_context=1 << 40, invert_match=True),
    "multi-line": SearchQuery((rb"(?s)a.*",), multiline=True, text=True),
    "multi-line matches": SearchQuery((rb"[a\n]",), multiline=True, json=True),
    "multi-line lines": SearchQuery((rb"a\n",), multiline=True, only_matching=True, replace=b"$0" * 30_000),
    "all lines": SearchQuery((b"",), line_number=True),
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small archive of long lines and of many short ones, in small files and in large ones."""
    root = tmp_path_factory.mktemp("memory")
    (root / "tree").mkdir()
    (root / "tree" / "line").write_text("a" * LONG + "\n")
    (root / "tree" / "lines").write_text("a\nb\n" * LONG)
    (root / "tree" / "large").write_text("a" * 20_000_000 + "\nzz\n")
    (root / "tree" / "large-lines").write_text("a\n" * 10_000_000 + "zz\n")
    pack(root / "tree.gomp", root / "tree")
    return root / "tree.gomp"


@pytest.fixture(scope="module")
def served(archive: Path, mount_type: type[Mount]) -> Iterator[Mount]:
    mounted = mount_type(archive, archive.parent / "served")
    yield mounted
    mounted.clean_up()


@pytest.mark.parametrize("attack", ATTACKS)
def test_searches(served: Mount, attack: str) -> None:
    """Four times at once: half of the clients read what they get, the others do not."""
    clients = [Asked(served.path) for _ in range(SEARCHES_AT_ONCE)]
    for client in clients:
        with suppress(OSError):
            client.send(ATTACKS[attack])
    deadline = time.monotonic() + 0.5
    for client in clients[::2]:
        client.connection.settimeout(0.05)
    while time.monotonic() < deadline:
        for client in clients[::2]:
            with suppress(OSError):
                client.connection.recv(1 << 20)
    for client in clients:
        client.connection.close()
    wait_until_answered(served.path)
    assert peak_of(served.process.pid) < MOST


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_long_searches(served: Mount) -> None:
    """Each attack, alone, read to its end or for a minute."""
    for attack, query in ATTACKS.items():
        client = Asked(served.path)
        deadline = time.monotonic() + 60
        with suppress(OSError), client.connection:
            client.send(query)
            while client.connection.recv(1 << 20) and time.monotonic() < deadline:
                pass
        wait_until_answered(served.path)
        assert peak_of(served.process.pid) < MOST, attack


def test_a_replacement_too_long_for_a_line(served: Mount) -> None:
    """It ends the search of the file with an error, and does not fill the memory."""
    # Of the file with the long line alone: after an error the search goes on with the next file.
    answers = Asked(served.path).ask(ATTACKS["a replacement"], number=(served.path / "line").stat().st_ino)
    assert Message.REFUSED not in [kind for kind, _ in answers]
    errors = [content for kind, content in answers if kind in (Message.ERROR, Message.FAILURE)]
    assert errors
    for error in errors:
        assert b"the replacement makes a line too long" in error or b"take too much memory" in error


@pytest.mark.parametrize(
    "content", [b"[" + b"[]," * 6_000_000, b'{"a":' * 4_000_000, b"[" * 1_900_000], ids=["lists", "members", "deep"]
)
def test_requests(archive: Path, mount: MountArchive, content: bytes) -> None:
    """A request is read as a whole only if it is not large."""
    mounted = mount(archive)
    assert is_answered(mounted.path)
    before = peak_of(mounted.process.pid)
    for client in [Asked(mounted.path) for _ in range(SEARCHES_AT_ONCE)]:
        with suppress(OSError):  # it was refused before all of it was sent
            send(client.connection, Message.TOKEN, client.token.encode())
            send(client.connection, Message.REQUEST, content)
            client.connection.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            assert client.answers() in ([], [(Message.REFUSED, b"")])
    assert is_answered(mounted.path)
    assert peak_of(mounted.process.pid) - before < 100


@pytest.mark.usefixtures("no_archive")
def test_many_patterns(capfdbinary: Capture, tmp_path: Path, served: Mount) -> None:
    """10,000 words are given to the daemon."""
    generator = random.Random(2)
    patterns = {"".join(generator.choices("bcdefghijklmnopqrstuvwxyzäé", k=40)) for _ in range(10_000)} | {"zz"}
    (tmp_path / "patterns").write_text("\n".join(sorted(patterns)))
    assert run(["grep", "-F", "-c", "-f", str(tmp_path / "patterns"), str(served.path)]) == 0
    assert sorted(capfdbinary.readouterr().out.splitlines()) == [
        f"{served.path}/{name}:1".encode() for name in ("large-lines", "large")
    ]


def made(num_bytes: int) -> VirtualFile:
    """A virtual file whose content was computed and not read for a long time."""
    file = VirtualFile(lambda: FixedReport(b"x" * num_bytes))
    while file.num_bytes < num_bytes:
        with suppress(NotReadyError):
            file.size()
        time.sleep(0.001)
    file.used_at -= 3600
    return file


def keep(cache: AnswerCache, kept: dict[bytes, VirtualFile], path: bytes, file: VirtualFile) -> None:
    """Uses a file, and closes those that the cache drops."""
    kept[path] = file
    for dropped in cache.use(path, file):
        kept.pop(dropped).close()


@pytest.fixture
def max_bytes(monkeypatch: pytest.MonkeyPatch) -> int:
    """The limit of the bytes that are kept, which is small here."""
    monkeypatch.setattr("gompfs.mount.answer_cache.MAX_BYTES", 4 << 20)
    return 4 << 20


def test_the_bytes_of_answers_are_limited(max_bytes: int) -> None:
    """Not only their number, as was the case."""
    cache, kept = AnswerCache(), dict[bytes, VirtualFile]()
    for number in range(8):
        keep(cache, kept, b"%d" % number, made(max_bytes // 5))
        assert sum(each.num_bytes for each in kept.values()) <= max_bytes
    assert list(kept) == [b"%d" % number for number in range(3, 8)]
    for file in kept.values():
        file.close()


def test_the_descriptors_of_answers_are_limited() -> None:
    cache, kept = AnswerCache(), dict[bytes, VirtualFile]()
    for number in range(60):
        keep(cache, kept, b"%d" % number, made((1 << 20) + 1))
    assert sum(each.has_temporary_file for each in kept.values()) == MAX_TEMPORARY_FILES
    for file in kept.values():
        file.close()


def test_an_answer_that_is_read_is_kept(max_bytes: int) -> None:
    """It is larger than all that is kept for later."""
    cache, large, small = AnswerCache(), made(max_bytes + 1), made(10)
    assert cache.use(b"large", large) == []
    large.read(0, 10)
    assert cache.use(b"small", small) == []
    large.used_at -= 3600
    assert cache.use(b"small", small) == [b"large"]
    large.close()
