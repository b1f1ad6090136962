"""Which heads of parts stay in device memory."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray
from tadoc_blocks import packed_blocks

from gompfs._native.parts import SymbolTable
from gompfs.gpu.heads import HeadStore, pack_head, packed_size


class Memory:
    """Counts uploads, and gives each head the address 1000 times the number of the upload."""

    def __init__(self) -> None:
        self.uploads = 0
        self.is_full = False

    def upload(self, packed: NDArray[np.uint8]) -> SimpleNamespace:
        if self.is_full:
            raise MemoryError
        self.uploads += 1
        return SimpleNamespace(nbytes=packed.nbytes, data=SimpleNamespace(ptr=1000 * self.uploads))


@pytest.fixture(scope="module")
def tables() -> list[SymbolTable]:
    """Symbols of six parts of equal size."""
    found = [packed_blocks([b"word_%d and_%d word_%d\n" % (n, n, n) * 20], 1 << 9, 1 << 9)[0].symbols for n in range(6)]
    assert len({packed_size(table) for table in found}) == 1
    return found


def test_the_least_recently_used_head_is_dropped(tables: list[SymbolTable]) -> None:
    memory = Memory()
    size = packed_size(tables[0])
    store = HeadStore(3 * size, memory.upload)
    assert store.load(tables[:3]).tolist() == [1000, 2000, 3000]
    assert store.load([tables[0], tables[0], tables[2]]).tolist() == [1000, 1000, 3000]
    assert memory.uploads == 3
    assert store.load([tables[3]]).tolist() == [4000], "instead of the second one"
    assert store.load([tables[0], tables[2], tables[3]]).tolist() == [1000, 3000, 4000]
    assert store.load([tables[1]]).tolist() == [5000], "instead of the first one"
    assert store.num_bytes == 3 * size
    assert store.load([]).size == 0


def test_heads_of_one_call_do_not_replace_each_other(tables: list[SymbolTable]) -> None:
    memory = Memory()
    store = HeadStore(2 * packed_size(tables[0]) + 100, memory.upload)
    assert store.load(tables[:4]).tolist() == [1000, 2000, 0, 0]
    assert store.load([tables[2], tables[0], tables[1]]).tolist() == [3000, 4000, 0]
    assert store.num_bytes == 2 * packed_size(tables[0])


def test_a_head_that_does_not_fit(tables: list[SymbolTable]) -> None:
    memory = Memory()
    size = packed_size(tables[0])
    assert HeadStore(size - 1, memory.upload).load(tables[:1]).tolist() == [0]
    assert memory.uploads == 0
    store = HeadStore(size, memory.upload)
    memory.is_full = True
    assert store.load(tables[:1]).tolist() == [0]
    assert store.num_bytes == 0
    memory.is_full = False
    assert store.load(tables[:1]).tolist() == [1000]


def test_views_keep_the_symbols_alive() -> None:
    symbols = packed_blocks([b"some words and some words\n" * 9], 1 << 9, 1 << 9)[0].symbols
    expected, expansions, pool, code = pack_head(symbols).tobytes(), symbols.expansions, symbols.pool, symbols.code
    copies = [view.copy() for view in (expansions, pool, code)]
    assert not any(view.flags.writeable for view in (expansions, pool, code))
    del symbols
    packed_blocks([b"other words\n" * 99], 1 << 9, 1 << 9)
    assert all(map(np.array_equal, (expansions, pool, code), copies))
    assert expected.endswith(copies[0].tobytes() + copies[1].tobytes())
    assert b"some words and some words\n" in copies[1].tobytes()


def test_symbols_have_numbers_of_their_own(tables: list[SymbolTable]) -> None:
    again = packed_blocks([b"word_0 and_0 word_0\n" * 20], 1 << 9, 1 << 9)[0].symbols
    assert len({table.number for table in (*tables, again)}) == 7
