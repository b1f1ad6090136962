"""Questions to mounts whose daemons may hang, with a timeout.

A process that accesses a mount whose daemon hangs blocks in the kernel; some of these waits do not even end on SIGKILL.
So a child process accesses the mount, and the caller waits for the child's answer for a limited time. A thread would
not do: a process cannot end before all its threads have left the kernel.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable, Hashable, Mapping

from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeVar

    Mount = TypeVar("Mount", bound=Hashable)

Question = Callable[[], bytes]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PIECE_SIZE = 1 << 20
_END = b"."  # the last byte of every complete answer
_stuck: dict[Hashable, int] = {}
"""By mount: a child that was killed because it had not answered in time. No mount has more than one."""


def ask(questions: Mapping[Mount, Question], seconds: float) -> dict[Mount, bytes]:
    """Ask every mount its question, all at the same time.

    Returns the answers by mount. A mount has no answer if its question failed, or if it did not answer within
    `seconds`. If an earlier child still hangs in a mount, that mount is not asked again.
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
    """Start a child that answers the question. Returns its process id, and the read end of its pipe."""
    reading, writing = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # the caller's handlers must not run in the child
    try:
        child = os.fork()
        if child == 0:
            _answer(question, writing)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(writing)
    return child, reading


def _answer(question: Question, writing: int) -> None:
    """Body of the child process. Never returns."""
    try:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        # Do not keep the caller's pipes open: programs that read from them would wait until the child ends.
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
    """Returns whether the child has ended."""
    try:
        return os.waitid(os.P_PID, child, options) is not None
    except ChildProcessError:
        return True  # SIGCHLD is ignored: the kernel has reaped it
