"""Encodes triples on a device, in the phases of the thesis."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from gompfs.gpu.device.arrays import Array, ArrayDevice, Tile

_SOURCE = str(Path(__file__).parents[1] / "kernels" / "triples_encode")
_WINDOW = 256
# constants of the kernels
SEARCH_TILE = Tile(512, 512, 1032)
MAP_TILE = Tile(2048, 256, 8192)
MARK_TILE = Tile(2048, 256, 43_008)

Marks = Callable[[ArrayDevice, Array], Array]
"""Returns a mark (uint8: 1 or 0) for each position: whether a walk from position 0 along an array `nexts` visits it."""


def encode(device: ArrayDevice, text: Array, marks: Marks) -> Array:
    """Returns the triples of a text, without its size; both are bytes on the device.

    1. All positions look for their match, which says where the next triple would begin (`nexts`).
    2. `marks` finds the positions at which a triple begins: phases 2 to 5 of the thesis, see `mark_by_chains`.
    3. A prefix sum numbers these positions, and each writes its triple.
    """
    xp, size = device.xp, text.size
    lengths, distances = xp.empty(size, np.uint8), xp.empty(size, np.uint8)
    nexts = xp.empty(size, np.uint32)
    device.launch(_SOURCE, "find_matches", size, text, size, lengths, distances, nexts, tile=SEARCH_TILE)
    alive = marks(device, nexts)
    ranks = xp.cumsum(alive, dtype=np.uint32)
    triples = xp.empty(3 * int(ranks[-1]) if size else 0, np.uint8)
    device.launch(_SOURCE, "write_triples", size, text, size, lengths, distances, alive, ranks, triples)
    return triples


def mark_by_chains(device: ArrayDevice, nexts: Array) -> Array:
    """Marks positions as the thesis does, in rounds on the host, until one chain is left.

    A chain is a maximal row of positions in which each has exactly one predecessor. Each round counts predecessors
    (`degrees`), joins the positions of each chain, and removes the chains that no other chain leads to, except that of
    position 0. Chains that meet where one was removed are one chain in the next round.
    """
    xp, size = device.xp, nexts.size
    degrees = xp.zeros(size, np.uint32)
    device.launch(_SOURCE, "count_predecessors", size, nexts, size, degrees)
    alive = xp.ones(size, np.uint8)
    links, heads = xp.zeros(size, np.uint32), xp.empty(size, np.uint32)
    has_changed = xp.ones(1, np.uint32)
    while size and int(has_changed[0]):
        has_changed[:] = 0
        device.launch(_SOURCE, "link_chains", size, nexts, degrees, alive, size, links)
        device.launch(_SOURCE, "find_heads", size, links, alive, size, heads)
        before = degrees.copy()
        device.launch(_SOURCE, "remove_dangling", size, nexts, heads, before, size, degrees, alive, has_changed)
    return alive


def mark_by_maps(device: ArrayDevice, nexts: Array) -> Array:
    """Marks positions without rounds on the host: linear work, and a prefix sum over tiles.

    A tile maps each of its first 256 positions to the one where a walk from there enters the next tile. The maps of all
    tiles, one after the other, tell where the walk from position 0 enters each tile.
    """
    xp, size = device.xp, nexts.size
    num_tiles = -(-size // MAP_TILE.num_items)
    maps = xp.empty(num_tiles * _WINDOW, np.uint8)
    device.launch(_SOURCE, "map_tiles", size, nexts, size, maps, tile=MAP_TILE)
    composed, step = xp.empty_like(maps), 1
    while step < num_tiles:
        device.launch(_SOURCE, "compose_maps", maps.size, maps, num_tiles, step, composed)
        maps, composed = composed, maps
        step *= 2
    alive = xp.empty(size, np.uint8)
    device.launch(_SOURCE, "mark_tiles", size, nexts, size, maps, alive, tile=MARK_TILE)
    return alive
