"""What each command imports. Packages that a command does not need would make it slow to start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Runs a command line, then prints the names of all modules that are loaded.
_RUN = """
import sys
from gompfs.cli import main
try:
    main()
finally:
    sys.stdout.flush()
    sys.stdout.buffer.write(b"\\0" + " ".join(sys.modules).encode())
"""
_READERS_NEED_NO = {"numpy", "mfusepy", "rich", "asyncio", "ctypes", "concurrent.futures", "logging"}
_READERS_NEED_NO |= {"pathlib", "tempfile", "traceback", "gompfs.options", "gompfs.text", "gompfs.index.writer"}
# They take longer than the rest of the start: gompfs.light_types and gompfs.cli.command_line are in their place.
_SLOW = {"typing", "dataclasses", "inspect", "re", "argparse", "shlex", "uuid", "importlib.util", "datetime"}


def loaded_by(*arguments: str | Path) -> set[str]:
    """Returns the modules that a command has loaded when it ends."""
    done = subprocess.run([sys.executable, "-P", "-c", _RUN, *arguments], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition(b"\0")[2].decode().split())


def test_the_version_needs_little() -> None:
    assert loaded_by("--version").isdisjoint(_SLOW | {"enum", "signal", "gompfs.cli.application"})


def test_the_package_itself_needs_nothing() -> None:
    script = "import sys, gompfs; print({'typing', 're', 'numpy', 'gompfs.archive'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, check=True)
    assert done.stdout == b"set()\n"


def test_help_imports_what_it_describes_only() -> None:
    assert loaded_by("--help").isdisjoint({"numpy", "sqlite3", "rich", "mfusepy", "gompfs.archive"})


@pytest.mark.parametrize(
    "arguments",
    [("ls",), ("ls", "-lR"), ("cat", "docs/a.txt"), ("info",)],
    ids=lambda arguments: " ".join(arguments),
)
def test_reading_commands_need_no_numpy(archive: Path, arguments: tuple[str, ...]) -> None:
    command, *rest = arguments
    loaded = loaded_by(command, archive, *rest) if command == "cat" else loaded_by(command, *rest, archive)
    assert "gompfs.archive.archive" in loaded
    assert not loaded & _READERS_NEED_NO
    if command != "info":
        assert not loaded & _SLOW


def test_a_search_needs_no_slow_modules(archive: Path) -> None:
    assert not loaded_by("grep", "-q", "", archive) & (_SLOW | _READERS_NEED_NO)


@pytest.mark.parametrize("command", ["stats", "grep"])
def test_dask_is_imported_for_its_option_only(archive: Path, command: str) -> None:
    loaded = loaded_by("stats", archive, "wordcount") if command == "stats" else loaded_by("grep", "-q", "", archive)
    assert "gompfs.cli.cluster" in loaded
    assert loaded.isdisjoint({"dask", "distributed", "fsspec", "gompfs.integrations.dask", "pyarrow"})


def test_packing_needs_no_numpy(tree: Path, tmp_path: Path) -> None:
    """A small pack takes less time than the import of NumPy."""
    assert not loaded_by("pack", "-q", tree, tmp_path / "tree.gomp") & {"numpy", "rich", "mfusepy"}
