"""The order of a walk: directories that differ in their numbers only, as versions do, are walked side by side.

`django-4.2.1` and `django-4.2.10` are versions of each other. Files of the same name in both are packed one after the
other, because encoders find the bytes that two files share only if the files are near each other.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple, TypeAlias

__all__ = ["Order", "Step", "numbers_in", "without_numbers"]

_MAX_VERSIONS = 16
_MAX_OPEN = 256
_NAMES_KEPT = 1 << 12
_NUMBER = re.compile(rb"[0-9]+(?:\.[0-9]+)*")

_Place: TypeAlias = tuple[int, bytes]
_Entry: TypeAlias = tuple[bytes, int]  # name and kind
_Numbered: TypeAlias = tuple[int, bytes, int]  # number of the directory, name and kind


class Step(NamedTuple):
    """Files of one kind in one directory, or directories that are to be walked side by side.

    The directory of each name is given by its number among those that are walked now.
    """

    kind: int
    names: list[_Place]


class Order:
    """The order of the entries of one directory, or of several that are walked side by side.

    The entries of a single directory come in byte order, except that versions follow the first of them.
    """

    def __init__(self, listings: Sequence[Sequence[_Entry]], directory_kind: int, num_open: int) -> None:
        """`listings` has the names and kinds of the entries of each directory, in byte order.

        `directory_kind` is the kind of directories, and `num_open` the number of those that the walk is in. If these
        are many, no more are walked side by side.
        """
        self._listings = listings
        self._directory_kind = directory_kind
        self._max_versions = _MAX_VERSIONS if num_open <= _MAX_OPEN else 1
        self._versions: dict[bytes, list[_Place]] = {}
        for number, name, kind in self._entries():
            if kind == directory_kind:
                self._versions.setdefault(without_numbers(name), []).append((number, name))
        for places in self._versions.values():
            places.sort(key=lambda place: (numbers_in(place[1]), place[1], place[0]))

    def directories(self) -> Iterator[_Place]:
        """Yields the directories in the order in which `steps` names them."""
        return itertools.chain.from_iterable(self._versions.values())

    def steps(self) -> Iterator[Step]:
        """Yields all entries."""
        waiting = dict(self._versions)
        for is_directory, group in itertools.groupby(self._entries(), lambda entry: entry[2] == self._directory_kind):
            if not is_directory:
                yield from self._steps_of_files(group)
                continue
            for _, name, kind in group:
                places = waiting.pop(without_numbers(name), [])
                for start in range(0, len(places), self._max_versions):
                    yield Step(kind, places[start : start + self._max_versions])

    def _entries(self) -> Iterator[_Numbered]:
        """Yields number of directory, name and kind: if there are several directories, equal names together."""
        entries = ((number, *entry) for number, listing in enumerate(self._listings) for entry in listing)
        if len(self._listings) == 1:
            return entries
        return iter(sorted(entries, key=lambda entry: (without_numbers(entry[1]), numbers_in(entry[1]), entry[:2])))

    def _steps_of_files(self, entries: Iterator[_Numbered]) -> Iterator[Step]:
        """Yields files of one kind and directory that follow each other together."""
        of_directory: Callable[[_Numbered], tuple[int, int]] = itemgetter(2, 0)
        for (kind, _), group in itertools.groupby(entries, of_directory):
            yield Step(kind, [(number, name) for number, name, _ in group])


@lru_cache(_NAMES_KEPT)
def without_numbers(name: bytes) -> bytes:
    """Returns a name or a path, with the same sign in place of each number or version."""
    return _NUMBER.sub(b"#", name)


@lru_cache(_NAMES_KEPT)
def numbers_in(name: bytes) -> tuple[int, ...]:
    """Returns the numbers in a name or a path, in their order."""
    return tuple(int(number) for number in re.findall(rb"[0-9]+", name))
