"""Which heads of parts stay in device memory, and how those that are not opened yet get there."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray
from tadoc_blocks import symbols_of_text
from tadoc_heads import TadocHead, heads_of_texts, part_heads

from gompfs._native.text import SymbolTable
from gompfs.codec import BlockStatus
from gompfs.codec.stored_head import StoredHead, StoredWords
from gompfs.gpu.decode.head_memory import head_memory
from gompfs.gpu.decode.head_store import HeadStore, HeadTask, pack_head, pack_words, packed_size, packed_words_size


class Memory:
    """Counts uploads, and gives each of them an address of 1000 times its number. Opens heads as the core does."""

    workspace_bytes = 1 << 30

    def __init__(self) -> None:
        self.uploads = 0
        self.is_full = self.is_full_for_workspace = False
        self.waits = 0  # for kernels that read heads
        self.opened: list[int] = []  # how many heads at once
        self.contents: dict[int, NDArray[np.uint8]] = {}
        self.expected: dict[bytes, NDArray[np.uint8] | None] = {}  # by payload

    def allocate_head(self, size: int) -> SimpleNamespace:
        if self.is_full:
            raise MemoryError
        self.uploads += 1
        return SimpleNamespace(nbytes=size, data=SimpleNamespace(ptr=1000 * self.uploads))

    def upload_head(self, packed: NDArray[np.uint8]) -> SimpleNamespace:
        head = self.allocate_head(packed.nbytes)
        self.contents[head.data.ptr] = packed
        return head

    def reserve(self, size: int) -> None:
        if self.is_full:
            raise MemoryError

    def wait_for_readers(self) -> None:
        self.waits += 1

    def pinned_payloads(self, size: int) -> NDArray[np.uint8]:
        return np.full(size, 0xEE, np.uint8)

    def open_heads(self, payloads: NDArray[np.uint8], tasks: Collection[HeadTask]) -> NDArray[np.uint8]:
        if self.is_full_for_workspace:
            raise MemoryError
        self.opened.append(len(tasks))
        statuses = []
        for task in tasks:
            payload = payloads[task.payload_offset : task.payload_offset + task.payload_size].tobytes()
            opened = self.expected[payload]
            if opened is not None:
                assert opened.nbytes == task.target.nbytes == task.memory.packed_size
                assert head_memory(memoryview(payload), task.pool_size) == task.memory
                self.contents[task.target.data.ptr] = opened
            assert self.contents[task.words].size > 0
            statuses.append(BlockStatus.OK if opened is not None else BlockStatus.BAD_PAYLOAD)
        return np.array(statuses, np.uint8)


class Heads:
    """The heads of texts, which are not opened yet, and the memory of a device that opens them."""

    def __init__(self, count: int) -> None:
        section = heads_of_texts()[0].section
        self.heads = [head for head in heads_of_texts() if head.section == section][:count]
        assert len(self.heads) == count
        self.memory = Memory()
        self.reads = 0
        self.core = part_heads([head.block for head in self.heads], section)
        self.words = StoredWords(lambda: self.core.words(0))
        symbols, _ = self.core.open(range(count))
        self.packed = [pack_head(table) for table in symbols if table is not None]
        self.memory.expected = {
            head.payload: packed for head, packed in zip(self.heads, self.packed, strict=True)
        }  # fmt: skip
        self.stored = [
            self.stored_head(head.block, table) for head, table in zip(self.heads, symbols, strict=True)
        ]  # fmt: skip
        self.words_size = pack_words(self.core.words(0)).nbytes

    def stored_head(self, block: bytes, symbols: SymbolTable | None = None) -> StoredHead:
        def read() -> bytes:
            self.reads += 1
            return block

        return StoredHead(read, self.words, lambda: (symbols, BlockStatus.OK))

    def store(self, capacity: int) -> HeadStore:
        return HeadStore(capacity, self.memory, 2)


@pytest.fixture
def heads() -> Heads:
    return Heads(4)


@pytest.fixture(scope="module")
def tables() -> list[SymbolTable]:
    """Symbols of six parts of equal size."""
    found = [symbols_of_text(b"word_%d and_%d word_%d\n" % (n, n, n) * 20) for n in range(6)]
    assert len({packed_size(table) for table in found}) == 1
    return found


def addresses_of(store: HeadStore, heads: list[SymbolTable] | list[StoredHead]) -> list[int]:
    addresses, statuses = store.load(heads)
    assert not statuses.any()
    return addresses.tolist()


def test_the_least_recently_used_head_is_dropped(tables: list[SymbolTable]) -> None:
    memory = Memory()
    size = packed_size(tables[0])
    store = HeadStore(3 * size, memory)
    assert addresses_of(store, tables[:3]) == [1000, 2000, 3000]
    assert addresses_of(store, [tables[0], tables[0], tables[2]]) == [1000, 1000, 3000]
    assert (memory.uploads, memory.waits) == (3, 0)
    assert addresses_of(store, [tables[3]]) == [4000], "instead of the second one"
    assert memory.waits == 1
    assert addresses_of(store, [tables[0], tables[2], tables[3]]) == [1000, 3000, 4000]
    assert addresses_of(store, [tables[1]]) == [5000], "instead of the first one"
    assert store.num_bytes == 3 * size
    assert addresses_of(store, []) == []


def test_heads_of_one_call_do_not_replace_each_other(tables: list[SymbolTable]) -> None:
    store = HeadStore(2 * packed_size(tables[0]) + 100, Memory())
    assert addresses_of(store, tables[:4]) == [1000, 2000, 0, 0]
    assert addresses_of(store, [tables[2], tables[0], tables[1]]) == [3000, 4000, 0]
    assert store.num_bytes == 2 * packed_size(tables[0])


def test_a_head_that_does_not_fit(tables: list[SymbolTable]) -> None:
    memory = Memory()
    size = packed_size(tables[0])
    assert addresses_of(HeadStore(size - 1, memory), tables[:1]) == [0]
    assert memory.uploads == 0
    store = HeadStore(size, memory)
    memory.is_full = True
    assert addresses_of(store, tables[:1]) == [0]
    assert store.num_bytes == 0
    memory.is_full = False
    assert addresses_of(store, tables[:1]) == [1000]


def test_stored_heads_are_opened_at_once_and_stay(heads: Heads) -> None:
    store = heads.store(1 << 30)
    found = addresses_of(store, [*heads.stored[:3], heads.stored[0]])
    assert found == [2000, 3000, 4000, 2000], "the first upload is that of the words"
    assert heads.memory.opened == [3]
    for address, packed in zip(found[:3], heads.packed[:3], strict=True):
        assert np.array_equal(heads.memory.contents[address], packed)
    assert store.num_bytes == heads.words_size + sum(packed.nbytes for packed in heads.packed[:3])
    assert addresses_of(store, heads.stored) == [2000, 3000, 4000, 5000]
    assert heads.memory.opened == [3, 1]
    assert heads.reads == 4


def test_stored_heads_that_do_not_fit(heads: Heads) -> None:
    sizes = [packed.nbytes for packed in heads.packed]
    store = heads.store(heads.words_size + sizes[0] + sizes[1])
    assert addresses_of(store, heads.stored[:3]) == [2000, 3000, 0]
    assert addresses_of(store, heads.stored[2:3])[0] > 0, "instead of the first one, or of both"
    assert store.num_bytes <= heads.words_size + sizes[0] + sizes[1]
    assert addresses_of(heads.store(heads.words_size + min(sizes) - 1), heads.stored) == [0] * 4


def test_heads_that_take_too_much_memory_to_open(heads: Heads) -> None:
    """The host opens them if the words do not fit, or if there is too little memory to open a head."""
    word_starts, words, *separators = heads.core.words(0)
    tokens = word_starts, np.append(words, np.zeros(100_000, np.uint8)), *separators
    heads.words.read = lambda: tokens
    size = packed_words_size(tokens)
    assert size == pack_words(tokens).nbytes > heads.packed[1].nbytes
    for capacity, workspace_bytes in ((size - 1, 1 << 30), (1 << 30, 1000)):
        heads.memory.workspace_bytes = workspace_bytes
        store = heads.store(capacity)
        (address,) = addresses_of(store, heads.stored[1:2])
        assert np.array_equal(heads.memory.contents[address], heads.packed[1])
        assert store.num_bytes == heads.packed[1].nbytes
        assert addresses_of(store, heads.stored[1:2]) == [address]
    damaged = StoredHead(heads.stored[0].read, heads.words, lambda: (None, BlockStatus.BAD_PAYLOAD))
    addresses, statuses = store.load([damaged])
    assert (addresses.tolist(), statuses.tolist()) == ([0], [BlockStatus.BAD_PAYLOAD])
    assert heads.memory.opened == []


def test_words_are_not_dropped_while_heads_are_opened(heads: Heads, tables: list[SymbolTable]) -> None:
    store = heads.store(heads.words_size + heads.packed[0].nbytes + packed_size(tables[0]) - 1)
    addresses, _ = store.load([heads.stored[0], *tables])
    assert addresses.tolist() == [2000] + [0] * 6


def test_no_memory_to_open_heads(heads: Heads) -> None:
    store = heads.store(1 << 30)
    heads.memory.is_full_for_workspace = True
    assert addresses_of(store, heads.stored) == [0] * 4
    assert store.num_bytes == heads.words_size
    heads.memory.is_full_for_workspace = False
    assert all(addresses_of(store, heads.stored))
    heads.memory.is_full = True
    assert addresses_of(heads.store(1 << 30), heads.stored) == [0] * 4


def test_damaged_heads(heads: Heads) -> None:
    """The checksums are compared on the host. What the device refuses leaves the store."""
    sound = heads.heads[0]
    changed = TadocHead(sound.payload[:-20] + b"\xff" * 12 + bytes(8), sound.pool_size, sound.section)
    impossible = TadocHead(sound.payload[:20] + b"\xff" * 4 + sound.payload[24:], sound.pool_size, sound.section)
    heads.memory.expected[changed.payload] = None
    blocks = [
        sound.block, changed.block, impossible.block, sound.block[:-1], sound.block + b"\0", b"", sound.block[:20],
        sound.block[:60] + b"\0" + sound.block[61:], sound.block[:4] + b"\2" + sound.block[5:],
    ]  # fmt: skip
    store = heads.store(1 << 30)
    addresses, statuses = store.load([heads.stored_head(block) for block in blocks])
    header, checksum, payload = BlockStatus.BAD_HEADER, BlockStatus.BAD_CHECKSUM, BlockStatus.BAD_PAYLOAD
    assert statuses.tolist() == [0, payload, payload, header, header, header, header, checksum, header]
    assert np.flatnonzero(addresses).tolist() == [0]
    assert store.num_bytes == heads.words_size + heads.packed[0].nbytes
    core = part_heads(blocks[:3] + blocks[7:8], sound.section)
    assert core.open(range(4))[1] == bytes([0, payload, payload, checksum])


def test_an_error_while_heads_are_opened(heads: Heads) -> None:
    store = heads.store(1 << 30)
    heads.memory.expected = {}
    with pytest.raises(KeyError):
        store.load(heads.stored)
    assert store.num_bytes == heads.words_size


def test_views_keep_the_symbols_alive() -> None:
    symbols = symbols_of_text(b"some words and some words\n" * 9)
    expected, expansions, pool, code = pack_head(symbols).tobytes(), symbols.expansions, symbols.pool, symbols.code
    copies = [view.copy() for view in (expansions, pool, code)]
    assert not any(view.flags.writeable for view in (expansions, pool, code))
    del symbols
    symbols_of_text(b"other words\n" * 9)
    assert all(map(np.array_equal, (expansions, pool, code), copies))
    assert expected.endswith(copies[0].tobytes() + copies[1].tobytes())
    assert b"some words and some words\n" in copies[1].tobytes()


def test_words_of_a_segment() -> None:
    head = heads_of_texts()[0]
    core = part_heads([head.block], head.section)
    word_starts, words, separator_starts, separators = views = core.words(0)
    num_words, num_separators = np.frombuffer(head.section, np.uint32, 2).tolist()
    assert (word_starts.size, separator_starts.size) == (num_words + 1, num_separators + 1)
    assert (words[word_starts[1:] - 1] == ord(" ")).all()
    assert separators.tobytes() == head.section[len(head.section) - separators.size :]
    copies = [view.copy() for view in views]
    with pytest.raises(IndexError):
        core.words(1)
    del core
    assert all(map(np.array_equal, views, copies))
    assert [view.size for view in part_heads([], b"damaged").words(0)] == [1, 0, 1, 0]


def test_symbols_have_numbers_of_their_own(tables: list[SymbolTable]) -> None:
    again = symbols_of_text(b"word_0 and_0 word_0\n" * 20)
    assert len({table.number for table in (*tables, again)}) == 7
    stored = Heads(2)
    assert len({stored.words.number, *(head.number for head in stored.stored)}) == 3
    assert all(head.number < 0 for head in stored.stored)
