"""Decodes blocks of an archive to memory of the host on one or more devices."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gompfs.codec.decode_work import DecodeWork
from gompfs.gpu.decode.block_source import BlockSource
from gompfs.gpu.decode.buffers import decode_to_host
from gompfs.gpu.decode.device import Device
from gompfs.gpu.decode.layout import OUTPUT_ALIGNMENT, lay_out
from gompfs.gpu.decode.plan_decoder import PlanDecoder
from gompfs.gpu.decode.shares import share_stripes
from gompfs.gpu.device.cuda import check_process
from gompfs.gpu.device.spread import run_together


class ArchiveDecoder:
    """See gompfs.engine.base.ArchiveDecoder. Heads of parts and payloads that stay on a device are found by number."""

    def __init__(
        self,
        devices: Sequence[Device],
        source: BlockSource,
        block_size: int,
        allocate: Callable[[int], memoryview],
        threads: Executor,
        num_threads: int,
        work: Mapping[str, DecodeWork],
        *,
        verify: bool,
    ) -> None:
        """`allocate` returns memory of the host for blocks, pinned if the devices should write there directly.

        `threads` wait for the devices. `num_threads` threads copy what was decoded to other memory. `work` counts it.
        """
        self._decoders = [PlanDecoder(device, source, verify=verify) for device in devices]
        self._source = source
        self._block_size = block_size
        self._allocate = allocate
        self._threads = threads
        self._num_threads = num_threads
        self._work = work
        self._process = os.getpid()

    def decode(self, numbers: Sequence[int]) -> tuple[memoryview, list[int], list[int]]:
        """See gompfs.engine.base.ArchiveDecoder.decode."""
        check_process(self._process)
        blocks = np.array(numbers, np.uint64)
        sizes = self._source.uncompressed_sizes.take(blocks.view(np.int64))
        offsets, size = lay_out(sizes, OUTPUT_ALIGNMENT)  # as on the device, so that they are copied in one piece
        out = self._allocate(size)
        statuses = np.zeros(blocks.size, np.uint8)

        def decode_share(decoder: PlanDecoder, indexes: NDArray[np.intp]) -> None:
            statuses[indexes] = decode_to_host(
                decoder, blocks[indexes], offsets[indexes], out, self._num_threads, self._work
            )

        shares = share_stripes(blocks, self._block_size, len(self._decoders))
        calls = [partial(decode_share, self._decoders[number], indexes) for number, indexes in shares]
        run_together(calls, self._threads)
        return out, offsets.tolist(), statuses.tolist()
