"""The man pages in man/ are those that tools/man.py makes of the help, and the wheel installs them."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess

import pytest
from documents import ROOT

from gompfs.cli.application import COMMAND_MODULES
from man import man_pages

COMMITTED = {path.name: path.read_text() for path in sorted((ROOT / "man").iterdir())}


def test_man_pages_are_those_of_the_help() -> None:
    assert man_pages() == COMMITTED, "run: python tools/man.py"


def test_there_is_a_page_for_every_command() -> None:
    assert set(COMMITTED) == {"gompfs.1", "mount.gompfs.8", *(f"gompfs-{command}.1" for command in COMMAND_MODULES)}
    for command in COMMAND_MODULES:
        assert rf"\fBgompfs\-{command}\fR(1)" in COMMITTED["gompfs.1"]
    assert r"\fB\-b, \-\-block\-size SIZE\fR" in COMMITTED["gompfs-pack.1"]


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
@pytest.mark.parametrize("name", COMMITTED)
def test_groff_reads_it_without_a_warning(name: str) -> None:
    command = ["groff", "-man", "-ww", "-z", "-Tutf8"]
    done = subprocess.run(command, input=COMMITTED[name].encode(), capture_output=True, check=True)
    assert done.stderr == b""


def test_the_wheel_installs_them() -> None:
    try:
        installed = importlib.metadata.files("gompfs") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("gompfs runs from a checkout")
    pages = {path.as_posix().partition("share/man/")[2] for path in installed if "share/man/" in path.as_posix()}
    assert pages == {f"man{name[-1]}/{name}" for name in COMMITTED}
