"""Runs the kernel of gompresso-tadoc on the CPU under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import random
import struct
import subprocess
from collections.abc import Sequence

import numpy as np
import pytest
from native_builds import run_tadoc_kernel_program
from tadoc_blocks import TadocBlock, blocks_of_texts, crafted, damaged, highest_ranks, random_blocks

from gompfs.codec import BlockStatus
from gompfs.engine import select_engine
from gompfs.gpu.decode.head_store import pack_head


def decode_on_cpu(blocks: Sequence[TadocBlock]) -> list[bytes | None]:
    """Returns what the C++ core decodes from each block, or None if it refuses the payload."""
    out = memoryview(bytearray(sum(block.size for block in blocks)))
    symbols = [block.symbols for block in blocks]
    statuses = select_engine("cpu").decode_blocks([block.block for block in blocks], out, symbols=symbols)
    assert set(statuses) <= {BlockStatus.OK, BlockStatus.BAD_PAYLOAD}
    return split(statuses, out, [block.size for block in blocks])


def split(statuses: Sequence[int], out: memoryview, sizes: Sequence[int]) -> list[bytes | None]:
    ends = np.cumsum(sizes).tolist()
    return [
        None if status else bytes(out[end - size : end])
        for status, end, size in zip(statuses, ends, sizes, strict=True)
    ]


def decode_by_kernel(blocks: Sequence[TadocBlock]) -> list[bytes | None]:
    """Returns what the kernel decodes from each block in one launch, or None if it refuses the payload."""
    heads = {block.symbols.number: pack_head(block.symbols).tobytes() for block in blocks}
    index_of = {number: index for index, number in enumerate(heads)}
    request = [struct.pack("<I", len(heads))]
    for head in heads.values():
        request += [struct.pack("<I", len(head)), head]
    for block in blocks:
        fields = index_of[block.symbols.number], len(block.payload), block.size
        request += [struct.pack("<III", *fields), block.payload]
    program = [run_tadoc_kernel_program()]
    done = subprocess.run(program, input=b"".join(request), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    output, decoded, position = done.stdout, [], 0
    for block in blocks:
        content = output[position + 1 : position + 1 + block.size]
        decoded.append(None if output[position] else content)
        position += 1 + block.size
    assert position == len(output)
    return decoded


def check(blocks: Sequence[TadocBlock]) -> int:
    """Compares the kernel with the C++ core. Returns how many blocks both refuse."""
    expected = decode_on_cpu(blocks)
    for index, (ours, theirs) in enumerate(zip(decode_by_kernel(blocks), expected, strict=True)):
        assert ours == theirs, f"block {index}: {blocks[index]}"
    return expected.count(None)


@pytest.mark.timeout(1200)
def test_texts() -> None:
    assert check(blocks_of_texts()) == 0


@pytest.mark.timeout(1200)
def test_random_parts_with_blocks_in_random_order() -> None:
    """Warps change from head to head. Blocks are as small as one byte, so symbols reach over several of them."""
    rng = random.Random(6)
    blocks = list(random_blocks(60, rng))
    rng.shuffle(blocks)
    assert check(blocks[:2000]) == 0


def test_each_rule() -> None:
    cases = crafted()
    assert len(cases) / 2 < check(list(cases.values())) < len(cases)


def test_ranks_and_class_codes() -> None:
    assert check(list(highest_ranks())) == 4


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("count", [1500, pytest.param(30_000, marks=pytest.mark.slow)])
def test_damaged_payloads(count: int) -> None:
    rng = random.Random(count)
    intact = [block for block in (*random_blocks(20, rng), *blocks_of_texts()) if block.size <= 600]
    assert count / 4 < check(list(damaged(intact, count, rng))) < count
