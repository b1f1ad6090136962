"""The tables of an index are exactly those of the format: SQLite gives rows that are added no other meaning."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from forged_index import index_image, replace_index
from tree_helpers import list_archive

from gompfs.archive import Archive
from gompfs.engine import select_engine
from gompfs.errors import CorruptIndexError
from gompfs.index.schema import script
from gompfs.index.writer import IndexWriter
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source
from gompfs.verify import verify_archive

Forge = Callable[..., Path]
PAGE_SIZE = 4096

OTHER = {
    "another order of keys": ("xattr", "name BLOB NOT NULL", "name BLOB COLLATE NOCASE NOT NULL"),
    "an order that does not exist": ("meta", "value TEXT", "value TEXT COLLATE zz"),
    "a condition": ("inode", "size INTEGER NOT NULL", "size INTEGER NOT NULL CHECK (randomblob(9))"),
    "a default": ("extent", "size INTEGER NOT NULL", "size INTEGER NOT NULL DEFAULT 7"),
    "NULL": ("inode", "size INTEGER NOT NULL", "size INTEGER"),
    "another type": ("inode", "size INTEGER", "size TEXT"),
    "one word less": ("inode", "size INTEGER NOT NULL", "size INTEGERNOTNULL"),
    "what happens to a row that exists": ("dirent", "(parent, name)", "(parent, name) ON CONFLICT IGNORE"),
    "descending keys": ("dirent", "(parent, name)", "(parent, name DESC)"),
    "a table that does not exist": ("binary_file", "PRIMARY KEY", "PRIMARY KEY REFERENCES other (ino)"),
}


@pytest.mark.parametrize(("table", "part", "other"), OTHER.values(), ids=OTHER.keys())
def test_other_declarations_are_refused(forge: Forge, table: str, part: str, other: str) -> None:
    path = forge(
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_master SET sql = replace(sql, '{part}', '{other}') WHERE name = '{table}'",
    )
    with pytest.raises(CorruptIndexError, match=f"table {table} is not declared as in an index"):
        Archive(path)


def test_tables_with_exchanged_names_are_refused(forge: Forge) -> None:
    path = forge(
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET name = CASE name WHEN 'extent' THEN 'xattr' ELSE 'extent' END"
        " WHERE name IN ('extent', 'xattr')",
    )
    with pytest.raises(CorruptIndexError):
        Archive(path)


def test_white_space_and_capital_letters_do_not_matter(forge: Forge, tmp_path: Path) -> None:
    path = forge(
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(replace(lower(sql), ',', ' ,' || x'0a'), 'not null', 'Not  Null')",
    )
    (tmp_path / "more").write_text("more")
    add_to_archive(path, [open_source(tmp_path / "more")], PackOptions(), engine=select_engine("cpu"))
    with Archive(path) as archive:
        assert b"more" in list_archive(archive)
        assert verify_archive(archive).is_sound


@pytest.mark.parametrize("table", ["binary_file", "dirent", "meta"])
def test_nothing_is_added_to_a_damaged_database(archive_copy: Path, tmp_path: Path, table: str) -> None:
    """A page whose list of free space leads out of the page can be read, but not written."""
    connection = sqlite3.connect(":memory:")
    image = bytearray(index_image(archive_copy))
    connection.deserialize(bytes(image))
    ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,))
    connection.close()
    image[(root - 1) * PAGE_SIZE + 1] = 255
    replace_index(archive_copy, bytes(image))
    before = archive_copy.read_bytes()
    with Archive(archive_copy) as archive:
        assert b"big" in list_archive(archive)
        assert not verify_archive(archive).is_sound
    source = open_source(tmp_path)
    with pytest.raises(CorruptIndexError, match="the index is damaged") as caught:
        add_to_archive(archive_copy, [source], PackOptions(), engine=select_engine("cpu"))
    assert caught.value.archive == str(archive_copy)
    assert archive_copy.read_bytes() == before


def test_a_section_of_the_next_segment(forge: Forge, tmp_path: Path) -> None:
    """`add` would give the segment such a section too."""
    path = forge("INSERT INTO section VALUES (1, 'words', 0, 0, x'')")
    before = path.read_bytes()
    (tmp_path / "more").write_text("more and more")
    with pytest.raises(CorruptIndexError, match="belongs to segment 1, which does not exist"):
        add_to_archive(path, [open_source(tmp_path / "more")], PackOptions(), engine=select_engine("cpu"))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        (
            "INSERT INTO section VALUES (1, 'words', 0, 0, x'')",
            "UNIQUE constraint failed: section.segment, section.kind",
        ),
        ("UPDATE sqlite_master SET sql = replace(sql, 'key TEXT', 'key TEXT COLLATE zz')", "no such collation"),
        ("UPDATE sqlite_master SET sql = replace(sql, 'KEY', 'KEY CHECK (value > 5)') WHERE name = 'meta'", "CHECK"),
        ("UPDATE sqlite_master SET rootpage = 900 WHERE name = 'dirent'", "malformed"),
        ("UPDATE sqlite_master SET sql = x'ff'", "malformed"),
    ],
)
def test_errors_of_the_writer_say_that_the_index_is_damaged(tmp_path: Path, statement: str, reason: str) -> None:
    """A second line of defence: add checks an index before it extends it."""
    base = sqlite3.connect(":memory:", isolation_level=None)
    base.executescript(script())
    base.execute("INSERT INTO meta VALUES ('words', 'x'), ('next_ino', '2')")
    base.execute("INSERT INTO inode VALUES (1, 16877, 0, 0, 0, 0, 2, 0, NULL)")
    base.execute("PRAGMA writable_schema = ON")
    base.execute(statement)
    with pytest.raises(CorruptIndexError, match=f"the index is damaged: .*{reason}"):
        extend(tmp_path / "index", base.serialize())
    base.close()


def extend(path: Path, base: bytes) -> None:
    """Adds a file to an index as add does."""
    writer = None
    try:
        writer = IndexWriter(path, base)
        writer.set_meta({"next_ino": "3"})
        writer.add_name(1, b"name", 2)
        writer.add_section(1, "words", 0, [])
        writer.finish()
    finally:
        if writer is not None:
            writer.abandon()
