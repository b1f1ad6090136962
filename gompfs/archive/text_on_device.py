"""The blocks of an archive as text in the memory of a device, batch by batch.

Batches whose payloads stay in device memory are not read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gompfs.archive.staged_blocks import StagedBlocks
from gompfs.codec import BlockStatus
from gompfs.gpu.arrays import KeptBlocks, TextDevice
from gompfs.gpu.block_scan import Measures, StreamText, measure_blocks, stream_text
from gompfs.gpu.block_source import BlockSource
from gompfs.gpu.spread import LEAST_SHARE

if TYPE_CHECKING:
    from gompfs.archive.archive import Archive

Numbers = NDArray[np.int64]

_BATCH_BYTES = 256 << 20
_BATCHES_IN_MEMORY = 6


class TextBatch(NamedTuple):
    """Blocks of the stream in device memory, by ascending numbers."""

    numbers: Numbers
    stream: StreamText
    is_damaged: NDArray[np.bool_]
    measures: Measures
    """They are on the device."""
    kept: KeptBlocks | None

    @property
    def is_valid(self) -> bool:
        """Whether the text was that of the archive until now."""
        return self.kept is None or self.kept.is_valid

    def without_text(self) -> TextBatch:
        """Returns the batch without its text, so that the memory of the text can be used again."""
        return self._replace(stream=self.stream._replace(text=None))


def texts_on_devices(archive: Archive, devices: Sequence[TextDevice]) -> list[TextOnDevice]:
    """Returns the text of an archive on some devices. The batches of the stream go to the devices in turn."""
    source = StagedBlocks(archive)
    sizes = source.uncompressed_sizes
    ends = np.cumsum(sizes, dtype=np.int64)
    batch_bytes = min(_BATCH_BYTES, *(device.memory // _BATCHES_IN_MEMORY for device in devices))
    if len(devices) > 1 and ends.size:
        # as many batches for each device, unless they would be tiny
        total = int(ends[-1]) + 1
        num_batches = len(devices) * -(-total // (len(devices) * batch_bytes))
        batch_bytes = min(max(-(-total // num_batches), LEAST_SHARE), batch_bytes)
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
        self._source = source
        self._batch_of_block = batch_of_block
        self._is_here = is_here
        self._kept: dict[int, TextBatch] = {}

    def batches(self, wanted: NDArray[np.bool_]) -> Iterator[TextBatch]:
        """Yields the blocks of this device that are chosen, perhaps with others, and whether they are damaged.

        Raises errors of reading, and MemoryError. A thread reads blocks while the device works on the batch before.
        Blocks that stayed on the device are left out if they are dropped from there in the meantime.
        """
        numbers = np.flatnonzero(wanted & self._is_here).astype(np.int64)
        cuts = np.flatnonzero(np.diff(self._batch_of_block[numbers])) + 1
        with ThreadPoolExecutor(1, thread_name_prefix="gompfs-read-text") as reader:
            waiting: TextBatch | tuple[Numbers, Future[Any]] | None = None
            for chosen in np.split(numbers, cuts) if numbers.size else []:
                kept = self._find(chosen)
                following = kept or (chosen, reader.submit(self.device.stage, self._source, chosen.astype(np.uint64)))
                if waiting is not None:
                    yield from self._decode(waiting)
                waiting = following
            if waiting is not None:
                yield from self._decode(waiting)

    def _find(self, numbers: Numbers) -> TextBatch | None:
        """Returns a batch that has these blocks, and whose payloads are in device memory, without its text."""
        batch = self._kept.get(int(self._batch_of_block[numbers[0]]))
        return batch if batch is not None and batch.is_valid and np.isin(numbers, batch.numbers).all() else None

    def _decode(self, batch: TextBatch | tuple[Numbers, Future[Any]]) -> Iterator[TextBatch]:
        if isinstance(batch, TextBatch):
            assert batch.kept is not None
            if (text := batch.kept.decode()) is not None:
                yield batch._replace(stream=batch.stream._replace(text=text))
            return
        numbers, sizes = batch[0], self.sizes[batch[0]]
        text, offsets, statuses, kept = self.device.decode_staged(batch[1].result())
        is_damaged = statuses != BlockStatus.OK
        continues = np.zeros(numbers.size + 1, np.uint8)
        continues[1:-1] = np.diff(numbers) == 1
        continues[0] = numbers[0] > 0
        stream = stream_text(self.device, text, offsets, sizes, continues)
        decoded = TextBatch(numbers, stream, is_damaged, measure_blocks(self.device, stream), kept)
        if kept is not None and not is_damaged.any():
            self._kept[int(self._batch_of_block[numbers[0]])] = decoded.without_text()
        yield decoded
