"""A HostDevice that also decodes blocks, by the CPU engine, and an engine with this device as its accelerator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from host_device import HostDevice
from numpy.typing import NDArray

from gompfs.engine.cpu import CpuEngine
from gompfs.gpu.decode.block_source import BlockSource
from gompfs.gpu.device.arrays import DecodedText

_ALIGNMENT = 32


class HostTextDevice(HostDevice):
    """See TextDevice."""

    def decoder(self, source: BlockSource) -> HostTextDecoder:
        return HostTextDecoder(source)


class HostTextDecoder:
    """See TextDecoder. Bytes between blocks are neither newlines nor NUL."""

    def __init__(self, source: BlockSource) -> None:
        self._source = source

    def decode(self, numbers: NDArray[np.uint64]) -> DecodedText:
        sizes = self._source.uncompressed_sizes[numbers].astype(np.int64)
        padded = -(-sizes // _ALIGNMENT) * _ALIGNMENT
        offsets = (np.cumsum(padded) - padded).astype(np.uint64)
        content = np.full(int(padded.sum()), ord("#"), np.uint8)
        packed = np.empty(int(sizes.sum()), np.uint8)
        statuses = np.array(self._source.decode(numbers, packed.data, verify=False), np.uint8)
        begin = 0
        for offset, size in zip(offsets.tolist(), sizes.tolist(), strict=True):
            content[offset : offset + size] = packed[begin : begin + size]
            begin += size
        return DecodedText(content, offsets, lambda: statuses)


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

    def search(self, num_bytes: int) -> Sequence[HostTextDevice]:
        return [device for device in self._devices if isinstance(device, HostTextDevice)]


class EngineWithDevice(CpuEngine):
    """The CPU engine, with devices that find and count words and sequences."""

    def __init__(self, *devices: HostDevice, room: int = 0, is_asked_for: bool = True) -> None:
        super().__init__()
        self.accelerator = HostAccelerator(devices, room, is_asked_for=is_asked_for)  # type: ignore[assignment]
