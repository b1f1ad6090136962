"""Questions to mounts whose daemons may hang.

A process that asks a mount whose daemon hangs waits in the kernel; some waits there do not even end by SIGKILL. So
a child process asks, and the caller waits for the child's answer for a limited time. A thread would not do: a process
does not end before all its threads have left the kernel.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

Mount = TypeVar("Mount", bound=Hashable)
Question = Callable[[], bytes]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PIECE_SIZE = 1 << 20
_END = b"."  # ends every answer: one without it is not complete
_stuck: dict[Hashable, int] = {}
"""Children that were killed as they had not answered in time, by mount; no mount has more than one."""


def ask(questions: Mapping[Mount, Question], seconds: float) -> dict[Mount, bytes]:
    """Ask all mounts at once, each its question.

    Returns the answers by mount. A mount is missing if its question failed, or if it did not answer within `seconds`.
    It is missing at once as long as the child that asked it before has not ended.
    """
    _reap_stuck()
    deadline = time.monotonic() + seconds
    children: dict[Mount, int] = {}
    parts: dict[Mount, list[bytes]] = {}
    answers: dict[Mount, bytes] = {}
    with selectors.DefaultSelector() as selector:
        try:
            for mount, question in questions.items():
                if mount not in _stuck:
                    children[mount], reading = _start(question)
                    parts[mount] = []
                    selector.register(reading, selectors.EVENT_READ, mount)
            while selector.get_map() and (left := deadline - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    piece = os.read(key.fd, _PIECE_SIZE)
                    parts[key.data].append(piece)
                    if not piece:
                        selector.unregister(key.fd)
                        os.close(key.fd)
                        _reap(children.pop(key.data), os.WEXITED)
                        answers[key.data] = b"".join(parts[key.data])
        finally:
            for key in selector.get_map().values():
                os.close(key.fd)
            for mount, child in children.items():
                os.kill(child, signal.SIGKILL)
                _stuck[mount] = child
    return {mount: answer.removesuffix(_END) for mount, answer in answers.items() if answer.endswith(_END)}


def _start(question: Question) -> tuple[int, int]:
    """The child process, and the end of its pipe to read from."""
    reading, writing = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # no handler of the caller's may run in the child
    try:
        child = os.fork()
        if child == 0:
            _answer(question, writing)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(writing)
    return child, reading


def _answer(question: Question, writing: int) -> None:
    """The child's whole life; never returns."""
    try:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        # A pipe of the caller's that the child kept would keep others waiting.
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(question() + _END)
    finally:
        os._exit(0)


def _reap_stuck() -> None:
    for mount, child in [*_stuck.items()]:
        if _reap(child, os.WEXITED | os.WNOHANG):
            del _stuck[mount]


def _reap(child: int, options: int) -> bool:
    """Whether the child has ended."""
    try:
        return os.waitid(os.P_PID, child, options) is not None
    except ChildProcessError:
        return True  # SIGCHLD is ignored
