"""Archives of at most a few MB that cause much work if work grows faster than the archive."""

from __future__ import annotations

import random
import sqlite3

from taken_apart import TakenApart

_TIME = 1_500_000_000_000_000_000


def sizes(parts: TakenApart, rng: random.Random) -> tuple[str, bool]:
    """Adds many of one thing: extents, names, nested directories, links, attributes or blocks."""
    make = rng.choice(_MAKERS)
    told = make(parts, rng)
    return f"{make.__name__.strip('_').replace('_', ' ')}: {told}", False


def _next_ino(index: sqlite3.Connection) -> int:
    ((ino,),) = index.execute("SELECT MAX(ino) + 1 FROM inode").fetchall()
    return int(ino)


def _add(index: sqlite3.Connection, inodes: list[tuple], names: list[tuple]) -> None:
    index.execute("BEGIN")
    index.executemany("INSERT INTO inode VALUES (?, ?, 0, 0, ?, ?, ?, 0, ?)", inodes)
    index.executemany("INSERT INTO dirent VALUES (?, ?, ?)", names)
    index.execute("UPDATE meta SET value = ? WHERE key = 'next_ino'", [str(_next_ino(index))])
    index.execute("COMMIT")


def _many_extents(parts: TakenApart, rng: random.Random) -> str:
    count = rng.choice((1000, 10_000, 60_000))
    step, overlap = rng.choice(((1, 0), (2, 0), (16384, 0), (1, 1)))

    def change(index: sqlite3.Connection) -> None:
        ino = _next_ino(index)
        ((end,),) = index.execute("SELECT MAX(stream_offset + size) FROM extent").fetchall()
        end = max(int(end or 0), 1)
        _add(index, [(ino, 0o100644, count * step + 1, _TIME, 1, None)], [(1, b"many extents", ino)])
        rows = [(ino, n * step, n * 16384 % end if step > 2 else n % end, 1 + overlap) for n in range(count)]
        index.executemany("INSERT INTO extent VALUES (?, ?, ?, ?)", rows)
        index.execute("INSERT INTO binary_file VALUES (?)", [ino])

    parts.change_index(change)
    return f"{count} extents, one each {step} bytes, overlap {overlap}"


def _many_names(parts: TakenApart, rng: random.Random) -> str:
    count = rng.choice((1000, 30_000))
    one_file = rng.random() < 0.4

    def change(index: sqlite3.Connection) -> None:
        ino = _next_ino(index)
        if one_file:
            inodes = [(ino, 0o100644, 0, _TIME, count, None)]
        else:
            inodes = [(ino + n, 0o100644, 0, _TIME, 1, None) for n in range(count)]
        _add(index, inodes, [(1, b"n%d" % n, ino if one_file else ino + n) for n in range(count)])

    parts.change_index(change)
    return f"{count} of {'one file' if one_file else 'a file each'}"


def _deep_directories(parts: TakenApart, rng: random.Random) -> str:
    depth = rng.choice((100, 1000, 3000))
    name = rng.choice((b"d", b"d" * 255))

    def change(index: sqlite3.Connection) -> None:
        ino = _next_ino(index)
        inodes = [(ino + n, 0o40755, 0, _TIME, 2 + (n < depth - 1), None) for n in range(depth)]
        _add(index, inodes, [(ino + n - 1 if n else 1, name, ino + n) for n in range(depth)])
        index.execute("UPDATE inode SET nlink = nlink + 1 WHERE ino = 1")

    parts.change_index(change)
    return f"{depth} of names of {len(name)} bytes"


def _shared_directories(parts: TakenApart, rng: random.Random) -> str:
    """Each directory contains the next one under several names, so that the paths exceed any memory."""
    depth, times = rng.choice(((20, 2), (60, 2), (10, 10)))

    def change(index: sqlite3.Connection) -> None:
        ino = _next_ino(index)
        inodes = [(ino + n, 0o40755, 0, _TIME, 2 + times, None) for n in range(depth)]
        names = [(ino + n - 1 if n else 1, b"s%d" % t, ino + n) for n in range(depth) for t in range(times)]
        _add(index, inodes, names)

    parts.change_index(change)
    return f"{depth} levels of {times} names"


def _many_links(parts: TakenApart, rng: random.Random) -> str:
    """Symbolic links in chains, in loops, or with long targets."""
    count = rng.choice((39, 41, 1000))
    target = rng.choice((b"l%d", b"./././l%d", b"../l%d", b"l%d/."))

    def change(index: sqlite3.Connection) -> None:
        ino = _next_ino(index)
        targets = [target % ((n + 1) % count) for n in range(count)]
        inodes = [(ino + n, 0o120777, len(text), _TIME, 1, text) for n, text in enumerate(targets)]
        _add(index, inodes, [(1, b"l%d" % n, ino + n) for n in range(count)])

    parts.change_index(change)
    return f"{count} to {target!r}"


def _many_attributes(parts: TakenApart, rng: random.Random) -> str:
    count, size = rng.choice(((1000, 10), (20_000, 1), (1, 1 << 20), (30, 65536)))

    def change(index: sqlite3.Connection) -> None:
        rows = [(rng.choice((1, 2)), b"user.a%d" % n, bytes(size)) for n in range(count)]
        index.execute("BEGIN")
        index.executemany("INSERT OR REPLACE INTO xattr VALUES (?, ?, ?)", rows)
        index.execute("COMMIT")

    parts.change_index(change)
    return f"{count} of {size} bytes"


def _many_blocks(parts: TakenApart, rng: random.Random) -> str:
    """Uses one block under many block numbers."""
    rows = parts.block_rows()
    where = rng.choice(rows)
    places = parts.places(where)
    count = rng.choice((100, 1000, 10_000, 60_000))
    places.offsets = [places.offsets[0]] * count
    places.sizes = [places.sizes[0]] * count
    places.uncompressed_size = count * parts.block_size
    parts.set_places(where, places)
    return f"{count} of {where}"


def _large_size(parts: TakenApart, rng: random.Random) -> str:
    size = rng.choice((1 << 30, 1 << 40, (1 << 62), (1 << 63) - 1))

    def change(index: sqlite3.Connection) -> None:
        ino = _next_ino(index)
        _add(index, [(ino, 0o100644, size, _TIME, 1, None)], [(1, b"large", ino)])

    parts.change_index(change)
    return f"a hole of {size} bytes"


def _many_segments(parts: TakenApart, rng: random.Random) -> str:
    count = rng.choice((100, 5000))

    def change(index: sqlite3.Connection) -> None:
        query = "SELECT COUNT(*), COALESCE(SUM(length(compressed_sizes) / 4), 0) FROM segment"
        ((number, blocks),) = index.execute(query).fetchall()
        rows = [(number + n, blocks) for n in range(count)]
        index.executemany("INSERT INTO segment VALUES (?, ?, 0, x'', x'', x'', x'', 0, x'')", rows)

    parts.change_index(change)
    return f"{count} empty ones"


def _many_sections(parts: TakenApart, rng: random.Random) -> str:
    """Uses the words of one segment for many segments, or adds sections of many kinds."""
    count = rng.choice((10, 300))
    kind = rng.choice(("words", "kind"))

    def change(index: sqlite3.Connection) -> None:
        sections = [row[2:] for row in index.execute("SELECT * FROM section").fetchall()]
        rows = [(n + 1, "words") if kind == "words" else (0, f"kind {n}") for n in range(count)]
        for row in rows:
            index.execute("INSERT OR REPLACE INTO section VALUES (?, ?, ?, ?, ?)", (*row, *rng.choice(sections)))

    parts.change_index(change)
    return f"{count} of {kind}"


_MAKERS = [
    _many_extents,
    _many_names,
    _deep_directories,
    _shared_directories,
    _many_links,
    _many_attributes,
    _many_blocks,
    _large_size,
    _many_segments,
    _many_sections,
]
