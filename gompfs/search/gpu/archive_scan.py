"""Finds the blocks of an archive that may have matches, on devices that decode and search them in their memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gompfs._native.search import Cancellation
from gompfs.archive import Archive
from gompfs.errors import EngineUnavailableError
from gompfs.gpu.device.arrays import Array
from gompfs.gpu.device.spread import run_together
from gompfs.search.gpu.block_scan import HAS_FOLDING, HAS_MARK, HAS_NUL, BlockScan, Measures, ScanTable
from gompfs.search.gpu.text_on_device import TextBatch, TextOnDevice, is_damaged

_PROBED_BATCHES = 2
_MOST_CANDIDATES = 0.75
"""If a larger fraction of a device's first blocks may have matches, scanning its other blocks saves nothing."""


class ArchiveScan:
    """The result of a scan of the blocks of an archive: columns by block of the stream.

    Blocks that were not scanned may have matches and NULs.
    """

    def __init__(self, archive: Archive, texts: Sequence[TextOnDevice], table: ScanTable) -> None:
        """Search for `table` on the devices of `texts`, which have different blocks."""
        num_blocks = archive.num_blocks
        self.sizes = texts[0].sizes
        self.may_match: NDArray[np.uint8] = np.ones(num_blocks, np.uint8)
        self.has_nul: NDArray[np.uint8] = np.ones(num_blocks, np.uint8)
        self.num_lines: NDArray[np.uint32] = np.zeros(num_blocks, np.uint32)
        self.last_lines: NDArray[np.uint32] = np.zeros(num_blocks, np.uint32)
        self._of_devices = [_DeviceScan(self, text, table) for text in texts]

    def run(self, wanted: bytes, cancellation: Cancellation) -> None:
        """Scan the blocks that are not 0 in `wanted`, until `cancellation` ends it.

        Raises EngineUnavailableError and errors of reading.
        """
        chosen = np.frombuffer(wanted, np.bool_)
        run_together([partial(each.run, chosen, cancellation) for each in self._of_devices])

    @property
    def num_bytes(self) -> int:
        """The number of bytes that were scanned."""
        return sum(each.num_bytes for each in self._of_devices)

    @property
    def num_bytes_found(self) -> int:
        """The number of scanned bytes in blocks that may have matches."""
        return sum(each.num_bytes_found for each in self._of_devices)


class _DeviceScan:
    """The part of a scan that one device does, for one use."""

    def __init__(self, scan: ArchiveScan, text: TextOnDevice, table: ScanTable) -> None:
        """Fills the columns of `scan` for blocks of `text`."""
        self._scan = scan
        self._text = text
        self._table = table
        self._found: list[tuple[TextBatch, Array]] = []  # not yet downloaded
        self.num_bytes = 0
        self.num_bytes_found = 0

    def run(self, chosen: NDArray[np.bool_], cancellation: Cancellation) -> None:
        """Scans some blocks. Raises EngineUnavailableError and errors of reading."""
        device = self._text.device
        try:
            with device:
                scan = BlockScan(device, self._table)
                for count, batch in enumerate(self._text.batches(chosen), 1):
                    found = scan.find(batch.stream)
                    self._found.append((batch.without_text(), found))
                    if count == _PROBED_BATCHES:
                        self._take_found()
                        if self.num_bytes_found > _MOST_CANDIDATES * self.num_bytes:
                            return
                    if cancellation.is_cancelled:
                        return
                self._take_found()
        except MemoryError:
            raise EngineUnavailableError(f"{device.name} has too little free memory to search") from None

    def _take_found(self) -> None:
        """Fills the columns for the batches that were scanned. Waits for the device once."""
        if not self._found:
            return
        device, xp = self._text.device, self._text.device.xp
        found = device.download(xp.concatenate([each for _, each in self._found]))
        columns = zip(*(batch.measures for batch, _ in self._found), strict=True)
        measures = [device.download(xp.concatenate(column)) for column in columns]
        start = 0
        for batch, _ in self._found:
            rows = slice(start, start + batch.numbers.size)
            self._take(batch, found[rows], Measures(*(column[rows] for column in measures)))
            start = rows.stop
        self._found.clear()

    def _take(self, batch: TextBatch, found: NDArray[np.uint8], measures: Measures) -> None:
        scan, numbers, facts, damaged = self._scan, batch.numbers, measures.facts, is_damaged(batch)
        may_match = (found != 0) | (facts & HAS_MARK != 0) | damaged
        # a line that is in another batch as well
        may_match[0] |= numbers[0] > 0
        may_match[-1] |= numbers[-1] + 1 < scan.sizes.size
        if self._table.is_unsure_of_folding:
            may_match |= facts & HAS_FOLDING != 0
        scan.may_match[numbers] = may_match
        scan.has_nul[numbers] = (facts & HAS_NUL != 0) | damaged
        scan.num_lines[numbers], scan.last_lines[numbers] = measures.num_lines, measures.last_lines
        sizes = scan.sizes[numbers].astype(np.int64)
        self.num_bytes += int(sizes.sum())
        self.num_bytes_found += int(sizes[may_match].sum())
