"""A HostDevice that also decodes blocks, by the CPU engine, and an engine with this device as its accelerator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from host_device import HostDevice
from numpy.typing import NDArray

from gompfs._native.parts import SymbolTable
from gompfs.codec.block import Buffer
from gompfs.codec.stored_head import StoredHead
from gompfs.engine.cpu import CpuEngine
from gompfs.gpu.block_source import BlockSource, BlockSymbols

_ALIGNMENT = 32


class HostTextDevice(HostDevice):
    """See TextDevice. Bytes between blocks are neither newlines nor NUL."""

    def decode_blocks(
        self,
        blocks: Sequence[Buffer],
        sizes: NDArray[np.integer[Any]],
        symbols: Sequence[SymbolTable | None] | None = None,
    ) -> tuple[NDArray[Any], NDArray[np.uint64], NDArray[np.uint8]]:
        padded = -(-sizes // _ALIGNMENT) * _ALIGNMENT
        places = np.cumsum(padded) - padded
        content = np.full(int(padded.sum()), ord("#"), np.uint8)
        engine = CpuEngine(1)
        statuses = np.zeros(len(blocks), np.uint8)
        of_blocks = [None] * len(blocks) if symbols is None else symbols
        for number, (block, start, size) in enumerate(zip(blocks, places, sizes, strict=True)):
            out = content[start : start + size].data
            (statuses[number],) = engine.decode_blocks([block], out, sizes=[size], symbols=[of_blocks[number]])
        return content, places.astype(np.uint64), statuses

    def stage(self, source: BlockSource, numbers: NDArray[np.uint64]) -> StagedOnHost:
        sizes = source.compressed_sizes[numbers].astype(np.uint64)
        ends = np.cumsum(sizes, dtype=np.uint64)
        memory = np.empty(int(sizes.sum()), np.uint8)
        facts = source.begin_staging(numbers, ends - sizes, memory.data)()
        blocks = [memory[end - size : end].data for size, end in zip(sizes.tolist(), ends.tolist(), strict=True)]
        return StagedOnHost(blocks, source.uncompressed_sizes[numbers], facts["status"], source.symbols(numbers))

    def decode_staged(
        self, staged: StagedOnHost
    ) -> tuple[NDArray[Any], NDArray[np.uint64], NDArray[np.uint8], HostKeptBlocks | None]:
        opened = [each.open_on_host() if isinstance(each, StoredHead) else (each, 0) for each in staged.symbols.symbols]
        opened.append((None, 0))  # of blocks that need nothing
        symbols = [opened[index] for index in staged.symbols.indexes]
        content, offsets, statuses = self.decode_blocks(staged.blocks, staged.sizes, [table for table, _ in symbols])
        of_symbols = np.maximum(staged.symbols.statuses, np.array([status for _, status in symbols], np.uint8))
        statuses = np.maximum(np.maximum(statuses, of_symbols), staged.statuses.astype(np.uint8))
        return content, offsets, statuses, None if statuses.any() else HostKeptBlocks(content)


class StagedOnHost(NamedTuple):
    """What HostTextDevice.stage returns."""

    blocks: list[memoryview]
    sizes: NDArray[np.unsignedinteger[Any]]
    statuses: NDArray[np.uint32]
    symbols: BlockSymbols


class HostKeptBlocks:
    """See KeptBlocks. Tests may change `is_valid`."""

    def __init__(self, content: NDArray[Any]) -> None:
        self._content = content
        self.is_valid = True

    def decode(self) -> NDArray[Any]:
        return self._content


class HostResidentMemory:
    """See ResidentMemory. Calls nobody; `watchers` has what it should call."""

    def __init__(self, devices: Sequence[HostDevice], room: int, is_asked_for: bool) -> None:
        self._devices = devices
        self._room = room
        self.is_asked_for = is_asked_for
        self.watchers: list[Callable[[], None]] = []

    def open(self) -> tuple[Sequence[HostDevice], int]:
        return self._devices, self._room

    def call_if_needed(self, give_back: Callable[[], None]) -> None:
        self.watchers.append(give_back)


class HostAccelerator:
    """See Accelerator. Uses devices for all amounts of work; `asked` has the numbers of symbols."""

    build_rules = None

    def __init__(self, devices: Sequence[HostDevice], room: int, *, is_asked_for: bool) -> None:
        self._devices = devices
        self._device = devices[0]
        self._resident = HostResidentMemory(devices, room, is_asked_for) if room else None
        self.asked: list[int] = []

    def resident_memory(self) -> HostResidentMemory | None:
        return self._resident

    def arrays(self, num_symbols: int) -> HostDevice:
        self.asked.append(num_symbols)
        return self._device

    def text(self, num_bytes: int) -> HostTextDevice:
        assert isinstance(self._device, HostTextDevice)
        return self._device

    def search(self, num_bytes: int) -> Sequence[HostTextDevice]:
        return [device for device in self._devices if isinstance(device, HostTextDevice)]


class EngineWithDevice(CpuEngine):
    """The CPU engine, with devices that find and count words and sequences."""

    def __init__(self, *devices: HostDevice, room: int = 0, is_asked_for: bool = True) -> None:
        super().__init__()
        self.accelerator = HostAccelerator(devices, room, is_asked_for=is_asked_for)  # type: ignore[assignment]
