"""Graphs of two kinds that the thesis compresses, in the binary format of its programs (compressed sparse rows)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def grid_graph(side: int) -> bytes:
    """Returns a torus of `side` by `side` nodes, each with four neighbours, like the graph `2d-2e20`."""
    number = np.arange(side * side, dtype=np.int32).reshape(side, side)
    around = [np.roll(number, shift, axis) for axis in (0, 1) for shift in (1, -1)]
    neighbours = np.sort(np.stack(around, axis=-1).reshape(-1, 4), axis=1)
    return _as_rows(np.arange(side * side + 1, dtype=np.int32) * 4, neighbours.ravel())


def random_geometric_graph(num_nodes_log2: int, seed: int = 0) -> bytes:
    """Returns a graph of random points in a square, with edges between near ones, like the graphs `rgg_n_2_*_s0`.

    As in those, points are near if their distance is below 0.55 * sqrt(ln n / n), and their numbers have no order in
    space.
    """
    count = 1 << num_nodes_log2
    radius = 0.55 * float(np.sqrt(np.log(count) / count))
    points = np.random.default_rng(seed).random((count, 2))
    cells_per_side = int(1 / radius)
    cells = (points * cells_per_side).astype(np.int64)
    order = np.lexsort((cells[:, 1], cells[:, 0]))
    numbers = cells[order, 0] * cells_per_side + cells[order, 1]
    pairs = []
    for right, down in ((0, 0), (0, 1), (1, -1), (1, 0), (1, 1)):
        inside = (cells[order, 1] + down >= 0) & (cells[order, 1] + down < cells_per_side)
        others = numbers + right * cells_per_side + down
        starts = np.searchsorted(numbers, others)
        sizes = np.where(inside, np.searchsorted(numbers, others, "right") - starts, 0)
        left = np.repeat(np.arange(count), sizes)
        offsets = np.arange(left.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        found = starts[left] + offsets
        is_pair = left < found if (right, down) == (0, 0) else np.ones(left.size, np.bool_)
        pairs.append(np.stack([order[left[is_pair]], order[found[is_pair]]], axis=1))
    near = np.concatenate(pairs)
    near = near[((points[near[:, 0]] - points[near[:, 1]]) ** 2).sum(axis=1) < radius**2]
    both = np.concatenate([near, near[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    starts = np.searchsorted(both[:, 0], np.arange(count + 1))
    return _as_rows(starts.astype(np.int32), both[:, 1].astype(np.int32))


def _as_rows(starts: NDArray[np.int32], neighbours: NDArray[np.int32]) -> bytes:
    return np.array([starts.size - 1, neighbours.size], np.int32).tobytes() + starts.tobytes() + neighbours.tobytes()
