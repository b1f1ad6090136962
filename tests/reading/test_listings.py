"""Directories, names and stored replies answered by C++ threads, compared with a plain model."""

from __future__ import annotations

import errno
import os
import random
import stat
import struct
import threading
from collections.abc import Iterator

import pytest
from fake_device import Device, reply, request

from gompfs._native.fuse import SNAPSHOT_SHIFT, Listing, ListingTable, NodeMapping, ReplyCache
from gompfs.model import Inode

LOOKUP, FORGET, GETATTR, STATFS, GETXATTR, LISTXATTR, READDIRPLUS = 1, 2, 3, 17, 22, 23, 44
SECONDS = 60
ATTRIBUTES = struct.Struct("<6Q10I")
ENTRY = struct.Struct("<4QII")
DIRENT = struct.Struct("<QQII")
SECOND_NS = 1_000_000_000
Entries = list[tuple[bytes, Inode]]


def random_inode(rng: random.Random, ino: int) -> Inode:
    mode = rng.choice([stat.S_IFREG, stat.S_IFLNK, stat.S_IFCHR]) | rng.randrange(0o10000)
    rdev = os.makedev(rng.randrange(4000), rng.randrange(1 << 20)) if stat.S_ISCHR(mode) else 0
    size, seconds = rng.choice([0, 1, 513, 1 << 40, (1 << 63) - 1]), rng.randrange(-(1 << 33), 1 << 33)
    mtime = seconds * SECOND_NS + rng.randrange(SECOND_NS)
    return Inode(ino, mode, rng.randrange(1 << 32), rng.randrange(1 << 32), size, mtime, rng.randrange(1 << 32), rdev)


def random_entries(rng: random.Random, first_ino: int, count: int) -> Entries:
    names = sorted({bytes(rng.choices(b"abcd\xff,-0 \n", k=rng.randint(3, 30))) for _ in range(count)})
    return [(name, random_inode(rng, first_ino + n)) for n, name in enumerate(names)]


def attributes(inode: Inode) -> bytes:
    seconds, nanoseconds = divmod(inode.mtime_ns, SECOND_NS)
    minor, major = os.minor(inode.rdev), os.major(inode.rdev)
    rdev = minor & 0xFF | major << 8 | (minor & ~0xFF) << 12
    return ATTRIBUTES.pack(
        inode.ino, inode.size, -(-inode.size // 512), *[seconds & (1 << 64) - 1] * 3, *[nanoseconds] * 3,
        inode.mode, inode.nlink, inode.uid, inode.gid, rdev, 1 << 20, 0,
    )  # fmt: skip


def entry(inode: Inode) -> bytes:
    return ENTRY.pack(inode.ino, 0, SECONDS, SECONDS, 0, 0) + attributes(inode)


def packed(node: int, entries: Entries, *, lasting: bool = True) -> list[bytes]:
    """Returns the expected READDIRPLUS entries."""
    directory = Inode(node, stat.S_IFDIR, 0, 0, 0, 0, 0)
    nothing = bytes(ENTRY.size + ATTRIBUTES.size)
    every = [(b".", directory, nothing), (b"..", directory, nothing)]
    every += [(name, inode, entry(inode) if lasting else nothing) for name, inode in entries]
    return [
        head + DIRENT.pack(inode.ino, position, len(name), inode.mode >> 12) + name + bytes(-len(name) % 8)
        for position, (name, inode, head) in enumerate(every, 1)
    ]


def columns(directories: dict[int, Entries]) -> list[bytes]:
    """Returns the columns that an index would give."""
    rows = [(parent, name, *inode[:8]) for parent, entries in directories.items() for name, inode in entries]
    parents, names, *fields = zip(*rows, strict=True)
    numbers = [b",".join(b"%d" % field for field in column) for column in (parents, *fields)]
    return [numbers[0], b"/".join(names), *numbers[1:]]


def insert(table: ListingTable, directories: dict[int, Entries], following: int = 0, end: int = 1 << 62) -> None:
    table.insert_columns(columns(directories), min(directories), end, NodeMapping(), SECONDS, following)


def listed(table: ListingTable, node: int) -> bytes | None:
    listing = table.use(node)
    return None if listing is None else listing.pack(0, 1 << 30)


@pytest.fixture
def directories() -> dict[int, Entries]:
    rng = random.Random(1)
    return {node: random_entries(rng, 1000 * node, 40) for node in (2, 3, 7)}


@pytest.fixture
def table(directories: dict[int, Entries]) -> ListingTable:
    made = ListingTable(1 << 20)
    insert(made, directories)
    return made


@pytest.fixture
def replies() -> ReplyCache:
    return ReplyCache(1 << 16)


@pytest.fixture
def device(table: ListingTable, replies: ReplyCache) -> Iterator[Device]:
    made = Device(listings=table, replies=replies)
    yield made
    made.close()


def read_request(node: int, position: int, capacity: int) -> bytes:
    return request(READDIRPLUS, node, struct.pack("<QQIIQII", 0, position, capacity, 0, 0, 0, 0))


def test_every_position_and_buffer_size(device: Device, directories: dict[int, Entries]) -> None:
    for node, entries in directories.items():
        expected = packed(node, entries)
        for position in [*range(len(expected) + 2), 1 << 40]:
            for capacity in (0, 151, 200, 1000, 4096, 60_000):
                fitting, size = [], 0
                for item in expected[position:]:
                    size += len(item)
                    if size > capacity:
                        break
                    fitting.append(item)
                assert device.ask(read_request(node, position, capacity)) == reply(b"".join(fitting))
    assert device.forwarded == []


def test_names(device: Device, directories: dict[int, Entries]) -> None:
    for node, entries in directories.items():
        for name, inode in entries:
            assert device.ask(request(LOOKUP, node, name + b"\0")) == reply(entry(inode))
            for other in (name + b"x", name[:-1], b".", b"", b"\0"):
                if other not in dict(entries):
                    absent = ENTRY.pack(0, 0, SECONDS, 0, 0, 0) + bytes(ATTRIBUTES.size)
                    assert device.ask(request(LOOKUP, node, other + b"\0")) == reply(absent)
    assert device.forwarded == []


def test_other_requests_are_forwarded(device: Device, table: ListingTable, directories: dict[int, Entries]) -> None:
    table.insert(1, Listing(1, directories[2], SECONDS))  # the root may have names that are not listed
    table.insert(9, Listing(9, directories[2][::-1], SECONDS))
    name = directories[2][0][0] + b"\0"
    messages = [
        read_request(4, 0, 1000),
        request(READDIRPLUS, 2),
        request(LOOKUP, 4, name),
        request(LOOKUP, 1, name),
        request(LOOKUP, 9, name),
        request(LOOKUP, 2),
        request(GETATTR, 2),
        request(STATFS, 1),
    ]
    for message in messages:
        assert device.ask(message) == b"forwarded"
    assert device.forwarded == [*["readdirplus"] * 2, *["lookup"] * 4, "getattr", "statfs"]
    device.kernel.send(request(FORGET, 2, bytes(8)))  # FORGET has no answer, and is not forwarded either
    assert device.ask(read_request(9, 0, 60_000)) == reply(b"".join(packed(9, directories[2][::-1])))


def test_listings_made_from_inodes(directories: dict[int, Entries]) -> None:
    table = ListingTable(1 << 20)
    table.insert(3, Listing(3, directories[3], SECONDS))
    table.insert(4, Listing(4, directories[3], 0))
    assert listed(table, 3) == b"".join(packed(3, directories[3]))
    assert listed(table, 4) == b"".join(packed(4, directories[3], lasting=False))
    assert listed(table, 5) is None


def test_owner_and_umask(directories: dict[int, Entries]) -> None:
    table = ListingTable(1 << 20)
    table.insert_columns(columns(directories), 2, 100, NodeMapping(uid=5, umask=0o7022), SECONDS, 0)
    mapped = [(name, inode._replace(uid=5, mode=inode.mode & ~0o7022)) for name, inode in directories[7]]
    assert listed(table, 7) == b"".join(packed(7, mapped))


def test_inode_numbers_with_several_archives(directories: dict[int, Entries]) -> None:
    """All inode numbers of an archive are shifted, also those of directories and of the next batch.

    Overflows are refused.
    """
    table = ListingTable(1 << 20)
    first = 3 << SNAPSHOT_SHIFT
    empty = {1: [(b"empty", Inode(5, stat.S_IFDIR, 0, 0, 0, 0, 0))]}
    table.insert_columns(columns(empty | directories), 1, 7, NodeMapping(first), SECONDS, 128)
    assert [node in table for node in (2, first + 1, first + 2, first + 3, first + 5, first + 7)] == [
        False, True, True, True, True, False,
    ]  # fmt: skip
    shifted = [(name, inode._replace(ino=first + inode.ino)) for name, inode in directories[3]]
    assert listed(table, first + 3) == b"".join(packed(first + 3, shifted))
    assert wanted(table) == [(first + 7, 128)]
    last = (1 << SNAPSHOT_SHIFT) - 1
    for shift in (0, first):
        for parent, ino in ((last + 1, 2), (2, last + 1), (1 << 62, 2), (2, 1 << 62)):
            numbers = columns({parent: [(b"a", Inode(ino, stat.S_IFREG, 0, 0, 0, 0, 0))]})
            with pytest.raises(ValueError, match="impossible entry"):
                table.insert_columns(numbers, 2, 1 << 62, NodeMapping(shift), SECONDS, 0)
        numbers = columns({last - 1: [(b"a", Inode(last, stat.S_IFREG, 0, 0, 0, 0, 0))]})
        table.insert_columns(numbers, 2, last, NodeMapping(shift), SECONDS, 0)
        assert shift + last - 1 in table


def test_directories_from_the_end_of_a_batch_on_are_incomplete(directories: dict[int, Entries]) -> None:
    table = ListingTable(1 << 20)
    insert(table, directories, end=7)
    assert [node in table for node in (2, 3, 7)] == [True, True, False]


def test_empty_directories_are_known() -> None:
    directory = Inode(0, stat.S_IFDIR | 0o755, 0, 0, 0, 0, 2)
    table = ListingTable(1 << 20)
    insert(table, {5: [(b"a", directory._replace(ino=n)) for n in (3, 5, 6, 9)]}, end=8)
    assert [node in table for node in (3, 5, 6, 9)] == [False, True, True, False]
    assert listed(table, 6) == b"".join(packed(6, []))


def test_the_oldest_directories_are_evicted_first(directories: dict[int, Entries]) -> None:
    alone = ListingTable(1 << 20)
    insert(alone, {2: directories[2]})
    table = ListingTable(2 * alone.num_bytes + alone.num_bytes // 2)
    for node in (2, 3, 7, 2):
        insert(table, {node: directories[2]})
    assert [node in table for node in (2, 3, 7)] == [True, False, True]
    assert table.num_bytes <= 2 * alone.num_bytes + alone.num_bytes // 2
    small = ListingTable(1)
    insert(small, directories)
    assert [node in small for node in (2, 3, 7)] == [False, False, True]


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (0, b"4,3"), (0, b"3,x"), (0, b"3,1,2"), (0, b""), (0, b"3,-1"), (0, b"1,3"), (0, b"9223372036854775808,3"),
        (1, b"a/b/c"), (1, b"a"), (1, b"/b"), (1, b"./b"), (1, b"a/.."), (1, b"a\0/b"), (1, b""),
        (2, b"5"), (2, b"5,6,7"), (2, b"5, 6"), (2, b"5,6.0"), (2, b"-1,6"), (2, b"5,"), (2, b""),
        (2, b"0,6"), (3, b"98724,33188"), (3, b"0,33188"), (3, b"33188,420"),
        (4, b"4294967296,0"), (5, b"0,-1"), (6, b"0,9223372036854775808"), (6, b"0,-1"),
        (7, b"1e5,0"), (7, b"9223372036854775808,0"), (8, b"4294967296,1"), (9, b"0,\xff"), (9, b"-5,0"),
    ],
)  # fmt: skip
def test_invalid_rows_are_refused(column: int, text: bytes) -> None:
    good = [b"3,4", b"a/b", b"1,2", b"33188,16877", *[b"1,2"] * 6]
    table = ListingTable(1 << 20)
    bad = [*good[:column], text, *good[column + 1 :]]
    with pytest.raises(ValueError, match="impossible entry"):
        table.insert_columns(bad, 3, 100, NodeMapping(), SECONDS, 0)
    assert [3 in table, 4 in table] == [False, False]
    table.insert_columns(good, 3, 100, NodeMapping(), SECONDS, 0)
    assert [3 in table, 4 in table] == [True, True]


def test_random_text_never_harms() -> None:
    rng = random.Random(5)
    table = ListingTable(1 << 16)
    kept = 0
    for _ in range(3000):
        text = [bytes(rng.choices(b"0123456789,,/-\0", k=rng.randrange(12))) for _ in range(10)]
        good = columns({5: random_entries(rng, 7, 3)})
        for index in rng.sample(range(10), rng.randrange(3)):
            good[index] = text[index]
        try:
            table.insert_columns(good, 5, 1000, NodeMapping(), SECONDS, 0)
            kept += 1
        except ValueError:
            pass
    assert kept > 500
    with pytest.raises(IndexError):
        table.insert_columns(good[:9], 5, 1000, NodeMapping(), SECONDS, 0)


def wanted(table: ListingTable) -> list[tuple[int, int]]:
    """Returns all batches that are wanted by now."""
    found: list[tuple[int, int]] = []
    thread = threading.Thread(target=lambda: found.extend(iter(table.wait_wanted, None)))
    thread.start()
    threading.Event().wait(0.05)
    table.close()
    thread.join()
    return found


def test_the_next_batch_is_wanted_once(directories: dict[int, Entries]) -> None:
    table = ListingTable(1 << 20)
    insert(table, directories, following=128, end=8)
    insert(table, {20: directories[2]}, following=256, end=21)
    insert(table, {30: directories[2]}, following=0, end=31)
    for node in (3, 2, 3, 7, 30, 99):
        table.use(node)
    assert wanted(table) == [(8, 128)]


def test_repeated_lookups_make_a_directory_wanted(device: Device, table: ListingTable) -> None:
    for node in (50, 51, 50, 52, 52, 53):
        assert device.ask(request(LOOKUP, node, b"name\0")) == b"forwarded"
    assert wanted(table) == [(52, 64)]


def test_cached_replies(device: Device, replies: ReplyCache) -> None:
    questions = [request(GETATTR, 2, bytes(16)), request(STATFS, 1), request(GETXATTR, 2, bytes(8) + b"a\0")]
    for number, question in enumerate(questions):
        assert device.ask(question) == b"forwarded"
        replies.insert(question, -number, b"answer %d" % number)
        replies.insert(question, 0, b"never changes")
    for number, question in enumerate(questions):
        again = question[:8] + struct.pack("<Q", 77) + question[16:]
        assert device.ask(again) == reply(b"answer %d" % number, 77, -number)
    assert device.ask(request(GETATTR, 3, bytes(16))) == b"forwarded"
    assert device.ask(request(GETATTR, 2, bytes(15) + b"a")) == b"forwarded"
    assert device.ask(request(LISTXATTR, 2, bytes(8) + b"a\0")) == b"forwarded"


def test_cached_replies_are_bounded(device: Device, replies: ReplyCache) -> None:
    replies.insert(request(GETATTR, 1), 0, bytes(1 << 16))
    for node in range(2, 400):
        replies.insert(request(GETATTR, node), 0, bytes(1000))
    answers = [device.ask(request(GETATTR, node)) for node in range(1, 400)]
    assert 1 <= sum(answer == reply(bytes(1000)) for answer in answers) <= 65
    assert answers[-1] == reply(bytes(1000))


def test_entries_without_extended_attributes(device: Device, replies: ReplyCache) -> None:
    named, listing, size = struct.pack("<II", 100, 0) + b"user.a\0", struct.pack("<II", 100, 0), bytes(8)
    assert device.ask(request(LISTXATTR, 4, listing)) == b"forwarded"
    replies.set_nodes_with_xattrs([3, 5])
    assert device.ask(request(GETXATTR, 4, named)) == reply(b"", error=-errno.ENODATA)
    assert device.ask(request(LISTXATTR, 4, listing)) == reply(b"")
    assert device.ask(request(LISTXATTR, 4, size)) == reply(bytes(8))
    assert device.ask(request(LISTXATTR, 4, b"\0")) == b"forwarded"
    for node in (3, 5):
        assert device.ask(request(GETXATTR, node, named)) == b"forwarded"
        assert device.ask(request(LISTXATTR, node, listing)) == b"forwarded"
    replies.set_nodes_with_xattrs([])
    assert device.ask(request(GETXATTR, 4, named)) == b"forwarded"
    assert device.ask(request(LISTXATTR, 5, listing)) == reply(b"")
