"""Blocks and heads whose payloads are in device memory already, to measure kernels without transfers."""

from __future__ import annotations

from collections.abc import Sequence

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs._native import codec as _codec
from gompfs._native.blocks import SliceColumns, WholeBlocks
from gompfs._native.text import SymbolTable
from gompfs.codec.block import Buffer, parse_block_header
from gompfs.codec.constants import BLOCK_HEADER_SIZE
from gompfs.codec.headers import read_headers
from gompfs.codec.stored_head import StoredWords
from gompfs.engine.gpu import GpuEngine
from gompfs.gpu.decode.head_memory import head_memory
from gompfs.gpu.decode.head_store import HeadTask, pack_words
from gompfs.gpu.decode.layout import OUTPUT_ALIGNMENT, PAYLOAD_ALIGNMENT, lay_out
from gompfs.gpu.device.cuda import PADDING


class ResidentBlocks:
    """Blocks whose payloads are in the memory of an engine's first device."""

    def __init__(
        self,
        engine: GpuEngine,
        blocks: Sequence[Buffer],
        symbols: Sequence[SymbolTable | None] | None = None,
        heads: NDArray[np.uint64] | None = None,
    ) -> None:
        """Uploads the payloads of `blocks`. Raises ValueError if a block is damaged or has the codec `stored`.

        Blocks of gompresso-tadoc need the symbols of their parts, and the device addresses of their heads.
        """
        facts = read_headers(blocks, symbols)
        if facts["status"].any() or not facts["codec"].all():
            raise ValueError("only undamaged, compressed blocks can stay in device memory")
        self._device = engine.first_device
        offsets, size = lay_out(facts["payload_size"], PAYLOAD_ALIGNMENT)
        targets, self.output_bytes = lay_out(facts["uncompressed_size"], OUTPUT_ALIGNMENT)
        staging = np.zeros(size + PADDING, np.uint8)
        if any(_codec.gather_payloads(blocks, facts.data, offsets.data, staging.data, engine.num_threads)):
            raise ValueError("only undamaged blocks can stay in device memory")
        with cupy.cuda.Device(self._device.number):
            self.payloads = cupy.asarray(staging)
            self.output = cupy.empty(self.output_bytes + PADDING, cupy.uint8)
            columns = SliceColumns(
                WholeBlocks(facts["uncompressed_size"].copy(), targets),
                np.arange(len(blocks)),
                facts.data,
                np.zeros(len(blocks), np.uint8),
                np.zeros(len(blocks), np.uint64) if heads is None else heads,
                offsets + np.uint64(self.payloads.data.ptr),
                in_place=True,
            )
            written = np.zeros(columns.size, np.uint8)
            columns.write(written.data, int(self.output.data.ptr), 0)
            self._num_decoded = columns.num_decoded
            tasks, _, statuses, *_ = (slice(*bounds) for bounds in columns.bounds)
            self._tasks = cupy.asarray(written[tasks])
            self._statuses = cupy.asarray(written[statuses])
            self._counters = slice(self._tasks.size - 8 * len(blocks), None)

    def decode(self) -> None:
        """Queues the decoding of all blocks on the current stream.

        The blocks are decoded into `output`, each at a multiple of 32 bytes.
        """
        self._tasks[self._counters].fill(0)
        tasks, statuses = (np.uint64(array.data.ptr) for array in (self._tasks, self._statuses))
        self._device.decode(self._num_decoded, tasks, self.output, statuses)

    def all_decoded(self) -> bool:
        """Waits for the last decode and returns whether every payload was valid."""
        return not bool(self._statuses.any())


class ResidentHeads:
    """Heads of parts that are in the memory of an engine's first device, and memory to open them to."""

    def __init__(self, engine: GpuEngine, heads: Sequence[tuple[Buffer, StoredWords]], repeats: int) -> None:
        """Uploads the heads of the parts of blocks, and their sections `words`; each object once.

        Makes memory for `repeats` copies of each opened head. `addresses` has the address of the opened head of each
        block, for all blocks, `repeats` times. Raises ValueError if a head is damaged.
        """
        device = engine.first_device
        with cupy.cuda.Device(device.number):
            words = {stored.number: cupy.asarray(pack_words(stored.read())) for _, stored in heads}
            distinct = {id(head): (memoryview(head), words[stored.number]) for head, stored in heads}
            sizes = np.array([len(head) for head, _ in distinct.values()])
            offsets, size = lay_out(sizes, PAYLOAD_ALIGNMENT)
            staging = np.zeros(size + PADDING, np.uint8)
            self._tasks: list[HeadTask] = []
            self.addresses = np.zeros(len(heads) * repeats, np.uint64)
            for (head, _), offset in zip(distinct.values(), offsets.tolist(), strict=True):
                staging[offset : offset + len(head) - BLOCK_HEADER_SIZE] = np.frombuffer(head, np.uint8)[
                    BLOCK_HEADER_SIZE:
                ]
            for repeat in range(repeats):
                address_of = {}
                for (key, (head, section)), offset in zip(distinct.items(), offsets.tolist(), strict=True):
                    pool_size = parse_block_header(head).uncompressed_size
                    payload = head[BLOCK_HEADER_SIZE:]
                    memory = head_memory(payload, pool_size)
                    if memory is None:
                        raise ValueError("only undamaged heads can be measured")
                    target = cupy.empty(memory.packed_size, cupy.uint8)
                    self._tasks.append(HeadTask(offset, len(payload), pool_size, memory, target, int(section.data.ptr)))
                    address_of[key] = int(target.data.ptr)
                start = repeat * len(heads)
                self.addresses[start : start + len(heads)] = [address_of[id(head)] for head, _ in heads]
            self._words = words  # the kernel reads them
            self._batch = device.opener.prepare(cupy.asarray(staging), self._tasks)

    def open(self) -> None:
        """Queues the opening of all heads on the current stream."""
        self._batch.launch()

    def clear(self) -> None:
        """Overwrites the opened heads."""
        for task in self._tasks:
            task.target.fill(0)

    def all_opened(self) -> bool:
        """Waits for the last opening, and returns whether every head was valid."""
        return not self._batch.statuses().any()
