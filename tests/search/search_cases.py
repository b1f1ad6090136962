"""Searches with a device that scans blocks first, compared with searches on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tree_helpers import pack

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.engine import Engine, select_engine
from gompfs.model import ROOT_INO
from gompfs.search.query import SearchQuery
from gompfs.search.search import ArchiveSearch, SearchTotals
from gompfs.search.search_memory import SearchMemory

BLOCK_SIZE = 16 << 10


def pack_tree(tree: Path, name: str) -> Path:
    """Packs a tree with its text stored in parts that end inside of files (`text`), or as bytes (`bytes`)."""
    target = tree.parent / f"{name}.gomp"
    if name == "text":
        pack(target, tree, codec=Codec.GOMPRESSO_TADOC, part_size=40_000, block_size=BLOCK_SIZE)
    else:
        pack(target, tree, block_size=BLOCK_SIZE)
    return target


def found(archive: Archive, query: SearchQuery, memory: SearchMemory | None = None) -> tuple[bytes, SearchTotals]:
    search = ArchiveSearch(archive, query, [(b"", ROOT_INO)], memory=memory)
    output = b"".join(search)
    assert not search.failures
    return output, search.totals


def check(archive: Path, engine: Engine, **options: Any) -> SearchTotals:
    """Compares both searches. Returns the totals of the one with the device."""
    query = SearchQuery(read_all=True, **options)
    with Archive(archive, engine=select_engine("cpu")) as opened:
        expected, expected_totals = found(opened, query)
    with Archive(archive, engine=engine) as opened:
        output, totals = found(opened, query)
    assert output == expected
    # A search on the CPU does not count what comes after a NUL.
    assert totals._replace(scanned_bytes=0, candidate_bytes=0, bytes=expected_totals.bytes) == expected_totals
    return totals
