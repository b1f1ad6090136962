"""What keeps archives readable in a child of os.fork.

A child has one thread, the one that called fork. The other threads are gone, and what they worked on is as they left
it: the locks that they held stay locked, C++ objects are half changed, and blocks that they claimed are never decoded.
So no object that threads share is used in a child as it is. There are two ways out:

- `call_in_child`: a method that is called in each child before any other code runs there. It replaces locks, and marks
  what has to be opened again. It must not wait for anything, and must not raise.
- `ForkLock`: for libraries that have locks of their own, which nobody can replace (SQLite's are in the process, not in
  the connection). A fork waits until no thread holds a ForkLock, so a child never finds such a library at work.

The C++ side of the same is common/fork.h.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

_Owner = TypeVar("_Owner")
_keys = itertools.count()
_methods: dict[int, tuple[weakref.ref[Any], Callable[[Any], None]]] = {}
_locks: dict[int, weakref.ref[ForkLock]] = {}
# Held by a thread that forks. Every thread passes it on its way to a ForkLock, else a fork might wait for ever.
_gate = threading.RLock()
_held_by_fork: list[threading.RLock] = []


def call_in_child(owner: _Owner, method: Callable[[_Owner], None]) -> None:
    """Call `method(owner)` in every child that is forked from now on, as long as `owner` lives."""
    key = next(_keys)
    _methods[key] = weakref.ref(owner, lambda _: _methods.pop(key, None)), method


class ForkLock:
    """A lock that excludes forks too: a fork waits until no other thread holds it.

    Its holder must not wait for other threads. The thread that holds it may take it again, and may fork.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        key = next(_keys)
        _locks[key] = weakref.ref(self, lambda _: _locks.pop(key, None))

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
