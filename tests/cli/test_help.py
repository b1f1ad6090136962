"""Help, version, and completion scripts."""

from __future__ import annotations

import pytest

from gompfs import __version__
from gompfs.cli.application import COMMAND_MODULES
from gompfs.cli.output import human_size, ratio


def test_help_lists_every_command(gompfs):
    result = gompfs("--help")
    assert result.status == 0
    lines = result.output.decode().partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines] == list(COMMAND_MODULES)
    assert all(line.endswith(".") for line in lines)


@pytest.mark.parametrize("command", COMMAND_MODULES)
def test_every_command_has_help(gompfs, command):
    result = gompfs(command, "-h")
    assert result.status == 0
    assert result.lines[0].startswith(f"Usage: gompfs {command} ")


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(gompfs, option):
    assert gompfs(option).output == f"gompfs {__version__}\n".encode()


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (9_999, "10.0 kB"),
        (99_960, "100 kB"),
        (999_600, "1.00 MB"),
        (1_360_000_000, "1.36 GB"),
    ],
)
def test_human_size(size, text):
    assert human_size(size) == text


def test_ratio_of_an_empty_archive():
    assert ratio(0, 0) == 1.0
    assert ratio(300, 100) == 3.0
