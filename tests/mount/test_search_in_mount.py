"""`gompfs grep` on paths of a mount: the daemon searches, with the output of ripgrep on the same paths."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest
from asked_daemon import Asked, is_answered, output_as_nobody
from random_searches import make_random_tree, random_search
from ripgrep import is_comparable, ripgrep
from searched_tree import PATTERNS, make_tree
from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.errors import MountError
from gompfs.mount.search_service import SearchService
from gompfs.search import in_mount
from gompfs.search.in_mount import search_in_mount
from gompfs.search.messages import Message
from gompfs.search.query import SearchQuery

if TYPE_CHECKING:
    from conftest import Mount

ERROR = 2

MountArchive = Callable[..., "Mount"]
Command = Callable[..., subprocess.CompletedProcess[str]]
Capture = pytest.CaptureFixture[bytes]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("searched")
    make_tree(root / "tree")
    pack(root / "tree.gomp", root / "tree", codec=Codec.GOMPRESSO_TADOC)
    return root / "tree.gomp"


@pytest.mark.usefixtures("no_archive")
def test_the_output_is_that_of_ripgrep(capfdbinary: Capture, mounted: Path) -> None:
    for pattern in filter(lambda pattern: is_comparable([pattern]), PATTERNS[::3]):
        wanted = ripgrep("-n", "-e", pattern, mounted)
        found = run(["grep", "--sort=path", "-n", "-e", pattern, str(mounted)]), capfdbinary.readouterr().out
        assert found == wanted or (found[0] == wanted[0] == ERROR), pattern


@pytest.mark.usefixtures("no_archive")
def test_encodings(capfdbinary: Capture, tmp_path: Path, mount: MountArchive) -> None:
    """The daemon decodes files."""
    (tmp_path / "tree").mkdir()
    for encoding in ("latin1", "utf-16le", "utf-8"):
        (tmp_path / "tree" / encoding).write_bytes(("foo é\nÉté\n" * 9000).encode(encoding))
    (tmp_path / "tree" / "marked").write_bytes(b"\xff\xfe" + "Été\n".encode("utf-16-le"))
    pack(tmp_path / "tree.gomp", tmp_path / "tree", codec=Codec.GOMPRESSO_TADOC)
    mounted = mount(tmp_path / "tree.gomp").path
    for options in (["-E", "latin1", "-c"], ["-E", "utf-16", "-c"], ["-E", "none", "-l"], ["-E", "auto", "-c"]):
        wanted = ripgrep(*options, "Été", mounted)
        found = run(["grep", "--sort=path", *options, "Été", str(mounted)]), capfdbinary.readouterr().out
        assert found == wanted, options
        assert wanted[0] == 0


def test_ignore_rules(capfdbinary: Capture, tmp_path: Path, mount: MountArchive) -> None:
    """Paths in rules begin at their directory, also if the search begins below it."""
    for name in ("a/kept", "a/b/left", "left"):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text("text\n")
    (tmp_path / "tree" / ".ignore").write_text("/a/b/left\n/left\n")
    pack(tmp_path / "tree.gomp", tmp_path / "tree")
    mounted = mount(tmp_path / "tree.gomp").path
    for place in (mounted, mounted / "a"):
        assert run(["grep", "-l", "--ignore", "text", str(place)]) == 0
        assert capfdbinary.readouterr() == (b"%s/a/kept\n" % os.fsencode(mounted), b"")


def test_random_searches(capfdbinary: Capture, tmp_path: Path, mount: MountArchive) -> None:
    """The daemon and the command itself print the same, on stdout and stderr, and have the same exit status."""
    generator = random.Random(7)
    make_random_tree(tmp_path / "tree", generator)
    pack(tmp_path / "tree.gomp", tmp_path / "tree", codec=Codec.GOMPRESSO_TADOC)
    mounted = mount(tmp_path / "tree.gomp").path
    for _ in range(60):
        arguments = [argument for argument in random_search(generator) if argument != "--json"]  # has times
        paths = generator.choice([[], [], ["d1"], ["d1", "a.c"], ["link"], ["no such file"], ["../x"], ["d1/.."]])
        found = [
            (run(["grep", *arguments, *options, str(mounted), *paths]), *capfdbinary.readouterr())
            for options in ([], ["--engine", "cpu"])
        ]
        assert found[0] == found[1], (arguments, paths)


@pytest.mark.usefixtures("no_archive")
def test_several_mounts(capfdbinary: Capture, archive: Path, mount: MountArchive) -> None:
    first, second = mount(archive).path, mount(archive, "subdir=src").path
    assert run(["grep", "-n", "--sort=path", "foo", str(first), str(second)]) == 0
    separately = ripgrep("-n", "foo", first)[1] + ripgrep("-n", "foo", second)[1]
    assert capfdbinary.readouterr().out == separately


def test_what_was_removed_is_still_searched(
    tmp_path: Path, archive: Path, mount: MountArchive, gompfs_command: Command
) -> None:
    """As the mount still shows it."""
    copy = Path(shutil.copy(archive, tmp_path))
    mounted = mount(copy).path
    copy.unlink()
    found = gompfs_command("grep", "-c", "--sort=path", "foo", mounted).stdout
    assert found.encode() == ripgrep("-c", "foo", mounted)[1]
    assert gompfs_command("grep", "-c", "--engine", "cpu", "foo", mounted).returncode == ERROR


def test_a_pattern_with_an_error(mounted: Path, gompfs_command: Command) -> None:
    asked, opened = (gompfs_command("grep", *options, "(", mounted) for options in ([], ["--engine", "cpu"]))
    assert (asked.returncode, asked.stdout, asked.stderr) == (opened.returncode, opened.stdout, opened.stderr)
    assert asked.returncode == ERROR


EVERYTHING = SearchQuery((b"",), text=True)


def paused_search(mounted: Path) -> Asked:
    """A search with more output than the socket takes, and which nobody reads."""
    asked = Asked(mounted)
    with suppress(BrokenPipeError):  # there are too many connections
        asked.send(SearchQuery((b"",), text=True, before_context=100, after_context=100))
    return asked


def test_a_wrong_token_is_refused(mounted: Path) -> None:
    for token in ("", "0" * 32, "é", "0" * 33):
        with suppress(BrokenPipeError, ConnectionResetError):  # the request was not read
            assert Asked(mounted).ask(EVERYTHING, token) == [(Message.REFUSED, b"")]


@pytest.mark.parametrize("number", [0, 2**62, 2**62 + 5, 2**63 - 1, 99999, -1])
def test_a_file_that_does_not_exist(mounted: Path, number: int) -> None:
    assert Asked(mounted).ask(EVERYTHING, number=number) == [(Message.REFUSED, b"")]


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\0",
        b"\0\xff\xff\xff\xff",
        b"\x09\0\0\0\0",
        b"\0\x02\0\0\0{}",
        b"GET / HTTP/1.1\r\n\r\n",
        b"TOKEN\x01\xff\xff\xff\xff",
        b"TOKEN\x01\x02\0\0\0{}",
        b"TOKEN\x01\x04\0\0\0null",
        b"TOKEN\x01\x10\0\0\0" + b"[" * 16,
        b"TOKEN\x01\x80\x84\x1e\0" + b"[" * 2_000_000,
        b"TOKEN",
        b"TOKENTOKEN",
    ],
)
def test_what_is_no_request_is_refused(mounted: Path, sent: bytes) -> None:
    """TOKEN stands for the message with the right token."""
    asked = Asked(mounted)
    sent = sent.replace(b"TOKEN", b"\0\x20\0\0\0" + asked.token.encode())
    with suppress(BrokenPipeError):  # it was refused before all of it was sent
        asked.connection.sendall(sent)
        asked.connection.shutdown(socket.SHUT_WR)
    with suppress(ConnectionResetError):
        assert asked.answers() in ([], [(Message.REFUSED, b"")])
    assert is_answered(mounted)


@pytest.mark.parametrize(
    "change",
    [
        {"patterns": 5},
        {"patterns": (1,)},
        {"sort": 17},
        {"before_context": "x"},
        {"type": [1]},
        {"type_not": ["all"] * 100_000},
        {"ignore_file": [["a", "b"]]},
        {"replace": 1},
        {"nonsense": 1},
        {"max_count": -1},
        {"glob": (b"[",)},
        {"crlf": b"\0"},
        {"max_depth": 1 << 80},
        {"encoding": "utf-9"},
        {"encoding": 7},
        {"encoding": ["latin1"]},
    ],
)
def test_a_query_that_no_command_makes(mounted: Path, change: dict[str, object]) -> None:
    """It is refused, or searched for; the daemon goes on."""

    class Changed(SearchQuery):
        def as_dict(self) -> dict[str, object]:
            return {**super().as_dict(), **change}

    answers = Asked(mounted).ask(Changed((b"foo",)))
    assert answers[-1][0] in (Message.REFUSED, Message.ERROR, Message.END)
    assert is_answered(mounted)


def test_more_searches_than_a_daemon_runs(capfdbinary: Capture, mounted: Path) -> None:
    """The command then opens the archive; and the daemon searches again when others have gone."""
    paused = [paused_search(mounted) for _ in range(40)]
    wanted = ripgrep("-n", "foo", mounted)
    assert (run(["grep", "-n", "--sort=path", "foo", str(mounted)]), capfdbinary.readouterr().out) == wanted
    for each in paused:
        each.connection.close()
    deadline = time.monotonic() + 60
    is_free = False
    while not is_free:
        with suppress(BrokenPipeError):
            is_free = is_answered(mounted)
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_mount_ends_while_somebody_searches(archive: Path, mount: MountArchive) -> None:
    mounted = mount(archive)
    paused = paused_search(mounted.path)
    assert mounted.stop() == 0
    with suppress(ConnectionResetError):
        assert Message.END not in {kind for kind, _ in paused.answers()}


def test_the_daemon_dies(archive: Path, mount: MountArchive, tmp_path: Path) -> None:
    """The command says so, and has the exit status of an error."""
    mounted = mount(archive)
    output, waiting = os.pipe(), tmp_path / "errors"
    with open(waiting, "wb") as errors:
        command = [sys.executable, "-P", "-m", "gompfs", "grep", "-a", "-C99", "", mounted.path]
        searching = subprocess.Popen(command, stdout=output[1], stderr=errors)
    os.close(output[1])
    os.read(output[0], 1)
    mounted.process.kill()
    with open(output[0], "rb") as rest:
        rest.read()
    assert searching.wait(timeout=60) == ERROR
    assert waiting.read_text() == f"gompfs: {mounted.path}: the daemon ended the search: the other side has gone\n"


class FakeDaemon:
    """Gives a search the same answers, whatever is asked. Closes the socket in `close`."""

    def __init__(self, answers: bytes) -> None:
        self.address = f"gompfs-test-{os.getpid()}", "0" * 32
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"\0{self.address[0]}")
        self._listener.listen()
        self._pool = ThreadPoolExecutor(1)
        self._answering = self._pool.submit(self._answer, answers)

    def _answer(self, answers: bytes) -> socket.socket:
        connection = self._listener.accept()[0]
        with suppress(BrokenPipeError):  # the search has ended before it has read all
            connection.sendall(answers)
            connection.shutdown(socket.SHUT_WR)
        return connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._listener, self._pool:
            self._answering.result(timeout=60).close()


def message(kind: Message, content: bytes = b"") -> bytes:
    return bytes([kind]) + len(content).to_bytes(4, "little") + content


FIRST = message(Message.TOTALS, b"[]")
NONSENSE = {
    "null": message(Message.TOTALS, b"null"),
    "an object": message(Message.TOTALS, b"{}"),
    "an unknown kind": b"\x63\0\0\0\0",
    "a large message": b"\x03\xff\xff\xff\xff",
    "a cut message": b"\x03\x05\0\0\0ab",
    "infinite totals": message(Message.TOTALS, b"[Infinity, 0]"),
    "totals that are no numbers": message(Message.TOTALS, b"[NaN, 0]"),
    "negative totals": message(Message.TOTALS, b"[1, -1]"),
    "too many totals": message(Message.TOTALS, b"[1" + b", 1" * 10 + b"]"),
    "deep totals": message(Message.TOTALS, b"[" * 1000),
    "deeper totals": message(Message.TOTALS, b"[" * 100_000),
    "large totals": message(Message.TOTALS, b"[" + b"9" * 4000 + b"]"),
    "totals of text": message(Message.TOTALS, b'["1"]'),
}


@pytest.mark.parametrize("answer", NONSENSE.values(), ids=NONSENSE.keys())
def test_a_daemon_that_answers_nonsense(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    """The mount may be that of another user."""
    for answers in (answer, FIRST + answer):
        with FakeDaemon(answers) as daemon:
            monkeypatch.setattr(in_mount, "_address_of", lambda _, address=daemon.address: address)
            search = search_in_mount("place", EVERYTHING, [(b"", 1)])
            assert (search is None) == (answers == answer)
            if search is not None:
                with pytest.raises(MountError, match="the daemon ended the search"):
                    list(search.steps())


def test_what_a_daemon_says_does_not_control_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: Capture, mounted: Path
) -> None:
    """Escape sequences, line feeds, invalid UTF-8, text that runs from right to left, and too much of it."""
    text = b"\x1b]0;owned\a \x1b[2J\nroot: \xc2\x9b1m \xff \xe2\x80\xae \r" + b"x" * 100_000
    shown = "\\x1b]0;owned\\x07 \\x1b[2J root: \\x9b1m \\xff \\u202e  x"
    for answers, is_first in (
        (message(Message.ERROR, text), True),
        (FIRST + message(Message.ERROR, text), True),
        (FIRST + 3 * message(Message.FAILURE, text) + message(Message.END), False),
    ):
        with FakeDaemon(answers) as daemon:
            monkeypatch.setattr(in_mount, "_address_of", lambda _, address=daemon.address: address)
            assert run(["grep", "x", str(mounted)]) == ERROR
        output, errors = capfdbinary.readouterr()
        assert output == b""
        lines = errors.decode().splitlines()
        assert len(lines) == (1 if is_first else 3)
        assert all(line.startswith(f"gompfs: {shown}") and line.isprintable() for line in lines)
        assert all(len(line) < 70_000 for line in lines)


def test_a_daemon_that_reports_errors_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeDaemon(FIRST + 30 * message(Message.FAILURE, b"x" * (4 << 20))) as daemon:
        monkeypatch.setattr(in_mount, "_address_of", lambda _: daemon.address)
        search = search_in_mount("place", EVERYTHING, [(b"", 1)])
        assert search is not None
        with pytest.raises(MountError, match="too many errors"):
            list(search.steps())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_other_users_search_what_all_may_read(mount: MountArchive) -> None:
    """In a mount with allow_other, and not if there is a file that not all may read, or no right to the mount."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:  # whose parents every user may enter
        root = Path(directory)
        root.chmod(0o755)
        (root / "tree").mkdir()
        (root / "tree" / "a").write_text("foo\n")
        (root / "tree" / "a").chmod(0o644)
        pack(root / "open.gomp", root / "tree", codec=Codec.GOMPRESSO_TADOC)
        (root / "tree" / "b").write_text("foo\n")
        (root / "tree" / "b").chmod(0o600)
        pack(root / "closed.gomp", root / "tree", codec=Codec.GOMPRESSO_TADOC)
        for name in ("open", "closed"):
            (root / f"{name}.gomp").chmod(0o600)
        shown = mount(root / "open.gomp", "allow_other", path=root / "open")
        assert run(["grep", "-c", "foo", str(shown.path)]) == 0  # imports what another user may not read
        assert output_as_nobody("grep", "-c", "foo", shown.path) == (0, f"{shown.path}/a:1\n".encode())
        hidden = mount(root / "closed.gomp", "allow_other", path=root / "closed")
        status, message = output_as_nobody("grep", "-c", "foo", hidden.path)
        assert status == ERROR
        assert b"closed.gomp, which you may not read" in message
        assert b":1" not in message
        for each in (shown, hidden):
            each.clean_up()


def test_nothing_listens_before_somebody_asks(archive: Path) -> None:
    with Archive(archive, engine=select_engine("cpu")) as opened:
        service = SearchService(opened, lambda number: number)
        service.close()
        with pytest.raises(OSError, match="shutdown"):
            service.address()
