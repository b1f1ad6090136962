"""`gompfs serve`: what a client of HTTP gets of archives, and what it does not get."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urljoin

import pytest
from access_lists import ACCESS, access_list
from tree_helpers import pack, write_files

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.serve import server as server_module
from gompfs.serve.server import serving

BIG = b"".join(b"%d\n" % number for number in range(100_000))
BYTES = os.urandom(300_000)
STRANGE = b'<i>&"\xff\xe9\x1b:?#%2e'


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """Asks a server over one connection."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._connection = HTTPConnection("127.0.0.1", port, timeout=20)

    def get(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Reply:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, path, body, fields)
        response = self._connection.getresponse()
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())

    def close(self) -> None:
        self._connection.close()


@contextmanager
def served(*archives: Path, serves_all: bool = False) -> Iterator[Client]:
    with serving(list(map(str, archives)), "127.0.0.1", 0, serves_all=serves_all) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        client = Client(server.server_port)
        try:
            yield client
        finally:
            client.close()
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("served")
    tree = root / "tree"
    write_files(
        tree,
        {
            b"a.txt": b"alpha beta alpha\n",
            b"big.txt": BIG,
            b"noise": BYTES,
            b"page.html": b"<script>alert(1)</script>",
            b"d/" + STRANGE: b"strange",
            b"d/data.txt.gz": b"\x1f\x8b",
            b"empty": b"",
        },
    )
    (tree / "d/up").symlink_to("../../../a.txt")
    (tree / "absolute").symlink_to("/d/up")
    (tree / "loop").symlink_to("loop")
    (tree / "directory").symlink_to("d")
    os.mkfifo(tree / "fifo")
    os.utime(tree / "a.txt", ns=(0, 1_600_000_000_500_000_000))
    os.utime(tree / "empty", ns=(0, 1 << 62))
    pack(root / "a.gomp", tree, codec=Codec.GOMPRESSO_TADOC, block_size=16 << 10)
    return root / "a.gomp"


@pytest.fixture(scope="module")
def client(archive: Path) -> Iterator[Client]:
    with served(archive) as client:
        yield client


def test_whole_files(client: Client) -> None:
    for path, content in {"/big.txt": BIG, "/noise": BYTES, "/empty": b"", "//.//a.txt": None}.items():
        if content is None:
            assert client.get(path).status == 404
            continue
        reply = client.get(path)
        assert (reply.status, reply.body) == (200, content)
        head = client.get(path, "HEAD")
        assert (head.status, head.headers | {"date": ""}, head.body) == (200, reply.headers | {"date": ""}, b"")


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("bytes=0-0", slice(0, 1)),
        ("bytes=10000-", slice(10000, None)),
        ("bytes=16383-16384", slice(16383, 16385)),
        (f"bytes={len(BIG) - 1}-{10**18}", slice(len(BIG) - 1, None)),
        ("bytes=-7", slice(-7, None)),
        (f"bytes=-{10**18}", slice(None)),
        ("bytes=5-4", None),
        ("bytes=-", None),
        ("bytes=0-1,3-4", None),
        ("lines=0-1", None),
        ("bytes=" + "9" * 5000 + "-", None),
        (f"bytes={len(BIG)}-", 416),
        ("bytes=-0", 416),
    ],
)
def test_ranges(client: Client, header: str, wanted: slice | int | None) -> None:
    reply = client.get("/big.txt", Range=header)
    if wanted == 416:
        assert (reply.status, reply.headers["content-range"]) == (416, f"bytes */{len(BIG)}")
    elif wanted is None:  # ignored
        assert (reply.status, reply.body) == (200, BIG)
    else:
        assert isinstance(wanted, slice)
        start, stop, _ = wanted.indices(len(BIG))
        assert (reply.status, reply.body) == (206, BIG[wanted])
        assert reply.headers["content-range"] == f"bytes {start}-{stop - 1}/{len(BIG)}"
    assert client.get("/empty", Range="bytes=0-").status == 416


def test_conditions(client: Client) -> None:
    first = client.get("/a.txt")
    etag, date = first.headers["etag"], first.headers["last-modified"]
    assert date == "Sun, 13 Sep 2020 12:26:40 GMT"
    assert client.get("/big.txt").headers["etag"] != etag
    assert "last-modified" not in client.get("/empty").headers  # a time in the year 2116
    for header in (etag, f'"x", W/{etag}', "*"):
        reply = client.get("/a.txt", If_None_Match=header)
        assert (reply.status, reply.body, reply.headers["etag"]) == (304, b"", etag)
    assert client.get("/a.txt", If_None_Match='"x"', If_Modified_Since=date).status == 200
    assert client.get("/a.txt", If_Modified_Since=date).status == 304
    assert client.get("/a.txt", If_Modified_Since="Sun, 13 Sep 2020 12:26:39 GMT").status == 200
    assert client.get("/a.txt", If_Modified_Since="yesterday").status == 200
    assert client.get("/a.txt", If_Match='"x"').status == 412
    assert client.get("/a.txt", If_Match=etag).status == 200
    assert client.get("/a.txt", Range="bytes=0-1", If_Range=etag).status == 206
    assert client.get("/a.txt", Range="bytes=0-1", If_Range=date).status == 206
    assert client.get("/a.txt", Range="bytes=0-1", If_Range='"x"').status == 200


def test_the_tag_of_a_file_changes_with_its_archive(tmp_path: Path) -> None:
    tags = set()
    for content in (b"one", b"two"):
        write_files(tmp_path / "tree", {"f": content})
        pack(tmp_path / "a.gomp", tmp_path / "tree", force=True)
        with served(tmp_path / "a.gomp") as client:
            tags.add(client.get("/f").headers["etag"])
    assert len(tags) == 2


def test_names_of_any_bytes(client: Client) -> None:
    (entry,) = [entry for entry in json.loads(client.get("/d/?format=json").body) if "<i>" in entry["path"]]
    assert os.fsencode(entry["path"]) == b"d/" + STRANGE
    assert client.get(entry["url"]).body == b"strange"
    page = client.get("/d/").body.decode()
    assert "<i>" not in page
    assert "\x1b" not in page
    (link,) = [link for link in re.findall(r'href="([^"]*)"', page) if "%3Ci%3E" in link]
    assert client.get(urljoin("/d/", link)).body == b"strange"


def test_listings(client: Client) -> None:
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "script" not in page.body.decode()
    entries = json.loads(client.get("/", Accept="application/json").body)
    names = {entry["path"]: entry for entry in entries}
    assert [*names] == sorted(names)
    assert (names["a.txt"]["type"], names["a.txt"]["size"], names["a.txt"]["url"]) == ("file", 17, "/a.txt")
    assert names["d"]["url"] == "/d/"
    assert names["absolute"]["symlink_target"] == "/d/up"
    assert {"stats", ".gompfs"} & names.keys() == {"stats"}
    assert all(f'href="./{name}' in page.body.decode() for name in names)


def test_directories_have_a_slash(client: Client) -> None:
    reply = client.get("/directory?format=json")
    assert (reply.status, reply.headers["location"]) == (301, "/directory/?format=json")
    assert client.get("//d").headers["location"] == "/d/"  # not //d/, which is another host
    assert json.loads(client.get("/directory/?format=json").body) != []
    assert client.get("/a.txt/").status == 404


def test_links_stay_inside(client: Client) -> None:
    for path in ("/d/up", "/absolute", "/directory/up"):
        assert client.get(path).body.startswith(b"alpha")
    for path in ("/loop", "/../etc/passwd", "/%2e%2e/etc/passwd", "/d/..%2fa.txt", "/a%00.txt", "/fifo", "/none"):
        assert client.get(path).status == 404, path


def test_media_types(client: Client) -> None:
    types = {path: client.get(path).headers["content-type"] for path in ("/a.txt", "/noise", "/d/data.txt.gz")}
    assert types == {
        "/a.txt": "text/plain; charset=utf-8",
        "/noise": "application/octet-stream",
        "/d/data.txt.gz": "application/octet-stream",
    }
    page = client.get("/page.html")
    assert (page.headers["content-type"], page.headers["content-security-policy"]) == ("text/html", "sandbox")
    assert page.headers["x-content-type-options"] == "nosniff"


def test_other_methods(client: Client) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        reply = client.get("/a.txt", method, b"body")
        assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")
    assert client.get("/a.txt", body=b"GET /d/ HTTP/1.1\r\n\r\n").headers["connection"] == "close"


def test_pages_of_other_hosts_are_refused(client: Client) -> None:
    """A name of an attacker may lead to 127.0.0.1, so that their page could read what this server answers."""
    for host, status in {"localhost": 200, "127.0.0.1:80": 200, "[::1]:80": 200, "evil.example": 421}.items():
        assert client.get("/a.txt", Host=host).status == status


def test_statistics(client: Client, archive: Path) -> None:
    command = [sys.executable, "-P", "-m", "gompfs", "stats", archive, "wordcount"]
    expected = subprocess.run(command, capture_output=True, check=True).stdout
    reply = client.get("/stats/wordcount")
    assert (reply.body, reply.headers["content-type"]) == (expected, "text/plain; charset=utf-8")
    assert client.get("/stats/wordcount", Range="bytes=3-9").body == expected[3:10]
    assert b"a.txt" in client.get("/stats/word/beta").body
    assert client.get("/stats/files/a.txt/wordcount").body == b"alpha\t2\nbeta\t1\n"
    for path in ("/stats/none", "/stats/word/neverseen", "/stats/search-socket", "/stats/files/noise/wordcount"):
        assert client.get(path).status == 404
    listed = {entry["path"]: entry for entry in json.loads(client.get("/stats/?format=json").body)}
    assert listed["stats/wordcount"]["size"] is None


def test_what_not_everybody_may_read_is_refused(tmp_path: Path) -> None:
    names = ("public", "mine", "group", "notgroup", "listed", "private/f", "searched/f")
    tree = write_files(tmp_path / "tree", {name: name.encode() for name in names})
    modes = {"mine": 0o600, "group": 0o640, "notgroup": 0o604, "private": 0o700, "searched": 0o711}
    for name, mode in modes.items():
        (tree / name).chmod(mode)
    pack(tmp_path / "a.gomp", tree)
    statuses = {"/public": 200, "/mine": 403, "/group": 403, "/notgroup": 403, "/private/": 403, "/private/f": 403}
    statuses |= {"/searched/": 403, "/searched/f": 200, "/stats/wordcount": 403, "/stats/README": 200}
    statuses |= {"/stats/files/mine/wordcount": 403, "/stats/files/public/wordcount": 200, "/stats/.word/public": 403}
    with served(tmp_path / "a.gomp") as client:
        assert {path: client.get(path).status for path in statuses} == statuses
    with served(tmp_path / "a.gomp", serves_all=True) as client:
        assert {path: client.get(path).status for path in statuses} == dict.fromkeys(statuses, 200)


def test_access_lists(tmp_path: Path) -> None:
    tree = write_files(tmp_path / "tree", {"refused": b"x", "allowed": b"y"})
    try:
        os.setxattr(tree / "refused", ACCESS, access_list("user::rw-,user:65534:---,group::r--,mask::r--,other::r--"))
        os.setxattr(tree / "allowed", ACCESS, access_list("user::rw-,user:65534:r--,group::r--,mask::r--,other::r--"))
    except OSError:
        pytest.skip("this file system has no ACLs")
    pack(tmp_path / "a.gomp", tree)
    with served(tmp_path / "a.gomp") as client:
        assert [client.get(path).status for path in ("/refused", "/allowed")] == [403, 200]


def test_the_requests_of_the_guide(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs/howto/serve.md").read_text()
    paths = re.findall(r"curl .*http://127\.0\.0\.1:8080(/\S*)", guide)
    tree = write_files(tmp_path / "tree", {"docs/readme.txt": b"orange marmalade\n" * 200})
    pack(tmp_path / "a.gomp", tree)
    with served(tmp_path / "a.gomp") as client:
        assert {path: client.get(path).status for path in paths} == dict.fromkeys(paths, 200)


def test_several_archives(tmp_path: Path) -> None:
    for name in ("one", "two"):
        tree = write_files(tmp_path / name, {"f": name.encode(), "g": b"shared"})
        (tree / "absolute").symlink_to("/f")
        (tree / "up").symlink_to("../../f")
        pack(tmp_path / f"{name}.gomp", tree)
    with served(tmp_path / "one.gomp", tmp_path / "two.gomp") as client:
        assert [entry["path"] for entry in json.loads(client.get("/?format=json").body)] == ["one", "stats", "two"]
        for name in ("one", "two"):
            assert {client.get(f"/{name}/{path}").body for path in ("f", "absolute", "up")} == {name.encode()}
            assert client.get(f"/stats/{name}/wordcount").status == 200
        assert client.get("/one/g").headers["etag"] != client.get("/two/g").headers["etag"]


def test_damage_ends_an_answer_early(archive: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(archive, tmp_path))
    with open(copy, "r+b") as file:
        file.seek(copy.read_bytes().index(BYTES[-10_000:-9_000]))  # what does not get smaller is stored as it is
        file.write(b"damage")
    with served(copy) as client:
        assert client.get("/noise", Range=f"bytes={len(BYTES) - 20_000}-").status == 500
        assert client.get("/noise", Range="bytes=0-99").body == BYTES[:100]
        with socket.create_connection(("127.0.0.1", client.port)) as connection:
            connection.sendall(b"GET /noise HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))  # the server closes it
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert len(answer.partition(b"\r\n\r\n")[2]) < len(BYTES)
        assert client.get("/a.txt").status == 200


def test_idle_and_slow_clients_do_not_block_others(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 4)
    monkeypatch.setattr("gompfs.serve.handler.Handler.timeout", 0.3)
    with served(archive) as client:
        connections = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(6)]
        assert client.get("/a.txt").status == 200
        for connection in connections[:2]:
            connection.sendall(b"GET /a.txt HTTP/1.1\r\nHost: local")  # and no more
        with closing(Client(client.port)) as other:
            assert other.get("/a.txt").status == 200
        for connection in connections:
            connection.close()
        slow = socket.create_connection(("127.0.0.1", client.port))
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(b"GET /big.txt HTTP/1.1\r\nHost: localhost\r\n\r\n" * 40)
        time.sleep(0.1)
        with closing(Client(client.port)) as other:
            assert other.get("/big.txt").body == BIG
        slow.close()


def test_an_archive_in_an_archive_is_read_at_its_url(archive: Path, tmp_path: Path) -> None:
    """gompfs reads archives at URLs in ranges, and sees by the ETag that they stay the same."""
    (tmp_path / "tree").mkdir()
    shutil.copy(archive, tmp_path / "tree/inner.gomp")
    pack(tmp_path / "outer.gomp", tmp_path / "tree")
    with served(tmp_path / "outer.gomp") as client, Archive(f"http://127.0.0.1:{client.port}/inner.gomp") as inner:
        inode = inner.resolve("big.txt")
        assert inner.read(inode.ino, 0, inode.size) == BIG


def test_the_command(archive: Path) -> None:
    command = [sys.executable, "-P", "-m", "gompfs", "serve", "--listen"]
    with subprocess.Popen([*command, "0", archive], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = re.fullmatch(r"serving at http://127\.0\.0\.1:(\d+)/\n", process.stdout.readline())
        assert port is not None
        connection = HTTPConnection("127.0.0.1", int(port[1]), timeout=20)
        connection.request("GET", "/a.txt")
        assert connection.getresponse().read() == b"alpha beta alpha\n"
        connection.close()
        failed = subprocess.run([*command, port[1], archive], capture_output=True, text=True, check=False)
        assert (failed.returncode, failed.stderr) == (1, "gompfs: Address already in use\n")
        process.send_signal(2)
        assert process.wait(timeout=60) == 130
    for arguments, message in (
        (["http"], "is not PORT, HOST:PORT or [ADDRESS]:PORT"),
        (["65536"], "is not PORT"),
        (["::1:80"], "is not PORT"),
    ):
        failed = subprocess.run([*command, *arguments, archive], capture_output=True, text=True, check=False)
        assert failed.returncode == 2
        assert message in failed.stderr
