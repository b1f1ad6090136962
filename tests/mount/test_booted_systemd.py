"""The systemd units, the mount helper and fstab entries, under a booted systemd in a container made by debootstrap.

The test downloads 100 MB from a mirror of the host's own distribution, since the interpreter needs the same libraries
in the container.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_mount_helper import write_script
from tree_helpers import PACKAGE_PARENT, pack

UNITS = Path(__file__).parents[2] / "systemd"
CHECKS = Path(__file__).with_name("check_units.sh")
CHECKS_UNIT = """
[Unit]
SuccessAction=exit
FailureAction=exit
[Service]
Type=oneshot
ExecStart=bash /checks.sh
StandardOutput=file:/checks.log
StandardError=inherit
TimeoutStartSec=240s
"""
PACKAGES = "systemd,systemd-sysv,fuse3,python3"
DEVICES = ("/dev/fuse", "/dev/autofs")


def what_is_lacking() -> str:
    """Returns why a container cannot be made, or an empty string if it can."""
    programs = [name for name in ("debootstrap", "systemd-nspawn", "unshare") if not shutil.which(name)]
    devices = [name for name in DEVICES if not os.path.exists(name)]
    return ", ".join([*programs, *devices, *(["root"] if os.geteuid() != 0 else [])])


pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(what_is_lacking()), reason=f"lacks {what_is_lacking()}"),
]


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Path]:
    """The root of a bare system with gompfs, an archive and the units, installed as the README says."""
    root = tmp_path / "container"
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", release, root]
    # A private mount namespace: other processes do not see the temporary mounts.
    subprocess.run(["unshare", "--mount", "--propagation", "private", *command], check=True)
    write_script(root / "usr/local/bin/gompfs", "gompfs.cli", "main")
    write_script(root / "usr/sbin/mount.gompfs", "gompfs.cli.mount_helper", "main")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/file").write_text("content\n")
    (root / "srv/gompfs").mkdir()
    pack(root / "srv/gompfs/corpus.gomp", tmp_path / "tree")
    for unit in (path for path in UNITS.iterdir() if path.is_file()):
        shutil.copy(unit, root / "etc/systemd/system")
    (root / "etc/systemd/system/checks.service").write_text(CHECKS_UNIT)
    shutil.copy(CHECKS, root / "checks.sh")
    yield root
    shutil.rmtree(root)


def test_units(container: Path) -> None:
    command = ["systemd-nspawn", "--boot", f"--directory={container}", "--private-network", "--console=pipe"]
    # Talks to no other systemd, since the host may have none.
    command += ["--register=no", "--keep-unit", "--resolv-conf=off", "--timezone=off", "--link-journal=no"]
    interpreter = {sys.prefix, sys.base_prefix} - {"/usr"}
    command += [f"--bind-ro={path}" for path in sorted({*interpreter, PACKAGE_PARENT})]
    command += [f"--bind={device}" for device in DEVICES]
    environment = {**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
    done = subprocess.run(
        [*command, "systemd.unit=checks.service"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment,
    )
    log = container / "checks.log"
    assert done.returncode == 0, log.read_text()[-4000:] if log.exists() else done.stdout + done.stderr
