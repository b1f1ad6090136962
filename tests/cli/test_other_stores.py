"""Archives on an S3 server and on an SSH server, which run on this machine.

They need `pip install s3fs 'moto[server]' paramiko asyncssh`.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tree_helpers import pack

if TYPE_CHECKING:
    from conftest import Gompfs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with a text and noise, which are in the folder of the same tree."""
    folder = tmp_path_factory.mktemp("stores")
    (folder / "tree").mkdir()
    (folder / "tree/text").write_text("a needle in hay\n" * 1000)
    (folder / "tree/noise").write_bytes(random.Random(1).randbytes(3_000_000))
    pack(folder / "a.gomp", folder / "tree")
    return folder / "a.gomp"


def check(gompfs: Gompfs, archive: Path, url: str, **environment: str) -> None:
    """Reads all, notices that the archive was replaced, and reports that it is gone."""
    original = archive.read_bytes()
    for name in ("text", "noise"):
        done = gompfs("cat", url, name, **environment)
        assert (done.status, done.output, done.errors) == (0, (archive.parent / "tree" / name).read_bytes(), "")
    assert gompfs("grep", "-c", "needle", url, **environment).output == b"text:1000\n"
    assert gompfs("verify", url, **environment).status == 0
    missing = gompfs("ls", url + "x", **environment)
    assert missing.error_line.endswith("x: there is no such file on the server")
    assert "secret" not in missing.error_line
    assert archive.read_bytes() == original


def test_s3(archive: Path, gompfs: Gompfs) -> None:
    pytest.importorskip("s3fs")
    boto3, server = pytest.importorskip("boto3"), pytest.importorskip("moto.server")
    running = server.ThreadedMotoServer(port=0)
    running.start()
    try:
        _, port = running.get_host_and_port()
        keys = {"AWS_ACCESS_KEY_ID": "secret", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
        endpoint = f"http://127.0.0.1:{port}"
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id="secret",
            aws_secret_access_key="secret",
            region_name="us-east-1",
        )
        client.create_bucket(Bucket="bucket")
        client.upload_file(str(archive), "bucket", "folder/a.gomp")
        check(gompfs, archive, "s3://bucket/folder/a.gomp", FSSPEC_S3_ENDPOINT_URL=endpoint, **keys)
    finally:
        running.stop()


def test_ssh(archive: Path, gompfs: Gompfs) -> None:
    pytest.importorskip("paramiko")
    with ssh_server(pytest.importorskip("asyncssh")) as port:
        check(gompfs, archive, f"ssh://user:secret@127.0.0.1:{port}{archive}")


@contextmanager
def ssh_server(asyncssh: Any) -> Iterator[int]:
    """An SFTP server for the files of this machine, with a password."""

    class Login(asyncssh.SSHServer):  # type: ignore[misc]
        def password_auth_supported(self) -> bool:
            return True

        def validate_password(self, username: str, password: str) -> bool:
            return (username, password) == ("user", "secret")

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> Any:
        key = asyncssh.generate_private_key("ssh-ed25519")
        return await asyncssh.create_server(Login, "127.0.0.1", 0, server_host_keys=[key], sftp_factory=True)

    listener = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield listener.get_port()
    finally:
        loop.call_soon_threadsafe(listener.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
