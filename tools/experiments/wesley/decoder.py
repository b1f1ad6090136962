"""Decodes triples on a device, in the phases of the thesis."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from gompfs.gpu.device.arrays import Array, ArrayDevice, Tile

from .serial import BadTriplesError

_KERNELS = Path(__file__).parents[1] / "kernels"
_SOURCE, _TILES_SOURCE = str(_KERNELS / "triples_decode"), str(_KERNELS / "triples_tiles")
# constants of the kernels
ROOT_TILE = Tile(4096, 512, 16_384)
WINDOW_GROUP = Tile(64, 256, 1024)

Roots = Callable[[ArrayDevice, Array], Array]
"""Returns the text, from the parent (uint32) of each of its bytes."""


def decode(device: ArrayDevice, triples: Array, size: int, roots: Roots) -> Array:
    """Returns the text of `size` bytes that triples stand for; both are bytes on the device.

    Raises BadTriplesError as `serial.decode` does, but for a number of triples that `serial.split` would refuse.

    1. Each triple says how many bytes it stands for. 2. A prefix sum tells where they begin. 3. Each byte gets a
    parent: its source, or a root for its value. 4. `roots` finds the root of each byte.
    """
    xp, count = device.xp, triples.size // 3
    sizes = xp.empty(count, np.uint32)
    device.launch(_SOURCE, "measure_triples", count, triples, count, sizes)
    ends = xp.cumsum(sizes, dtype=np.uint64)
    # Roots at first: triples that are not valid may leave parents out.
    parents, num_bad = xp.full(size, size, np.uint32), xp.zeros(1, np.uint32)
    device.launch(_SOURCE, "write_parents", count, triples, ends, count, size, parents, num_bad)
    text = roots(device, parents)
    if int(num_bad[0]) or bool(size) != bool(count):
        raise BadTriplesError("the triples do not stand for a text of that size")
    return text


def find_by_jumping(device: ArrayDevice, parents: Array) -> Array:
    """Lets each byte follow the parents to its root, as the thesis does."""
    text = device.xp.empty(parents.size, np.uint8)
    device.launch(_SOURCE, "find_roots", parents.size, parents, parents.size, text)
    return text


def find_by_tiles(device: ArrayDevice, parents: Array) -> Array:
    """Finds roots within tiles, and then from tile to tile: a chain of any length takes the same time."""
    xp, size = device.xp, parents.size
    num_tiles = -(-size // ROOT_TILE.num_items)
    num_groups = -(-num_tiles // WINDOW_GROUP.num_items)
    window, threads = WINDOW_GROUP.num_threads, WINDOW_GROUP.num_threads
    codes, text = xp.empty(size, np.uint16), xp.empty(size, np.uint8)
    maps, windows = xp.empty(num_tiles * window, np.uint16), xp.empty(num_groups * window, np.uint16)
    device.launch(_TILES_SOURCE, "resolve_tiles", size, parents, size, codes, maps, tile=ROOT_TILE)
    compose = (_TILES_SOURCE, "compose_windows")
    device.launch(*compose, num_tiles, maps, num_tiles, WINDOW_GROUP.num_items, windows, tile=WINDOW_GROUP)
    whole = Tile(num_groups, threads, WINDOW_GROUP.shared_bytes)
    device.launch(*compose, num_groups, windows, num_groups, num_groups, None, tile=whole)
    device.launch(_TILES_SOURCE, "write_tiles", size, codes, size, maps, windows, text)
    return text
