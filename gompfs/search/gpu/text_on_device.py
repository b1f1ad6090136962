"""The blocks of an archive as text in the memory of a device, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gompfs.archive import Archive
from gompfs.codec import BlockStatus
from gompfs.gpu.decode.archive_source import ArchiveSource
from gompfs.gpu.decode.block_source import BlockSource
from gompfs.gpu.device.arrays import TextDevice
from gompfs.search.gpu.block_scan import Measures, StreamText, measure_blocks, stream_text

Numbers = NDArray[np.int64]

_BATCH_BYTES = 256 << 20
_BATCHES_IN_MEMORY = 6
LEAST_BATCH = 8 << 20
"""Batches are not cut into smaller ones for several devices."""


class TextBatch(NamedTuple):
    """Blocks of the stream in device memory, by ascending numbers."""

    numbers: Numbers
    stream: StreamText
    measures: Measures
    """They are on the device."""
    statuses: Callable[[], NDArray[np.uint8]]
    """Waits for the device, and returns a BlockStatus for each block."""

    def without_text(self) -> TextBatch:
        """Returns the batch without its text, so that the memory of the text can be used again."""
        return self._replace(stream=self.stream._replace(text=None))


def texts_on_devices(archive: Archive, devices: Sequence[TextDevice]) -> list[TextOnDevice]:
    """Returns the text of an archive on some devices. The batches of the stream go to the devices in turn."""
    source = ArchiveSource(archive.stored, archive.engine.num_threads)
    ends = np.cumsum(source.uncompressed_sizes, dtype=np.int64)
    batch_bytes = min(_BATCH_BYTES, *(device.memory // _BATCHES_IN_MEMORY for device in devices))
    if len(devices) > 1 and ends.size:
        # as many batches for each device, unless they would be tiny
        total = int(ends[-1]) + 1
        num_batches = len(devices) * -(-total // (len(devices) * batch_bytes))
        batch_bytes = min(max(-(-total // num_batches), LEAST_BATCH), batch_bytes)
    batches = ends // batch_bytes
    return [
        TextOnDevice(source, batches, batches % len(devices) == number, device) for number, device in enumerate(devices)
    ]


class TextOnDevice:
    """Decodes blocks into the memory of one device, for one thread at a time, which is inside of the device."""

    def __init__(
        self,
        source: BlockSource,
        batch_of_block: Numbers,
        is_here: NDArray[np.bool_],
        device: TextDevice,
    ) -> None:
        """`source` reads the blocks. `is_here` says which of them this device decodes."""
        self.sizes: NDArray[np.uint32] = source.uncompressed_sizes.astype(np.uint32)
        """The uncompressed sizes of all blocks."""
        self.device = device
        self._decoder = device.decoder(source)
        self._batch_of_block = batch_of_block
        self._is_here = is_here
        self._measured: dict[int, tuple[Numbers, Measures]] = {}  # by batch: blocks, and their measures

    def batches(self, wanted: NDArray[np.bool_]) -> Iterator[TextBatch]:
        """Yields the blocks of this device that are chosen.

        Raises errors of reading, and MemoryError. While the device works on a batch, the next one is read.
        """
        numbers = np.flatnonzero(wanted & self._is_here).astype(np.int64)
        cuts = np.flatnonzero(np.diff(self._batch_of_block[numbers])) + 1
        for chosen in np.split(numbers, cuts) if numbers.size else []:
            yield self._decode(chosen)

    def _decode(self, numbers: Numbers) -> TextBatch:
        decoded = self._decoder.decode(numbers.astype(np.uint64))
        continues = np.zeros(numbers.size + 1, np.uint8)
        continues[1:-1] = np.diff(numbers) == 1
        continues[0] = numbers[0] > 0
        stream = stream_text(self.device, decoded.text, decoded.offsets, self.sizes[numbers], continues)
        return TextBatch(numbers, stream, self._measures(numbers, stream), decoded.statuses)

    def _measures(self, numbers: Numbers, stream: StreamText) -> Measures:
        """Returns the Measures of blocks, which are computed once for each block."""
        batch = int(self._batch_of_block[numbers[0]])
        measured, measures = self._measured.get(batch, (numbers[:0], None))
        if measures is None or not np.isin(numbers, measured).all():
            measures = measure_blocks(self.device, stream)
            self._measured[batch] = numbers, measures
        elif measured.size > numbers.size:
            rows = self.device.upload(np.searchsorted(measured, numbers))
            measures = Measures(*(column[rows] for column in measures))
        return measures


def is_damaged(batch: TextBatch) -> NDArray[np.bool_]:
    """Returns which blocks of a batch are damaged. Waits for the device."""
    damaged: NDArray[np.bool_] = batch.statuses() != BlockStatus.OK
    return damaged
