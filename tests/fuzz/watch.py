"""Watches a forked child that examines a mutant: its time, its memory, and how it ends."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

_POLL_SECONDS = 0.05
# multiple of the time limit allowed to a command that uses a processor less than half of the limit: the machine is busy
_HANGING = 5
_TICKS = os.sysconf("SC_CLK_TCK")
_PROCESSES_AT_ONCE = 6  # commands that one step runs as processes one after another
_OWN_STEPS = {"start", "slow reading"}  # steps that do not measure gompfs


@dataclass
class Watch:
    """What a child reported and what was measured. `seconds` is the limit for each command, `memory` is in bytes."""

    seconds: float
    memory: int
    step: int
    """The number of the step after the one that began last."""
    findings: list[str] = field(default_factory=list)
    is_sound: bool = False
    num_commands: int = 0
    longest: float = 0.0
    peak: int = 0
    _command: str = "start"
    _begun: float = field(default_factory=time.monotonic)
    _processor_begun: float = 0.0
    _is_killed: bool = False
    _memory_of_parent: int = 0
    """The memory that a fork begins with, which may be much in a test process."""

    def run(self, be_child: Callable[[int], None]) -> bool:
        """Forks a child that calls `be_child` with a descriptor for events.

        Returns whether it completed all its steps.
        """
        reader, writer = os.pipe()
        self._memory_of_parent = _memory(os.getpid())
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            be_child(writer)
        os.close(writer)
        pending = b""
        while (piece := _read(reader)) != b"":
            *lines, pending = (pending + (piece or b"")).split(b"\n")
            for line in lines:
                self._take(pid, *json.loads(line))
            if not self._is_killed:
                self._check(pid)
        os.close(reader)
        _, status, usage = os.wait4(pid, 0)
        self.peak = max(self.peak, (usage.ru_maxrss << 10) - self._memory_of_parent)
        if self.peak > self.memory and not self._is_killed:
            self.findings.append(f"memory: one of the commands: {self.peak >> 20} MiB")
        if status and not self._is_killed:
            self._tell(f"signal: {self._command}: wait status {status}")
        return status == 0

    def _take(self, pid: int, kind: str, text: str) -> None:
        """Handles an event of the child."""
        if kind in ("step", "command"):
            if self._command not in _OWN_STEPS:
                self.longest = max(self.longest, time.monotonic() - self._begun)
            self._begun, self._processor_begun, self._command = time.monotonic(), _processor_seconds(pid), text
            self.step += kind == "step"
            self.num_commands += kind == "command" or text == "mount"
        elif kind == "finding":
            self.findings.append(text)
        elif kind == "sound":
            self.is_sound = True

    def _check(self, pid: int) -> None:
        """Kills the child if it takes too long or too much memory."""
        limit = self.seconds * (_PROCESSES_AT_ONCE if self._command.startswith("process") else 1)
        memory = _memory(pid) - self._memory_of_parent
        if memory > self.memory:
            self._tell(f"memory: {self._command}: {memory >> 20} MiB")
        elif (taken := time.monotonic() - self._begun) > limit and (
            taken > _HANGING * limit or _processor_seconds(pid) - self._processor_begun > limit / 2
        ):
            self._tell(f"time: {self._command}: more than {limit:.0f} s")
        else:
            return
        self._is_killed = True
        os.kill(pid, signal.SIGKILL)

    def _tell(self, finding: str) -> None:
        if self._command not in _OWN_STEPS:
            self.findings.append(finding)


def _read(reader: int) -> bytes | None:
    """Returns what the child has written, None if nothing comes for a while, or empty bytes if it has ended."""
    ready, _, _ = select.select([reader], [], [], _POLL_SECONDS)
    return os.read(reader, 1 << 16) if ready else None


def _memory(pid: int) -> int:
    """Returns the resident memory of a process in bytes, or 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def _processor_seconds(pid: int) -> float:
    """Returns the CPU time of all threads of a process, or 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    except (OSError, IndexError):
        return 0.0
