"""Decodes blocks in memory of the host on a device: to memory of the host, or into an array on the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import cupy
import numpy as np
from numpy.typing import NDArray

from gompfs._native.blocks import WholeBlocks
from gompfs.codec.block import Buffer
from gompfs.codec.decode_work import DecodeWork
from gompfs.gpu.decode.buffer_source import BufferSource
from gompfs.gpu.decode.device import Device
from gompfs.gpu.decode.layout import OUTPUT_ALIGNMENT, lay_out
from gompfs.gpu.decode.outputs import DeviceOutput, HostOutput
from gompfs.gpu.decode.plan_decoder import Decoding, PlanDecoder


def decode_to_host(
    decoder: PlanDecoder,
    numbers: NDArray[np.uint64],
    offsets: NDArray[np.uint64],
    out: memoryview,
    num_threads: int,
    work: Mapping[str, DecodeWork],
) -> NDArray[np.uint8]:
    """Decodes the blocks `numbers` of a decoder's source, which ascend, to `offsets` in `out`.

    Returns a BlockStatus for each of them. The contents of damaged blocks are undefined. Waits until all is done.
    `num_threads` threads copy what cannot go there directly.
    """
    device = decoder.device
    sizes = decoder.source.uncompressed_sizes.take(numbers.view(np.int64))
    targets, _ = lay_out(sizes, OUTPUT_ALIGNMENT)
    plan = WholeBlocks(sizes, targets)
    with cupy.cuda.Device(device.number):
        output = HostOutput(out, offsets, sizes, targets, num_threads)

    def run() -> Decoding:
        decoding = decoder.decode(plan, numbers, output, device.stream)
        try:
            decoding.wait()
        except BaseException:
            decoding.wait()  # nothing is written to `out` after this call
            raise
        return decoding

    return count_work(work, run, numbers.size, int(sizes.sum())).statuses


def decode_to_array(
    device: Device, blocks: Sequence[Buffer], sizes: Sequence[int], array: cupy.ndarray, num_threads: int
) -> NDArray[np.uint8]:
    """Decodes blocks into an array on the device, one after another. Returns a BlockStatus for each.

    Damaged blocks become zeros. Waits until all is done.
    """
    source = BufferSource(blocks, sizes, None, num_threads)
    ends = np.cumsum(source.uncompressed_sizes, dtype=np.uint64)
    plan = WholeBlocks(source.uncompressed_sizes, ends - source.uncompressed_sizes)
    with cupy.cuda.Device(device.number):
        stream = cupy.cuda.get_current_stream(device.number)
        output = DeviceOutput(array, in_place=False)
    numbers = np.arange(len(blocks), dtype=np.uint64)
    decoding = PlanDecoder(device, source).decode(plan, numbers, output, stream)
    decoding.wait()
    return decoding.statuses


def count_work(
    work: Mapping[str, DecodeWork], run: Callable[[], Decoding], num_blocks: int, num_bytes: int
) -> Decoding:
    """Returns what `run` returns. Counts the blocks as those of the device, except for those that the host decoded."""
    work["gpu"].begin()
    try:
        decoding = run()
    except BaseException:
        work["gpu"].end(0, 0)
        raise
    work["gpu"].end(num_blocks - decoding.num_on_host, num_bytes - decoding.bytes_on_host)
    if decoding.num_on_host:
        with work["cpu"].batch(decoding.num_on_host, decoding.bytes_on_host):
            pass
    return decoding
