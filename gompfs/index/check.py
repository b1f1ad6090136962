"""Finds violations of docs/format.md in an index, by queries over whole tables, for `verify`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from gompfs.codec.constants import MAX_DICTIONARY_SIZE
from gompfs.errors import CorruptIndexError, display_path
from gompfs.light_types import TYPE_CHECKING, NamedTuple
from gompfs.model import (
    DICTIONARY_SECTION,
    MAX_COMMAND_SIZE,
    MAX_COMMENT_SIZE,
    MAX_INO,
    MAX_SYMLINK_TARGET_SIZE,
    MAX_XATTR_NAME_SIZE,
    MAX_XATTR_VALUE_SIZE,
    NEXT_INO,
    ROOT_INO,
    WORD_RULES,
    PartKind,
    Problem,
    Segment,
    first_problems,
)

if TYPE_CHECKING:
    from typing import Any

    Query = Callable[..., list[tuple[Any, ...]]]


_MAX_ROWS = 1 << 16
_IS_DIRECTORY = "mode & 61440 = 16384"
_IS_FILE = "mode & 61440 = 32768"
_IS_SYMLINK = "mode & 61440 = 40960"
_IS_DEVICE = "mode & 61440 IN (8192, 24576)"
_IS_KNOWN = "mode & 61440 IN (4096, 8192, 16384, 24576, 32768, 40960, 49152)"


class _Rule(NamedTuple):
    """A query for rows that break a rule. A row holds an inode number or NULL, then the values for `reason`."""

    reason: str
    query: str


_INODES = (
    _Rule(
        "its number is not between 1 and 2^62 - 1",
        f"SELECT ino FROM inode WHERE ino >= {MAX_INO}",
    ),
    _Rule(
        "its mode {0} has no valid file type",
        f"SELECT ino, mode FROM inode WHERE mode NOT BETWEEN 0 AND 65535 OR NOT {_IS_KNOWN}",
    ),
    _Rule(
        "its owner {0} or group {1} does not fit into 32 bits",
        "SELECT ino, uid, gid FROM inode WHERE uid NOT BETWEEN 0 AND 4294967295 OR gid NOT BETWEEN 0 AND 4294967295",
    ),
    _Rule(
        "its size is {0}, and only regular files and symbolic links have one",
        f"SELECT ino, size FROM inode WHERE size > 0 AND NOT {_IS_FILE} AND NOT {_IS_SYMLINK}",
    ),
    _Rule(
        "its target has {1} bytes, its size is {0}",
        f"SELECT ino, size, length(symlink_target) FROM inode WHERE {_IS_SYMLINK} AND size != length(symlink_target)",
    ),
    _Rule(
        "its target is empty, or longer than 4,095 bytes",
        f"SELECT ino FROM inode WHERE {_IS_SYMLINK}"
        f" AND length(symlink_target) NOT BETWEEN 1 AND {MAX_SYMLINK_TARGET_SIZE}",
    ),
    _Rule(
        "it has the device number {0} and is not a device",
        f"SELECT ino, rdev FROM inode WHERE rdev != 0 AND NOT {_IS_DEVICE}",
    ),
)

_NAMES = (
    _Rule(
        "the root directory is missing",
        f"SELECT {ROOT_INO} WHERE NOT EXISTS (SELECT 1 FROM inode WHERE ino = {ROOT_INO} AND {_IS_DIRECTORY})",
    ),
    _Rule(
        "its entry {0} has an impossible name",
        "SELECT parent, name FROM dirent WHERE length(name) NOT BETWEEN 1 AND 255"
        " OR name IN (x'2e', x'2e2e') OR instr(name, x'2f')",
    ),
    _Rule(
        "its entry {0} points to inode {1}, which does not exist",
        "SELECT parent, name, ino FROM dirent WHERE ino NOT IN (SELECT ino FROM inode)",
    ),
    _Rule(
        "it has entries and is not a directory",
        f"SELECT DISTINCT parent FROM dirent WHERE parent NOT IN (SELECT ino FROM inode WHERE {_IS_DIRECTORY})",
    ),
    _Rule(
        "it has no name",
        f"SELECT ino FROM inode WHERE ino != {ROOT_INO} AND ino NOT IN (SELECT ino FROM dirent)",
    ),
    _Rule("it is the root directory and has a name", f"SELECT DISTINCT ino FROM dirent WHERE ino = {ROOT_INO}"),
    _Rule(
        "it is a directory and has {0} names",
        "SELECT ino, COUNT(*) FROM dirent JOIN inode USING (ino)"
        f" WHERE {_IS_DIRECTORY} AND ino != {ROOT_INO} GROUP BY ino HAVING COUNT(*) > 1",
    ),
    _Rule(
        "it is a directory that cannot be reached from the root",
        "WITH RECURSIVE"
        f" directory(ino) AS (SELECT ino FROM inode WHERE {_IS_DIRECTORY}),"
        f" reached(ino) AS (SELECT {ROOT_INO} UNION SELECT d.ino FROM reached CROSS JOIN dirent d"
        "  ON d.parent = reached.ino WHERE d.ino IN directory)"
        " SELECT ino FROM directory WHERE ino NOT IN reached AND ino IN (SELECT ino FROM dirent)",
    ),
)

_SECTION_OF_NO_SEGMENT = _Rule(
    "section {0} belongs to segment {1}, which does not exist",
    "SELECT NULL, kind, segment FROM section WHERE segment NOT IN (SELECT number FROM segment)",
)
_CONTENTS = (
    _Rule(
        "it has extents and is not a regular file",
        f"SELECT DISTINCT ino FROM extent WHERE ino NOT IN (SELECT ino FROM inode WHERE {_IS_FILE})",
    ),
    _Rule("its extent at file_offset {0} is empty", "SELECT ino, file_offset FROM extent WHERE size = 0"),
    _Rule(
        "its extent at file_offset {0} overlaps the one before",
        "SELECT ino, file_offset FROM (SELECT ino, file_offset, file_offset < LAG(file_offset + size)"
        " OVER (PARTITION BY ino ORDER BY file_offset) AS overlaps FROM extent) WHERE overlaps",
    ),
    _Rule(
        "its extent at file_offset {0} ends after the end of the file",
        "SELECT ino, file_offset FROM extent JOIN inode USING (ino)"
        f" WHERE {_IS_FILE} AND file_offset + extent.size > inode.size",
    ),
    _Rule(
        "it has extended attributes, but does not exist",
        "SELECT DISTINCT ino FROM xattr WHERE ino NOT IN (SELECT ino FROM inode)",
    ),
    _Rule(
        "its extended attribute {0} has an impossible name, or a value above 64 KiB",
        f"SELECT ino, name FROM xattr WHERE length(name) NOT BETWEEN 1 AND {MAX_XATTR_NAME_SIZE}"
        f" OR instr(name, x'2e') < 2 OR length(value) > {MAX_XATTR_VALUE_SIZE}",
    ),
    _Rule(
        "it is listed as a binary file and is not a regular file",
        f"SELECT ino FROM binary_file WHERE ino NOT IN (SELECT ino FROM inode WHERE {_IS_FILE})",
    ),
    _SECTION_OF_NO_SEGMENT,
    _Rule(
        "the command or the comment of generation {0} is too long",
        f"SELECT NULL, number FROM generation WHERE length(CAST(command AS BLOB)) > {MAX_COMMAND_SIZE}"
        f" OR length(CAST(comment AS BLOB)) > {MAX_COMMENT_SIZE}",
    ),
)


def find_problems(query: Query, segments: Sequence[Segment], block_size: int, generation: int) -> Iterator[Problem]:
    """Yields all problems, one kind after another. `query` runs SQL, and raises CorruptIndexError."""
    checks: list[Callable[[], Iterator[Problem]]] = [
        lambda: _check_facts(query),
        lambda: _check_generations(query, generation),
        *(lambda rule=rule: _ask(query, rule) for rule in (*_INODES, *_NAMES, *_CONTENTS)),
        lambda: _check_extents(query, segments, block_size),
        lambda: _check_parts(query, segments),
    ]
    errors = set()
    for check in checks:
        try:
            yield from first_problems(check())
        except CorruptIndexError as error:
            if error.message not in errors:
                yield Problem(error.message)
            errors.add(error.message)


def _ask(query: Query, rule: _Rule) -> Iterator[Problem]:
    for ino, *fields in query(rule.query):
        yield Problem(rule.reason.format(*map(_shown, fields)), ino)


def _shown(value: object) -> str:
    return display_path(value) if isinstance(value, bytes | str) else str(value)


def check_to_extend(query: Query, generation: int) -> Iterator[Problem]:
    """Yields the problems that rows of another generation would meet: see _check_facts."""
    yield from _ask(query, _SECTION_OF_NO_SEGMENT)
    yield from _check_generations(query, generation)
    yield from _check_facts(query)


def _check_facts(query: Query) -> Iterator[Problem]:
    """Yields the problems in the facts of table meta that the next generation needs."""
    facts: dict[str, str] = dict(query("SELECT key, value FROM meta"))
    if facts.get("words") not in WORD_RULES:
        yield Problem(f"meta: words is not one of {', '.join(WORD_RULES)}")
    next_ino = facts.get(NEXT_INO)
    ((highest,),) = query("SELECT COALESCE(MAX(ino), 0) FROM inode")
    if next_ino is None or not (next_ino.isascii() and next_ino.isdecimal() and len(next_ino) < 20):
        yield Problem("meta: next_ino is not a number, or is too large")
    elif int(next_ino) > MAX_INO:
        yield Problem("meta: next_ino is above 2^62")
    elif int(next_ino) <= highest:
        yield Problem(f"meta: next_ino is {next_ino}, and there is an inode {highest}")


def _check_generations(query: Query, generation: int) -> Iterator[Problem]:
    """Yields a problem unless there is a note of each generation."""
    ((count,),) = query("SELECT COUNT(*) FROM generation")
    if count != generation:
        yield Problem(f"the index notes {count} generations, and is that of generation {generation}")


def _check_extents(query: Query, segments: Sequence[Segment], block_size: int) -> Iterator[Problem]:
    """Check that each extent lies in one part of one segment."""
    ranges = [range_ for segment in segments for range_ in segment.part_ranges(block_size)]
    starts, ends = [start for start, _ in ranges], [end for _, end in ranges]
    for rows in read_extents(query):
        for ino, file_offset, stream_offset, size in rows:
            part = bisect_right(starts, stream_offset) - 1
            if size > 0 and (part < 0 or stream_offset + size > ends[part]):
                yield Problem(f"its extent at file_offset {file_offset} is not inside one part of a segment", ino)


def _check_parts(query: Query, segments: Sequence[Segment]) -> Iterator[Problem]:
    """Check that parts have what their kind needs."""
    for segment in segments:
        kinds, head_sizes = segment.parts.kinds, segment.parts.head_sizes
        for part, (kind, head_size) in enumerate(zip(kinds, head_sizes, strict=True)):
            if (kind == PartKind.GRAMMAR) != (head_size > 0):
                has = "a head" if head_size else "no head"
                yield Problem(f"segment {segment.number}: part {part} is of kind {kind} and has {has}")
    yield from _check_dictionary(query, segments)


def _check_dictionary(query: Query, segments: Sequence[Segment]) -> Iterator[Problem]:
    """Check that only the first segment has a dictionary, that its size is possible, and that it is there if needed."""
    rows = query("SELECT segment, uncompressed_size FROM section WHERE kind = ?", DICTIONARY_SECTION)
    sizes: dict[int, int] = dict(rows)
    for number, size in sizes.items():
        if number != 0:
            yield Problem(f"segment {number} has a dictionary, which only the first segment may have")
        elif not 0 < size <= MAX_DICTIONARY_SIZE:
            yield Problem(f"the dictionary has {size} bytes, not 1 to {MAX_DICTIONARY_SIZE}")
    if 0 not in sizes:
        for segment in segments:
            if PartKind.DICTIONARY in segment.parts.kinds:
                yield Problem(f"segment {segment.number} uses a dictionary, and the archive has none")


def read_extents(query: Query) -> Iterator[list[tuple[Any, ...]]]:
    """Yields the rows of the table extent by inode and file_offset, in batches, since tuples take much memory."""
    last: tuple[int, ...] = (-1, -1)
    while rows := query(
        "SELECT ino, file_offset, stream_offset, size FROM extent WHERE (ino, file_offset) > (?, ?)"
        f" ORDER BY ino, file_offset LIMIT {_MAX_ROWS}",
        *last,
    ):
        yield rows
        last = rows[-1][:2]
