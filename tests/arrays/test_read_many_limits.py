"""Many files read into one array on a device with little memory: small slices, payloads and heads that do not stay."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cupy_on_host import OutOfMemoryError
from many_files import Place, check

import gompfs


@pytest.mark.parametrize("kind", ["bit", "text", "dictionary"])
def test_little_space_on_the_device(
    kind: str, place: Place, archives: dict[str, Path], contents: dict[str, bytes]
) -> None:
    """Small slices, payloads that stay in memory, and no space for heads: these blocks are decoded by the host."""
    expected = list(contents.values())
    for limits in ({"slice_bytes": 1 << 15}, {"capacity": 1 << 22}, {"num_heads": 2}, {"num_heads": 0}):
        device = place.make(**limits)
        with gompfs.open(archives[kind], verify=True) as files:
            for _ in range(3):
                check(place.read(files, list(contents)), expected)
            if device is not None and "capacity" in limits:
                assert device.store.num_bytes > 0
                device.store.clear()
                check(place.read(files, list(contents)), expected)


@pytest.mark.parametrize("kind", ["text", "dictionary"])
def test_heads_that_stay_on_the_device(
    kind: str, place: Place, archives: dict[str, Path], contents: dict[str, bytes]
) -> None:
    """The store of heads is asked again only after it has dropped some."""
    device = place.make()
    names = list(contents)
    with gompfs.open(archives[kind]) as files:
        for is_lost, num_loads in ((False, 1), (False, 1), (True, 2), (False, 2)):
            if device is not None and is_lost:
                device.heads.num_losses += 1
                device.heads.loaded = dict.fromkeys(device.heads.loaded)
            check(place.read(files, names), [contents[name] for name in names])
            assert device is None or device.heads.num_loads == num_loads


@pytest.mark.parametrize("place", ["stand-in"], indirect=True)
def test_payloads_that_are_dropped_before_anybody_waits(
    place: Place, archives: dict[str, Path], contents: dict[str, bytes]
) -> None:
    """Their memory has other bytes then. The next read reads the blocks again."""
    device = place.make(capacity=1 << 22)
    names = list(contents)
    with gompfs.open(archives["bit"]) as files:
        place.read(files, names, stream=SimpleNamespace(ptr=1))
        for memory in device.store._allocated:
            memory.fill(0xEE)
        device.store.clear()
        check(place.read(files, names), [contents[name] for name in names])


@pytest.mark.parametrize("place", ["stand-in"], indirect=True)
@pytest.mark.parametrize("number", [1, 2, 5])
def test_memory_that_runs_out_once(
    number: int, place: Place, archives: dict[str, Path], contents: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While blocks of the next slices are being read. Payloads on the device are dropped, and all is read again."""
    device = place.make(capacity=1 << 22, slice_bytes=1 << 15)
    from gompfs.gpu.decode.slots import DecodeSlot

    allocate, names = DecodeSlot.device, []

    def allocate_or_fail(slot: Any, name: str, size: int) -> Any:
        names.append(name)
        if names.count("content") == number and name == "content":
            raise OutOfMemoryError
        return allocate(slot, name, size)

    monkeypatch.setattr(DecodeSlot, "device", allocate_or_fail)
    with gompfs.open(archives["bit"]) as files:
        for _ in range(2):
            check(place.read(files, list(contents)), list(contents.values()))
    assert device.store.num_cleared == 1
