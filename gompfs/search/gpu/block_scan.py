"""Searches blocks of text in device memory, to tell which of them may have matches (kernels/search)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gompfs.gpu.device.arrays import Array, ArrayDevice, Tile

HAS_NUL, HAS_MARK, HAS_FOLDING = 1, 2, 4  # the bits of BlockFact in kernels/search/measure_blocks.cu
SEGMENT_SIZE = 512
_BYTES_OF_CTA = 256 << 10  # about; a CTA reads the bitmap of the literals once
MEASURE_TILE = Tile(1, 256, 16)
_LITERAL_THREADS = 512
_AUTOMATON_THREADS = 256
_SEGMENTS_OF_THREAD = 4


class ScanTable(NamedTuple):
    """The compiled form of a pattern, as `Matcher.scan_table` returns it."""

    kernel: str
    table: bytes
    shared_bytes: int
    is_unsure_of_folding: bool
    """Blocks with letters outside of ASCII that fold to k or s may have matches."""


class StreamText(NamedTuple):
    """Blocks of the stream on the device, in order, and their offsets, sizes and order; see stream_text.cuh."""

    text: Array
    offsets: Array
    sizes: Array
    continues: Array
    largest: int
    """The size of the largest block in bytes."""

    @property
    def columns(self) -> tuple[Array, Array, Array, Array]:
        """The first arguments of all kernels."""
        return self.text, self.offsets, self.sizes, self.continues

    @property
    def num_blocks(self) -> int:
        """The number of blocks."""
        return int(self.sizes.size)


class Measures(NamedTuple):
    """Facts about the text of blocks that no pattern changes (uint32, by block)."""

    facts: Array
    """HAS_NUL and others."""
    num_lines: Array
    """The number of line feeds."""
    last_lines: Array
    """The offset after the last line feed, or 0."""


def stream_text(
    device: ArrayDevice,
    text: Array,
    offsets: NDArray[np.uint64],
    sizes: NDArray[np.uint32],
    continues: NDArray[np.uint8],
) -> StreamText:
    """Returns blocks of a text in device memory. See stream_text.cuh for `continues`."""
    upload = device.upload
    return StreamText(text, upload(offsets), upload(sizes), upload(continues), int(np.max(sizes, initial=0)))


def measure_blocks(device: ArrayDevice, stream: StreamText) -> Measures:
    """Counts lines, and finds bytes that change how a file is searched. The columns are on the device."""
    columns = [device.xp.zeros(stream.num_blocks, np.uint32) for _ in Measures._fields]
    device.launch(
        "search/measure_blocks", "measure_blocks", stream.num_blocks, *stream.columns, *columns, tile=MEASURE_TILE
    )
    return Measures(*columns)


class BlockScan:
    """A search for one table."""

    def __init__(self, device: ArrayDevice, table: ScanTable) -> None:
        """Copies the table to the device."""
        self._device = device
        self._kernel = table.kernel
        self._shared_bytes = table.shared_bytes
        self._table = device.upload(np.frombuffer(table.table, np.uint8))

    def find(self, stream: StreamText) -> Array:
        """Returns 1 for each block that may have a match, else 0 (uint8, on the device).

        A match that is partly in blocks before or after these may be missed.
        """
        found = self._device.xp.zeros(stream.num_blocks, np.uint8)
        if self._kernel == "find_literals":
            self._find_literals(stream, found)
        else:
            self._run_automaton(stream, found)
        return found

    def _find_literals(self, stream: StreamText, found: Array) -> None:
        blocks_per_cta = max(_BYTES_OF_CTA // max(stream.largest, 1), 1)
        self._device.launch(
            "search/find_literals",
            "find_literals",
            stream.num_blocks,
            *(*stream.columns, stream.num_blocks, blocks_per_cta, self._table, found),
            tile=Tile(blocks_per_cta, _LITERAL_THREADS, self._shared_bytes),
        )

    def _run_automaton(self, stream: StreamText, found: Array) -> None:
        segments_per_block = -(-stream.largest // SEGMENT_SIZE)
        self._device.launch(
            "search/run_automaton",
            "run_automaton",
            stream.num_blocks * segments_per_block,
            *(*stream.columns, stream.num_blocks, segments_per_block),
            *(self._table, np.uint32(self._shared_bytes), found),
            tile=Tile(_AUTOMATON_THREADS * _SEGMENTS_OF_THREAD, _AUTOMATON_THREADS, self._shared_bytes),
        )
