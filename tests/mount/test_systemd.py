"""The units of systemd/ as `systemd-analyze` reads them, and the messages of a mount to systemd. Starts no systemd."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gompfs.mount.system.mount_table import mount_at

UNITS = Path(__file__).parents[2] / "systemd"
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")


class Listener:
    """The socket that a service writes its notifications to."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address.replace("@", "\0", 1))
        self.socket.settimeout(20)

    def messages(self, last: str) -> list[str]:
        """Returns the messages received, up to the first one that contains `last`."""
        found: list[str] = []
        while not found or last not in found[-1]:
            found.append(self.socket.recv(1 << 16).decode())
        return found


@pytest.fixture(params=["path", "abstract"])
def listener(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    address = str(tmp_path / "notify") if request.param == "path" else f"@{tmp_path}/notify"
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    made = Listener(address)
    yield made
    made.socket.close()


def test_systemd_is_notified(mount, archive: Path, listener: Listener) -> None:
    mounted = mount(archive)
    (ready,) = listener.messages("READY=1")
    assert ready == f"READY=1\nSTATUS={archive} is mounted at {mounted.path}"
    assert (mounted / "file").read_text() == "content\n"
    assert mounted.stop() == 0
    assert listener.messages("STATUS") == ["STOPPING=1", "STATUS=unmounted"]
    assert mounted.log == ""


def test_systemd_is_notified_of_a_manual_unmount(mount, archive: Path, listener: Listener) -> None:
    mounted = mount(archive)
    listener.messages("READY=1")
    subprocess.run(["umount", mounted.path], check=True)
    assert mounted.wait() == 0
    assert listener.messages("STATUS") == ["STOPPING=1", "STATUS=unmounted"]


@pytest.mark.parametrize("missing", ["archive", "mountpoint"])
def test_systemd_is_notified_of_errors(gompfs_command, archive: Path, listener: Listener, missing: str) -> None:
    tmp_path = archive.parent
    places = {"archive": archive, "mountpoint": tmp_path}
    places[missing] = tmp_path / "missing" / "missing\nline"
    done = gompfs_command("mount", "-f", places["archive"], places["mountpoint"])
    assert done.returncode == 1
    (status,) = listener.messages("STATUS")
    reason = "No such file or directory|the directory of the mount point does not exist"
    assert re.search(rf"missing\\nline: ({reason})$", status)


def test_nobody_reads_the_notify_socket(mount, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive is mounted nevertheless, with a line in the log."""
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nowhere"))
    mounted = mount(archive)
    assert (mounted / "file").read_text() == "content\n"
    assert mounted.stop() == 0
    assert "systemd could not be notified of 'READY=1" in mounted.log


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """All units, with gompfs replaced by a program that certainly exists."""
    target = tmp_path / "units"
    shutil.copytree(UNITS, target)
    for unit in target.rglob("*.service"):
        text, count = re.subn(r"^(Exec\w+=-?)gompfs ", r"\1/bin/true ", unit.read_text(), flags=re.MULTILINE)
        assert count == (1 if unit.name.startswith("gompfs-verify") else 2)
        unit.write_text(text)
    return target


def verify(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@needs_systemd
@pytest.mark.parametrize(
    "names",
    [
        ["gompfs@.service"],
        ["gompfs@corpus.service"],
        ["mnt-corpus.mount", "mnt-corpus.automount"],
        ["gompfs-verify@.service"],
        ["gompfs-verify@.timer"],
    ],
)
def test_units_of_the_system(units: Path, names: list[str]) -> None:
    if names == ["gompfs@corpus.service"]:
        (units / names[0]).symlink_to("gompfs@.service")
    done = verify(*(units / name for name in names))
    assert (done.returncode, done.stderr) == (0, "")


@needs_systemd
def test_unit_of_a_user(units: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    done = verify("--user", units / "user/gompfs@.service")
    assert (done.returncode, done.stderr) == (0, "")


@needs_systemd
def test_a_wrong_unit_is_found(units: Path) -> None:
    unit = units / "gompfs@.service"
    unit.write_text(unit.read_text().replace("RestrictRealtime=yes", "RestrictRealtime=perhaps"))
    assert "gompfs@.service:" in verify(unit).stderr


def settings(unit: str) -> dict[str, str]:
    lines = (UNITS / unit).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def test_nothing_hides_the_mount() -> None:
    """No unit has a setting that gives the service a mount namespace of its own (systemd.exec(5))."""
    hiding = re.compile(
        "Protect|Private|ReadOnlyPaths|ReadWritePaths|InaccessiblePaths|ExecPaths|NoExecPaths|TemporaryFileSystem|Bind"
        "|Root|DynamicUser|Mount|.*Directory$|Extension"
    )
    for unit in ("gompfs@.service", "user/gompfs@.service"):
        assert [name for name in settings(unit) if hiding.match(name)] == []


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root, to give up capabilities")
def test_the_check_of_an_archive_fails_if_there_is_damage(tmp_path: Path, archive: Path) -> None:
    """With the command and the capabilities of the unit, for an archive that only another user may read."""
    os.chmod(archive, 0o400)
    os.chown(archive, 65534, 65534)
    unit = settings("gompfs-verify@.service")
    kept = unit["CapabilityBoundingSet"].lower().replace("cap_", "+").replace(" ", ",")
    program, *arguments = shlex.split(unit["ExecStart"].replace("/srv/gompfs/%i.gomp", str(archive)))
    assert program == "gompfs"
    command = ["setpriv", f"--bounding-set=-all,{kept}", "--no-new-privs", sys.executable, "-P", "-m", program]
    good = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert (good.returncode, good.stdout, good.stderr) == (0, "", "")
    with open(archive, "r+b") as file:
        file.seek(archive.stat().st_size // 2)
        file.write(bytes(64))
    bad = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert "damage" in bad.stdout + bad.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount as somebody else would")
@pytest.mark.parametrize("unit", ["gompfs@.service", "user/gompfs@.service"])
def test_execstoppost_detaches_only_a_dead_mount(mount, archive: Path, unit: str) -> None:
    """systemd runs ExecStopPost after a failed start too, when the mount may belong to another daemon."""
    mounted = mount(archive)
    program, flag, script, _ = shlex.split(settings(unit)["ExecStopPost"].removeprefix("-").replace("$$", "$"))
    command = [program, flag, script, mounted.path]
    subprocess.run(command, check=True, timeout=60)
    assert (mounted / "file").read_text() == "content\n"
    mounted.process.kill()
    mounted.process.wait()
    subprocess.run(command, check=True, timeout=60)
    assert mount_at(os.path.realpath(mounted.path)) is None


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root, to give up capabilities")
def test_the_capabilities_of_the_unit_are_enough(tmp_path: Path, archive: Path, gompfs_command) -> None:
    """Also for an archive that belongs to another user, who alone may read it."""
    os.chmod(archive, 0o400)
    os.chown(archive, 65534, 65534)
    kept = settings("gompfs@.service")["CapabilityBoundingSet"].lower().replace("cap_", "+").replace(" ", ",")
    place = tmp_path / "place"
    place.mkdir()
    command = ["setpriv", f"--bounding-set=-all,{kept}", "--no-new-privs", sys.executable, "-P", "-m", "gompfs"]
    server = subprocess.Popen(
        [*command, "mount", "-f", "-o", "allow_other", archive, place],
        stderr=subprocess.PIPE,
    )
    try:
        while server.poll() is None and not os.path.ismount(place):
            pass
        assert (place / "file").read_text() == "content\n"
        assert (place / "stats/wordcount").read_text() == "content\t1\n"
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=60) == 0
        assert server.stderr is not None
        assert server.stderr.read() == b""
    finally:
        gompfs_command("umount", "--lazy", place)
        server.kill()
        server.communicate()
