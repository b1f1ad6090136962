"""Runs gompfs commands in forks of a process that has imported everything they need and has no threads.

A fork begins with the work of the command at once, and costs milliseconds; an interpreter with NumPy takes 0.3 s.

As a program, reads requests from standard input, one JSON object a line, and answers each with the exit status of the
command. A request has the `arguments` of the command, its `environment`, and the paths of its `output` and `errors`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module

from gompfs.cli.application import COMMAND_MODULES, run

for _module in ("pack", "pack.packer", "statistics", "engine.cpu"):
    import_module(f"gompfs.{_module}")
for _module in set(COMMAND_MODULES.values()):
    import_module(f"gompfs.cli.{_module}")


def fork(function: Callable[[], int], temporary: str, output: str = os.devnull) -> int:
    """Calls a function in a forked process, which exits with the status that the function returns."""
    process = os.fork()
    if process:
        return process
    try:
        os.environ["TMPDIR"] = tempfile.tempdir = temporary
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os._exit(function())
    except BaseException as error:
        os.write(2, f"{error!r}\n".encode())
    finally:
        os._exit(70)


def _answer(request: dict[str, object]) -> int:
    def command() -> int:
        os.environ.update(request["environment"])  # type: ignore[call-overload]
        os.dup2(os.open(str(request["errors"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        status = run(request["arguments"])  # type: ignore[arg-type]
        sys.stderr.flush()
        return status

    process = fork(command, request["environment"]["TMPDIR"], str(request["output"]))  # type: ignore[index]
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(f"{_answer(json.loads(line))}\n")
        sys.stdout.flush()
