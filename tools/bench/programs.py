"""The programs that the tables run: gompfs itself, and those of others."""

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
    """Lets commands find the gompfs that this process has imported, these tools, and what pip put beside Python."""
    parents = [str(Path(gompfs.__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]
    python_path = [*parents, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PATH": _search_path(), "PYTHONPATH": os.pathsep.join(python_path)}


def _search_path() -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])


def lacking(programs: Sequence[str]) -> list[str]:
    """Those that are not installed."""
    return [program for program in programs if shutil.which(program, path=_search_path()) is None]


def pipeline(*commands: Sequence[str | Path]) -> list[str | Path]:
    """A shell's pipeline that fails where any of its commands fails."""
    return ["bash", "-o", "pipefail", "-c", " | ".join(shlex.join(map(str, command)) for command in commands)]


def tar_of(source: Path) -> list[str | Path]:
    """Writes a tar of a directory's content, or of one file, to standard output."""
    if source.is_dir():
        return ["tar", "-C", source, "-cf", "-", "."]
    return ["tar", "-C", source.parent, "-cf", "-", source.name]


def version_of(program: str) -> str:
    """The version that a program prints about itself."""
    if lacking([program]):
        return "not installed"
    # squashfs-tools know -version, gzip and others --version; each prints it in its first line or two.
    option = "-version" if "squash" in program else "--version"
    done = subprocess.run([program, option], capture_output=True, text=True, check=False, env=environment(), timeout=60)
    found = re.search(r"\d+\.\d+(\.\w+)*", done.stdout + done.stderr)
    return found.group() if found else "installed, version unknown"
