"""The programs that the tables run: gompfs and its peers."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import gompfs

GOMPFS: list[str | Path] = [sys.executable, "-P", "-m", "gompfs"]


def environment() -> dict[str, str]:
    """Returns an environment in which commands find the imported gompfs, these tools, and programs beside Python."""
    parents = [str(Path(gompfs.__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]
    python_path = [*parents, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PATH": _search_path(), "PYTHONPATH": os.pathsep.join(python_path)}


def _search_path() -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])


def lacking(programs: Sequence[str]) -> list[str]:
    """Returns the programs that are not installed."""
    return [program for program in programs if shutil.which(program, path=_search_path()) is None]


def pipeline(*commands: Sequence[str | Path]) -> list[str | Path]:
    """Returns a shell pipeline that fails if any of its commands fails."""
    return ["bash", "-o", "pipefail", "-c", " | ".join(shlex.join(map(str, command)) for command in commands)]


def tar_of(source: Path) -> list[str | Path]:
    """Returns a command that writes a tar of a directory's content, or of one file, to standard output."""
    if source.is_dir():
        return ["tar", "-C", source, "-cf", "-", "."]
    return ["tar", "-C", source.parent, "-cf", "-", source.name]


def version_of(program: str) -> str:
    """Returns the version that a program prints."""
    if lacking([program]):
        return "not installed"
    # squashfs-tools take -version, restic a command, the others --version; the version is in the first two lines.
    option = "-version" if "squash" in program else "version" if program == "restic" else "--version"
    done = subprocess.run([program, option], capture_output=True, text=True, check=False, env=environment(), timeout=60)
    found = re.search(r"\d+\.\d+(\.\w+)*", done.stdout + done.stderr)
    return found.group() if found else "installed, version unknown"
