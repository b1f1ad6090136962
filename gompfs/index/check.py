"""Finds violations of docs/format.md in an index, by queries over whole tables, for `verify`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from gompfs.codec.constants import MAX_DICTIONARY_SIZE
from gompfs.errors import CorruptIndexError, display_path
from gompfs.model import (
    DICTIONARY_SECTION,
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


_TYPES = (
    _Rule("a key or value of meta is not text", "SELECT NULL FROM meta WHERE {not_text:key, value}"),
    _Rule(
        "it has fields of impossible types",
        "SELECT ino FROM inode WHERE {not_integer:ino, mode, uid, gid, size, mtime_ns, nlink, rdev}"
        " OR typeof(symlink_target) NOT IN ('blob', 'null')",
    ),
    _Rule(
        "its entry {0} has fields of impossible types",
        "SELECT parent, name FROM dirent WHERE {not_integer:parent, ino} OR {not_blob:name}",
    ),
    _Rule(
        "its extent at file_offset {0} has fields of impossible types",
        "SELECT ino, file_offset FROM extent WHERE {not_integer:ino, file_offset, stream_offset, size}",
    ),
    _Rule(
        "its extended attribute {0} has fields of impossible types",
        "SELECT ino, name FROM xattr WHERE {not_integer:ino} OR {not_blob:name, value}",
    ),
)

_INODES = (
    _Rule(
        "its number is not between 1 and 2^62 - 1",
        f"SELECT ino FROM inode WHERE ino NOT BETWEEN 1 AND {MAX_INO - 1}",
    ),
    _Rule(
        "its mode {0} has no valid file type",
        f"SELECT ino, mode FROM inode WHERE mode NOT BETWEEN 0 AND 65535 OR NOT {_IS_KNOWN}",
    ),
    _Rule(
        "its owner {0} or group {1} does not fit into 32 bits",
        "SELECT ino, uid, gid FROM inode WHERE uid NOT BETWEEN 0 AND 4294967295 OR gid NOT BETWEEN 0 AND 4294967295",
    ),
    _Rule("its size {0} is negative", "SELECT ino, size FROM inode WHERE size < 0"),
    _Rule(
        "its size is {0}, and only regular files and symbolic links have one",
        f"SELECT ino, size FROM inode WHERE size > 0 AND NOT {_IS_FILE} AND NOT {_IS_SYMLINK}",
    ),
    _Rule(
        "it is a symbolic link without a target",
        f"SELECT ino FROM inode WHERE {_IS_SYMLINK} AND symlink_target IS NULL",
    ),
    _Rule(
        "its target has {1} bytes, its size is {0}",
        "SELECT ino, size, length(symlink_target) FROM inode"
        f" WHERE {_IS_SYMLINK} AND typeof(symlink_target) = 'blob' AND size != length(symlink_target)",
    ),
    _Rule(
        "its target is empty, longer than 4,095 bytes, or has a NUL",
        f"SELECT ino FROM inode WHERE {_IS_SYMLINK} AND typeof(symlink_target) = 'blob'"
        f" AND (length(symlink_target) NOT BETWEEN 1 AND {MAX_SYMLINK_TARGET_SIZE} OR instr(symlink_target, x'00'))",
    ),
    _Rule(
        "it has a target and is not a symbolic link",
        f"SELECT ino FROM inode WHERE NOT {_IS_SYMLINK} AND symlink_target IS NOT NULL",
    ),
    _Rule(
        "it has the device number {0} and is not a device",
        f"SELECT ino, rdev FROM inode WHERE rdev != 0 AND NOT {_IS_DEVICE}",
    ),
    _Rule("its device number {0} is negative", f"SELECT ino, rdev FROM inode WHERE rdev < 0 AND {_IS_DEVICE}"),
)

_NAMES = (
    _Rule(
        "the root directory is missing",
        f"SELECT {ROOT_INO} WHERE NOT EXISTS (SELECT 1 FROM inode WHERE ino = {ROOT_INO} AND {_IS_DIRECTORY})",
    ),
    _Rule(
        "its entry {0} has an impossible name",
        "SELECT parent, name FROM dirent WHERE typeof(name) = 'blob' AND (length(name) NOT BETWEEN 1 AND 255"
        " OR name IN (x'2e', x'2e2e') OR instr(name, x'2f') OR instr(name, x'00'))",
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
    _Rule(
        "its link count is {0}, it has {1} names",
        "SELECT ino, nlink, names.number FROM inode JOIN"
        " (SELECT ino, COUNT(*) AS number FROM dirent GROUP BY ino) AS names USING (ino)"
        f" WHERE NOT {_IS_DIRECTORY} AND nlink != names.number",
    ),
    _Rule(
        "its link count is {0}, its subdirectories make it {1}",
        "SELECT ino, nlink, 2 + COALESCE(below.number, 0) AS right FROM inode LEFT JOIN"
        f" (SELECT parent AS ino, COUNT(*) AS number FROM dirent WHERE ino IN (SELECT ino FROM inode"
        f"  WHERE {_IS_DIRECTORY}) GROUP BY parent) AS below USING (ino)"
        f" WHERE {_IS_DIRECTORY} AND nlink != right",
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
    _Rule(
        "its extent at file_offset {0} begins before the start of the file",
        "SELECT ino, file_offset FROM extent WHERE file_offset < 0",
    ),
    _Rule("its extent at file_offset {0} is empty", "SELECT ino, file_offset FROM extent WHERE size <= 0"),
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
        "SELECT ino, name FROM xattr WHERE typeof(name) = 'blob' AND typeof(value) = 'blob'"
        f" AND (length(name) NOT BETWEEN 1 AND {MAX_XATTR_NAME_SIZE} OR instr(name, x'00')"
        f" OR instr(name, x'2e') < 2 OR length(value) > {MAX_XATTR_VALUE_SIZE})",
    ),
    _Rule(
        "it is listed as a binary file and is not a regular file",
        f"SELECT ino FROM binary_file WHERE ino NOT IN (SELECT ino FROM inode WHERE {_IS_FILE})",
    ),
    _SECTION_OF_NO_SEGMENT,
)


def find_problems(query: Query, segments: Sequence[Segment], block_size: int) -> Iterator[Problem]:
    """Yields all problems, one kind after another. `query` runs SQL, and raises CorruptIndexError."""
    checks: list[Callable[[], Iterator[Problem]]] = [
        lambda: _check_database(query),
        lambda: _check_facts(query),
        *(lambda rule=rule: _ask(query, rule) for rule in (*_TYPES, *_INODES, *_NAMES, *_CONTENTS)),
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
    for ino, *fields in query(_with_types(rule.query)):
        yield _problem(rule.reason.format(*map(_shown, fields)), ino)


def _problem(reason: str, ino: object) -> Problem:
    """Returns the problem of an inode. `ino` comes from the index: it may be NULL or have a wrong type."""
    if ino is None or isinstance(ino, int):
        return Problem(reason, ino)
    return Problem(f"inode {_shown(ino)}: {reason}")


def _with_types(query: str) -> str:
    """Returns the query with each {not_TYPE:COLUMNS} replaced by SQL."""
    head, brace, rest = query.partition("{not_")
    if not brace:
        return query
    condition, _, tail = rest.partition("}")
    kind, _, columns = condition.partition(":")
    tests = " OR ".join(f"typeof({column}) != '{kind}'" for column in columns.split(", "))
    return f"{head}({tests}){_with_types(tail)}"


def _shown(value: object) -> str:
    return display_path(value) if isinstance(value, bytes | str) else str(value)


def _check_database(query: Query) -> Iterator[Problem]:
    """Run SQLite's own check of pages and keys."""
    for (line,) in query("PRAGMA integrity_check"):
        if line != "ok":
            yield Problem(f"the database is damaged: {_shown(line)}")


def check_to_extend(query: Query) -> Iterator[Problem]:
    """Yields the problems that rows of another generation would meet: see _check_database and _check_facts."""
    yield from _check_database(query)
    yield from _ask(query, _SECTION_OF_NO_SEGMENT)
    yield from _check_facts(query)


def _check_facts(query: Query) -> Iterator[Problem]:
    """Yields the problems in the facts of table meta that the next generation needs."""
    facts: dict[Any, Any] = dict(query("SELECT key, value FROM meta"))
    if facts.get("words") not in WORD_RULES:
        yield Problem(f"meta: words is not one of {', '.join(WORD_RULES)}")
    next_ino = facts.get(NEXT_INO)
    ((highest,),) = query("SELECT COALESCE(MAX(ino), 0) FROM inode WHERE typeof(ino) = 'integer'")
    if not isinstance(next_ino, str) or not (next_ino.isascii() and next_ino.isdecimal() and len(next_ino) < 20):
        yield Problem("meta: next_ino is not a number, or is too large")
    elif int(next_ino) > MAX_INO:
        yield Problem("meta: next_ino is above 2^62")
    elif int(next_ino) <= highest:
        yield Problem(f"meta: next_ino is {next_ino}, and there is an inode {highest}")


def _check_extents(query: Query, segments: Sequence[Segment], block_size: int) -> Iterator[Problem]:
    """Check that each extent lies in one part of one segment."""
    ranges = [range_ for segment in segments for range_ in segment.part_ranges(block_size)]
    starts, ends = [start for start, _ in ranges], [end for _, end in ranges]
    for rows in read_extents(query):
        for ino, file_offset, stream_offset, size in rows:
            if type(stream_offset) is type(size) is int and size > 0:
                part = bisect_right(starts, stream_offset) - 1
                if part < 0 or stream_offset + size > ends[part]:
                    reason = f"its extent at file_offset {_shown(file_offset)} is not inside one part of a segment"
                    yield _problem(reason, ino)


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
    sizes: dict[Any, Any] = dict(rows)
    for segment, size in sizes.items():
        if segment != 0:
            yield Problem(f"segment {_shown(segment)} has a dictionary, which only the first segment may have")
        elif not isinstance(size, int) or not 0 < size <= MAX_DICTIONARY_SIZE:
            yield Problem(f"the dictionary has {_shown(size)} bytes, not 1 to {MAX_DICTIONARY_SIZE}")
    if 0 not in sizes:
        for segment in segments:
            if PartKind.DICTIONARY in segment.parts.kinds:
                yield Problem(f"segment {segment.number} uses a dictionary, and the archive has none")


def read_extents(query: Query) -> Iterator[list[tuple[Any, ...]]]:
    """Yields the rows of the table extent by inode and file_offset, in batches, since tuples take much memory."""
    last: tuple[Any, ...] = (-1e300, -1e300)
    while rows := query(
        "SELECT ino, file_offset, stream_offset, size FROM extent WHERE (ino, file_offset) > (?, ?)"
        f" ORDER BY ino, file_offset LIMIT {_MAX_ROWS}",
        *last,
    ):
        yield rows
        if _rank(rows[-1][:2]) <= _rank(last):
            raise CorruptIndexError("the index is damaged: table extent is not in order")
        last = rows[-1][:2]


def _rank(key: tuple[Any, ...]) -> list[tuple[int, Any]]:
    """Returns a key that Python orders as SQLite does: numbers before texts before bytes."""
    return [(isinstance(field, str) + 2 * isinstance(field, bytes), field) for field in key]
