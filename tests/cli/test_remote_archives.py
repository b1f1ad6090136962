"""Commands on archives at URLs, what is fetched for them, and what messages and other users see of a URL."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from range_server import RangeServer, serving
from tree_helpers import PACKAGE_PARENT, pack

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.remote.chunk_cache import CHUNK_SIZE, cache_folder

if TYPE_CHECKING:
    from conftest import Gompfs


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an archive of 3 MB, of text in some parts and of noise; and its tree."""
    folder = tmp_path_factory.mktemp("large")
    rng = random.Random(3)
    (folder / "tree").mkdir()
    words = [f"w{rng.randrange(1 << 20):05x}" for _ in range(20_000)]
    phrases = [" ".join(rng.choices(words, k=rng.randrange(2, 9))) for _ in range(4_000)]
    for number in range(30):
        text = "\n".join(rng.choices(phrases, k=9_000)) + (" needle\n" if number == 17 else "\n")
        (folder / f"tree/text-{number}").write_text(text)
    (folder / "tree/noise").write_bytes(rng.randbytes(1_000_000))
    pack(folder / "a.gomp", folder / "tree", codec=Codec.GOMPRESSO_TADOC)
    return folder


@pytest.fixture
def server(large: Path) -> Iterator[RangeServer]:
    with serving(large) as server:
        yield server


@pytest.mark.parametrize(
    "arguments",
    [
        ["ls", "-lR"],
        ["cat", "text-*"],
        ["info", "--json"],
        ["verify"],
        ["grep", "-c", "w0ff"],
        ["stats", "wordcount"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands(server: RangeServer, large: Path, gompfs: Gompfs, arguments: list[str]) -> None:
    """They print the same as on the local file."""
    name, *others = arguments
    local, url = str(large / "a.gomp"), f"{server.url}/a.gomp"
    place = 1 if name == "grep" else 0

    def run(archive: str) -> tuple[int, bytes, str]:
        done = gompfs(name, *others[: 2 * place], archive, *others[2 * place :])
        return done.status, done.output.replace(archive.encode(), b"ARCHIVE"), done.errors

    found = run(url)
    assert found[0] == 0
    assert found == run(local)


def test_extract(server: RangeServer, large: Path, gompfs: Gompfs, tmp_path: Path) -> None:
    assert gompfs("extract", f"{server.url}/a.gomp").status == 0
    for path in (large / "tree").iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
    assert server.bytes_sent < (large / "a.gomp").stat().st_size + CHUNK_SIZE  # nothing twice


def test_what_a_search_fetches(server: RangeServer, large: Path, gompfs: Gompfs) -> None:
    """Heads, and the content of one file. The second time, only the beginning, by which a new file is noticed."""
    done = gompfs("grep", "-o", "-g", "text-*", "needle", f"{server.url}/a.gomp")
    assert done.output == b"text-17:needle\n"
    with Archive(large / "a.gomp") as archive:
        (segment,) = archive.segments
        needed = sum(segment.parts.head_sizes) + archive.footer.index_size
        assert max(segment.parts.head_sizes) > 0
    assert server.bytes_sent < needed + 600_000 < (large / "a.gomp").stat().st_size
    server.ranges.clear()
    assert gompfs("grep", "-o", "-g", "text-*", "needle", f"{server.url}/a.gomp").output == b"text-17:needle\n"
    # A chunk that was announced and not needed may have been under way when the first search ended.
    assert server.ranges[0] == (0, 4095)
    assert sum(last + 1 - first for first, last in server.ranges[1:]) <= 2 * CHUNK_SIZE


@pytest.mark.parametrize("name", ["missing", "b.gomp", "empty"])
def test_what_is_no_archive(large: Path, gompfs: Gompfs, server: RangeServer, name: str) -> None:
    (large / "b.gomp").write_bytes(b"something else")
    (large / "empty").touch()
    done = gompfs("ls", f"{server.url}/{name}")
    reason = "there is no such file on the server" if name == "missing" else "not a gompfs archive"
    assert done.status == 1
    assert done.error_line.startswith(f"{server.url}/{name}: ")
    assert "404 Not Found" in done.error_line if name == "missing" else reason in done.error_line


def test_a_server_without_ranges(large: Path, gompfs: Gompfs) -> None:
    with serving(large, serves_ranges=False) as server:
        done = gompfs("ls", f"{server.url}/a.gomp")
    assert done.error_line == (
        f"{server.url}/a.gomp: the server ignores ranges, so it would send the whole archive for each read; copy it"
    )
    assert len(server.ranges) == 1


def test_errors_that_pass(server: RangeServer, gompfs: Gompfs) -> None:
    server.num_failures = 3
    assert gompfs("ls", f"{server.url}/a.gomp").status == 0
    assert server.num_failures == 0


def test_no_server_and_no_such_store(gompfs: Gompfs) -> None:
    done = gompfs("ls", "http://127.0.0.1:9/a.gomp")
    assert done.status == 1
    assert done.error_line.startswith("http://127.0.0.1:9/a.gomp: Connect call failed")
    assert "rotocol not known" in gompfs("ls", "nosuch://a/b").error_line


def test_without_fsspec(gompfs: Gompfs, tmp_path: Path) -> None:
    (tmp_path / "hidden/fsspec").mkdir(parents=True)
    (tmp_path / "hidden/fsspec/__init__.py").write_text("raise ImportError('hidden')")
    done = gompfs("ls", "https://host/a.gomp", PYTHONPATH=f"{tmp_path}/hidden:{PACKAGE_PARENT}")
    assert done.error_line.startswith("https://host/a.gomp: archives at URLs need fsspec: ")
    assert done.error_line.endswith("-m pip install 'gompfs[remote]'")


def test_secrets_are_not_shown(server: RangeServer, large: Path, tmp_path: Path, gompfs: Gompfs) -> None:
    """Neither in messages, nor in results, nor among the arguments of the process, nor in the cache."""
    host = server.url.removeprefix("http://")
    secret = f"http://user:pa55@{host}/a.gomp?signature=s3cret"
    shown = f"http://...@{host}/a.gomp?..."
    done = gompfs("info", secret)
    assert done.status == 0
    assert done.lines[0].split() == ["archive", shown]
    assert server.queries == {"signature=s3cret"}
    failed = gompfs("cat", secret, "nothing")
    assert failed.error_line.startswith(f"{shown}: nothing: ")
    missing = gompfs("ls", secret.replace("a.gomp", "missing"))
    assert missing.error_line == f"{shown.replace('a.gomp', 'missing')}: the server answers 404 Not Found"
    assert not [path for path in Path(cache_folder()).rglob("*") if b"pa55" in path.read_bytes()]

    command = [sys.executable, "-P", "-m", "gompfs", "cat", secret, "noise"]
    reading, writing = os.pipe()
    with subprocess.Popen(command, stdout=writing) as process:  # blocks: nobody reads
        os.read(reading, 1)
        arguments = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        process.kill()
    os.close(reading)
    os.close(writing)
    assert b"pa55" not in arguments
    assert b"s3cret" not in arguments
    assert f"@{host}/a.gomp?".encode() in arguments


def test_an_archive_that_was_replaced(large: Path, tmp_path: Path, gompfs: Gompfs) -> None:
    """A command that comes later sees the new one."""
    (tmp_path / "a.gomp").write_bytes((large / "a.gomp").read_bytes())
    with serving(tmp_path) as server:
        assert b"noise" in gompfs("ls", f"{server.url}/a.gomp").output
        pack(tmp_path / "new.gomp", large / "tree/text-1")
        os.replace(tmp_path / "new.gomp", tmp_path / "a.gomp")
        assert gompfs("ls", f"{server.url}/a.gomp").lines == ["text-1"]


@pytest.mark.parametrize("num_kills", [4, pytest.param(200, marks=pytest.mark.slow)])
def test_readers_that_are_killed(
    server: RangeServer, large: Path, tmp_path: Path, gompfs: Gompfs, num_kills: int
) -> None:
    """Killed while they write the cache: others read the right bytes, and the cache has no more than the archive."""
    url = f"{server.url}/a.gomp"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    expected = b"".join((large / f"tree/text-{number}").read_bytes() for number in (17, 5))
    command = [sys.executable, "-P", "-m", "gompfs", "cat", url]
    rng = random.Random(num_kills)
    for number in range(num_kills):
        with subprocess.Popen([*command, "text-*", "noise"], stdout=subprocess.DEVNULL, env=environment) as process:
            before = len(server.ranges)
            while len(server.ranges) < before + 1 and process.poll() is None:
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.15))
            process.kill()
        if number % 8 == 3:
            done = gompfs("cat", url, "text-17", "text-5", XDG_CACHE_HOME=str(tmp_path))
            assert (done.status, done.output, done.errors) == (0, expected, "")
    (cached,) = (tmp_path / "gompfs/remote").iterdir()
    assert cached.stat().st_size <= (large / "a.gomp").stat().st_size + 8192
