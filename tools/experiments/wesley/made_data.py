"""Data of two further kinds that the thesis compresses: a genome like `E.coli`, and a picture like `test4.bmp`."""

from __future__ import annotations

import struct

import numpy as np

_BASES = np.frombuffer(b"acgt", np.uint8)
_SHARES = (0.246, 0.254, 0.254, 0.246)  # of the bases in E. coli's genome
_HEADER = struct.Struct("<2sIHHI IiiHHIIiiII")
_CORNERS = ((0, 96, 160), (224, 64, 32))  # colours of opposite corners: blue, green, red


def genome(size: int, seed: int = 0) -> bytes:
    """Returns letters that are drawn independently, as a genome hardly repeats within 255 bytes."""
    return _BASES[np.random.default_rng(seed).choice(4, size, p=_SHARES)].tobytes()


def bitmap(side: int, num_discs: int = 200, seed: int = 0) -> bytes:
    """Returns a square picture in the format BMP, 24 bits a pixel: discs of one colour on a gradient."""
    assert side % 4 == 0, "rows of a bitmap have a multiple of four bytes"
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side]
    first, last = (np.array(colour) for colour in _CORNERS)
    pixels = (first + (last - first) * ((x + y) / (2 * side - 2))[..., None]).astype(np.uint8)
    for _ in range(num_discs):
        centre_y, centre_x, radius = rng.integers(0, side), rng.integers(0, side), rng.integers(1, side // 12 + 2)
        pixels[(y - centre_y) ** 2 + (x - centre_x) ** 2 < radius**2] = rng.integers(0, 256, 3)
    content = pixels.tobytes()
    start = _HEADER.size
    return (
        _HEADER.pack(b"BM", start + len(content), 0, 0, start, 40, side, side, 1, 24, 0, len(content), 0, 0, 0, 0)
        + content
    )
