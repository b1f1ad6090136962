"""Changes of an index: merged with the index before, they give the index after, byte for byte."""

from __future__ import annotations

import itertools
import random

import pytest
from column_groups import CHANGE_GROUPS, Group, columns_of_image, cut, join, numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.index_columns import IndexTables, merge_tables, read_columns
from test_columns import DIRECTORY, FILE, LARGEST, LINK, ROWS, Rows, database, inode, segments

from gompfs._native.index import changes_between, merge_columns

REMOVED = {name: CHANGE_GROUPS[name] for name in ("removed_inode", "removed_name")}
EMPTY = {name: Group(0, dict.fromkeys(columns, b"")) for name, columns in REMOVED.items()}


def columns_for(rows: Rows) -> bytes:
    connection = database(rows)
    connection.execute("DELETE FROM extent WHERE ino NOT IN (SELECT ino FROM inode)")
    connection.execute("DELETE FROM xattr WHERE ino NOT IN (SELECT ino FROM inode)")
    connection.execute("DELETE FROM binary_file WHERE ino NOT IN (SELECT ino FROM inode)")
    columns, _ = columns_of_image(connection.serialize())
    connection.close()
    return columns


def merged(*columns: bytes) -> bytes:
    return bytes(merge_columns(list(columns)))


def slowly_merged(*columns: bytes) -> IndexTables:
    return merge_tables([read_columns(each, is_changes=number > 0) for number, each in enumerate(columns)])


def check(*versions: bytes) -> list[bytes]:
    """Checks that changes lead from each index to the next, and from the first to the last. Returns the changes."""
    changes = []
    for before, after in itertools.pairwise(versions):
        found, ends = changes_between(before, after)
        assert ends[-1] == len(found)
        assert merged(before, found) == after
        changes.append(bytes(found))
        assert merged(versions[0], *changes) == after
    slow, last = slowly_merged(versions[0], *changes), read_columns(versions[-1])
    assert slow == last
    return changes


def without_segments(rows: Rows) -> Rows:
    return rows | {"segment": [], "section": [], "generation": []}


@settings(max_examples=25, deadline=None)
@given(st.lists(ROWS.map(without_segments), min_size=2, max_size=5))
def test_any_indexes(versions: list[Rows]) -> None:
    check(*map(columns_for, versions))


SMALL = st.fixed_dictionaries(
    {
        "inode": st.sets(st.tuples(st.integers(1, 8), st.integers(0, 2))).map(
            lambda found: [inode(ino, FILE, size) for ino, size in dict(found).items()]
        ),
        "dirent": st.dictionaries(
            st.tuples(st.integers(1, 3), st.sampled_from([b"a", b"ab", b"b"])), st.integers(1, 8)
        ).map(lambda found: [(parent, name, ino) for (parent, name), ino in found.items()]),
        "extent": st.dictionaries(st.tuples(st.integers(1, 8), st.integers(0, 2)), st.integers(0, 2)).map(
            lambda found: [(*key, value, value) for key, value in found.items()]
        ),
        "xattr": st.dictionaries(
            st.tuples(st.integers(1, 8), st.sampled_from([b"user.a", b"user.b"])), st.binary(max_size=1)
        ).map(lambda found: [(*key, value) for key, value in found.items()]),
        "binary_file": st.sets(st.integers(1, 8)).map(lambda found: [(ino,) for ino in found]),
    }
)


@settings(max_examples=50, deadline=None)
@given(st.lists(SMALL, min_size=2, max_size=6))
def test_indexes_of_the_same_keys(versions: list[Rows]) -> None:
    check(*map(columns_for, versions))


def test_segments_sections_and_generations_are_appended() -> None:
    every = segments([([(50, 2), (60, 2)], [(0, 300, 0)]), ([], []), ([(70, 1)], [(1, 5, 0)])])
    sections = [(0, "b", 5, 64, bytes(4)), (0, "a", 5, 64, b""), (2, "a", 1, 64, bytes(4)), (1, "c", 1, 64, b"")]
    versions = [
        columns_for({
            "inode": [inode(1, DIRECTORY)], "segment": every[:count], "section": sections[: count + 1],
            "generation": [(number, 1000 - number, 5, number, "add", "x" * number) for number in range(1, count + 1)],
        })
        for count in range(4)
    ]  # fmt: skip
    check(*versions)
    with pytest.raises(ValueError, match="a segment is gone"):
        changes_between(versions[2], versions[1])
    changed = [columns_for({"inode": [], "generation": [(1, time, 0, 0, "add", "")]}) for time in (1, 2)]
    with pytest.raises(ValueError, match="a generation is gone"):
        changes_between(*changed)
    others = [columns_for({"inode": [], "section": found}) for found in (sections[:2], sections[:1])]
    with pytest.raises(ValueError, match="a section is gone"):
        changes_between(*others)


def test_changes_of_one_file_are_small() -> None:
    inodes = [inode(1, DIRECTORY), *(inode(ino, FILE, ino) for ino in range(2, 5000))]
    names = [(1, b"%d" % ino, ino) for ino in range(2, 5000)]
    before = columns_for({"inode": inodes, "dirent": names})
    after = columns_for({"inode": [*inodes, inode(5000)], "dirent": [*names, (1, b"new", 5000)]})
    (changes,) = check(before, after)
    assert len(changes) < 80


def test_no_changes() -> None:
    before = columns_for({"inode": [inode(1, DIRECTORY)], "meta": [("a", "b")]})
    (changes,) = check(before, before)
    assert merged(before, changes, changes, changes) == before


BEFORE: Rows = {
    "inode": [inode(1, DIRECTORY), inode(2, FILE, 5), inode(3, LINK, 1, b"t")],
    "dirent": [(1, b"a", 2), (1, b"b", 3)],
    "extent": [(2, 0, 0, 5)],
    "section": [(0, "a", 5, 64, b"")],
    "segment": segments([([], [])]),
    "generation": [(1, 5, 3, 0, "pack", "")],
}
WRONG = {
    "an extent of another inode": ({"extent": [(2, 0, 0, 5)]}, {}, "not among their inodes"),
    "an attribute of another inode": ({"xattr": [(2, b"user.a", b"")]}, {}, "not among their inodes"),
    "a binary file that is another inode": ({"binary_file": [(9,)]}, {}, "not among their inodes"),
    "an inode that is removed": ({"inode": [inode(2)]}, {"removed_inode": (1, {"ino": numbers(1)})}, "remove an inode"),
    "a name that is removed": (
        {"dirent": [(1, b"a", 2)]},
        {"removed_name": (1, {"parent": numbers(1), "name": b"a\0"})},
        "remove a name",
    ),
    "a section that is there": ({"section": [(0, "a", 5, 64, b"")]}, {}, "there already"),
    "names that descend": ({}, {"removed_name": (2, {"parent": numbers(1, 0), "name": b"b\0a\0"})}, "not in order"),
    "a name twice": ({}, {"removed_name": (2, {"parent": numbers(1, 0), "name": b"b\0b\0"})}, "not in order"),
    "a key that is too large": ({}, {"removed_inode": (2, {"ino": numbers(LARGEST - 1, 0)})}, "too large"),
}


@pytest.mark.parametrize("case", WRONG)
def test_changes_that_are_wrong(case: str) -> None:
    rows, removed, reason = WRONG[case]
    groups = cut(columns_with_rows(rows)) | EMPTY
    for name, (num_rows, columns) in removed.items():
        groups[name] = Group(num_rows, columns)
    with pytest.raises(ValueError, match=reason):
        merged(columns_for(BEFORE), join(groups))
    with pytest.raises(ValueError, match=r"\w"):
        slowly_merged(columns_for(BEFORE), join(groups))


def test_facts_that_newer_changes_replace_are_checked() -> None:
    facts = columns_for(BEFORE | {"meta": [("words", "letters")]})
    changes = join(cut(columns_with_rows({})) | EMPTY)
    wrong = facts.replace(b"words\0", b"wor\xffs\0")
    for merge in (merged, slowly_merged):
        merge(facts, changes)
        with pytest.raises(ValueError, match=r"\w"):
            merge(wrong, changes)


def columns_with_rows(rows: Rows) -> bytes:
    connection = database(rows)
    columns, _ = columns_of_image(connection.serialize())
    connection.close()
    return columns


def test_changes_that_are_cut_off_anywhere_are_refused() -> None:
    before = columns_for(BEFORE)
    rest = {name: BEFORE[name] for name in ("section", "segment", "generation")}
    (changes,) = check(before, columns_for({"inode": [inode(1, DIRECTORY)], **rest}))
    for size in range(len(changes)):
        with pytest.raises(ValueError, match=r"\w"):
            merged(before, changes[:size])
    with pytest.raises(ValueError, match=r"\w"):
        merged(before, changes + b"\0")
    with pytest.raises(ValueError, match=r"\w"):
        merged(before, before)
    with pytest.raises(ValueError, match=r"\w"):
        merged(changes)


def test_random_changes_are_merged_as_the_slow_reader_merges_them() -> None:
    before = columns_for(BEFORE)
    after = columns_for({
        "inode": [inode(1, DIRECTORY), inode(3, LINK, 1, b"u"), inode(4, FILE, 9)],
        "dirent": [(1, b"b", 4), (1, b"c", 3)], "extent": [(4, 0, 100, 9)], "xattr": [(4, b"user.a", b"v")],
        "binary_file": [(4,)], "section": BEFORE["section"], "segment": BEFORE["segment"],
        "generation": [*BEFORE["generation"], (2, 9, 1, 1, "add", "more")],
    })  # fmt: skip
    (changes,) = check(before, after)
    rng, num_read = random.Random(3), 0
    for _ in range(3000):
        groups = cut(changes, CHANGE_GROUPS)
        name = rng.choice([name for name, group in groups.items() if any(group.columns.values())])
        column = rng.choice([each for each, raw in groups[name].columns.items() if raw])
        raw = bytearray(groups[name].columns[column])
        raw[rng.randrange(len(raw))] = rng.choice((0, 1, 2, 3, 97, 127, 128, rng.randrange(256)))
        groups[name].columns[column] = bytes(raw)
        try:
            found = merged(before, join(groups))
        except ValueError:
            with pytest.raises(ValueError, match=r"\w"):
                slowly_merged(before, join(groups))
        else:
            num_read += 1
            assert slowly_merged(before, join(groups)) == read_columns(found)
    assert 500 < num_read < 2900
