"""The ripgrep that searches are compared with: `RG`, or the one in PATH; and in what its versions differ.

gompfs does what ripgrep 15 does. `DIFFERENCES` names what older versions do otherwise, so that tests pass beside them.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

PROGRAM = os.environ.get("RG") or shutil.which("rg") or "rg"
REFERENCE = 15
"""The version whose output is that of gompfs."""


@functools.cache
def version() -> int:
    """The major version of the program."""
    output = subprocess.run([PROGRAM, "--version"], capture_output=True, check=True, text=True).stdout
    found = re.match(r"ripgrep (\d+)", output)
    assert found is not None, output
    return int(found[1])


def ripgrep(*arguments: str | Path, cwd: Path | None = None) -> tuple[int, bytes]:
    """Searches all files with ripgrep. Returns its status and its output."""
    command = [PROGRAM, "--no-config", "--no-ignore", "--hidden", "--sort=path", *arguments]
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode, done.stdout


class Difference(NamedTuple):
    """What ripgrep does in the same way as gompfs only from one version on."""

    since: int
    what: str
    concerns: Callable[[Sequence[str]], bool]
    """Tells of the arguments of a search whether the difference may show."""


_LIMITS = re.compile(r"-m\d+|--max-count(=.*)?|-m")
_CONTEXT = re.compile(r"-[ABC]\d*")
_COUNTS = {"-c", "--count-matches"}
_OUTPUTS = {*_COUNTS, "-l", "-q", "--files-without-match", "--json", "--files"}


def _has(*options: str) -> Callable[[Sequence[str]], bool]:
    return lambda arguments: set(options) <= set(arguments)


def _matches(arguments: Sequence[str], option: re.Pattern[str]) -> bool:
    return any(option.fullmatch(argument) for argument in arguments)


def _patterns(arguments: Sequence[str]) -> str:
    """The patterns of -e, and what may be one without it."""
    return " ".join(arguments)


DIFFERENCES = (
    Difference(14, "of -c, -l, --json and others, the last one counts", lambda given: len(_OUTPUTS & set(given)) > 1),
    Difference(14, "--trim comes before -M", _has("--trim")),
    Difference(14, r"\B does not match next to bytes that are not UTF-8", lambda given: r"\B" in _patterns(given)),
    Difference(14, "a comment in (?x) must end with a line feed", lambda given: "(?x)" in _patterns(given)),
    Difference(14, "GB 18030 is that of 2022", lambda given: not {"gbk", "gb18030"}.isdisjoint(given)),
    Difference(14, "-r does not replace an empty match at the end of the last line", _has("-r")),
    Difference(15, "-M counts the line feed of a line with replacements, and --json has them", _has("-r")),
    Difference(15, "-v with -l or -q reads the file to its end, and leaves it out if it is binary", _has("-v", "-l")),
    Difference(15, "an empty match at the end of a file is counted", _has("--count-matches")),
    Difference(15, "with -U, -m counts matches", lambda given: "-U" in given and _matches(given, _LIMITS)),
)
"""Differences between versions, oldest first."""

_ODDITIES = (
    (
        "-c also counts the context after the lines of -m",
        lambda given: _COUNTS & set(given) and _matches(given, _LIMITS),
    ),
    ("-v prints context after the lines of -m as matches", lambda given: "-v" in given and _matches(given, _LIMITS)),
)
"""What ripgrep 15 does and gompfs does not."""


def is_comparable(arguments: Sequence[str]) -> bool:
    """Whether gompfs prints what this version of ripgrep prints."""
    has_oddity = _matches(arguments, _CONTEXT) and any(concerns(arguments) for _, concerns in _ODDITIES)
    is_older = any(version() < each.since and each.concerns(arguments) for each in DIFFERENCES)
    return not has_oddity and not is_older
