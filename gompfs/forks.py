"""Keeps archives readable in a child of os.fork.

A child process has only the thread that called fork. The other threads are gone, and their data is in the state of the
moment of the fork: the locks that they held stay locked, C++ objects are half changed, and blocks that they claimed are
never decoded. So a child must not use an object that threads share without repairing it. There are two ways:

- `call_in_child` registers a method that runs in each child before any other code. The method replaces locks, and marks
  resources that must be opened again. It must not wait for anything, and must not raise.
- `ForkLock` is for libraries with internal locks that cannot be replaced (SQLite's locks belong to the process, not to
  the connection). A fork waits until no thread holds a ForkLock, so a child never inherits such a library in the middle
  of a call.

The C++ counterpart is common/fork.h.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable
from functools import partial
from types import TracebackType

from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, TypeVar

    _Owner = TypeVar("_Owner")

_keys = itertools.count()
_methods: dict[int, tuple[weakref.ref[Any], Callable[[Any], None]]] = {}
_locks: dict[int, weakref.ref[ForkLock]] = {}
# Held by a thread that forks. Every other thread takes and releases it before it takes a ForkLock; otherwise threads
# that take turns with a ForkLock could make a fork wait forever.
_gate = threading.RLock()
_held_by_fork: list[threading.RLock] = []


def call_in_child(owner: _Owner, method: Callable[[_Owner], None]) -> None:
    """Call `method(owner)` in every child that is forked from now on, while `owner` is alive."""
    key = next(_keys)
    _methods[key] = weakref.ref(owner, _remover(_methods, key)), method


def _remover(registered: dict[int, Any], key: int) -> Callable[[weakref.ref[Any]], object]:
    """Returns what removes a key when an object dies.

    It is not Python code: there, the KeyboardInterrupt of a signal could be raised, which would be printed and lost.
    """
    return partial(registered.pop, key)


class ForkLock:
    """A lock that also excludes forks: a fork waits until no other thread holds the lock.

    The thread that holds the lock must not wait for other threads. It may take the lock again, and may fork.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        key = next(_keys)
        _locks[key] = weakref.ref(self, _remover(_locks, key))

    def __enter__(self) -> None:
        with _gate:
            pass
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def _take_for_fork(self) -> None:
        self._lock.acquire()
        _held_by_fork.append(self._lock)


def _before_fork() -> None:
    _gate.acquire()
    for reference in list(_locks.values()):
        lock = reference()
        if lock is not None:
            lock._take_for_fork()


def _after_fork() -> None:
    while _held_by_fork:
        _held_by_fork.pop().release()
    _gate.release()


def _after_fork_in_child() -> None:
    _after_fork()
    for reference, method in list(_methods.values()):
        owner = reference()
        if owner is not None:
            method(owner)


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
