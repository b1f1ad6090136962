"""Runs the kernel that opens heads on the CPU under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import random
import struct
import subprocess
from collections.abc import Sequence

import numpy as np
import pytest
from native_builds import run_head_kernel_program
from numpy.typing import NDArray
from tadoc_heads import (
    TadocHead,
    are_same,
    by_section,
    crafted_heads,
    damaged_heads,
    heads_of_texts,
    open_on_cpu,
    part_heads,
    random_heads,
)

from gompfs.gpu.decode.head_memory import HeadMemory, head_memory
from gompfs.gpu.decode.head_store import pack_words


def open_by_kernel(heads: Sequence[TadocHead], less_workspace: int = 0) -> list[NDArray[np.uint8] | None]:
    """Returns each head as the kernel opens it, all in one launch, or None if it refuses the head."""
    sections = by_section(heads)
    request = [struct.pack("<I", len(sections))]
    for section in sections:
        words = pack_words(part_heads([], section).words(0)).tobytes()
        request += [struct.pack("<I", len(words)), words]
    number_of = {section: number for number, section in enumerate(sections)}
    possible: list[tuple[int, HeadMemory]] = []
    for index, head in enumerate(heads):
        memory = head_memory(memoryview(head.payload), head.pool_size)
        if memory is not None:
            possible.append((index, memory))
            fields = (
                number_of[head.section], memory.num_symbols, head.pool_size, memory.packed_size,
                memory.workspace_size - less_workspace, len(head.payload),
            )  # fmt: skip
            request += [struct.pack("<6I", *fields), head.payload]
    program = [run_head_kernel_program()]
    done = subprocess.run(program, input=b"".join(request), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    opened: list[NDArray[np.uint8] | None] = [None] * len(heads)
    position = 0
    for index, memory in possible:
        end = position + 1 + memory.packed_size
        if done.stdout[position] == 0:
            opened[index] = np.frombuffer(done.stdout[position + 1 : end], np.uint8)
        position = end
    assert position == len(done.stdout)
    return opened


def check(heads: Sequence[TadocHead]) -> int:
    """Compares the kernel with the C++ core. Returns how many heads both refuse."""
    expected = open_on_cpu(heads)
    for index, (ours, theirs) in enumerate(zip(open_by_kernel(heads), expected, strict=True)):
        assert are_same(ours, theirs), f"head {index}: {heads[index]}"
    return sum(opened is None for opened in expected)


@pytest.mark.timeout(1200)
def test_texts() -> None:
    assert check(heads_of_texts()) == 0


@pytest.mark.timeout(1200)
def test_random_parts() -> None:
    assert check(list(random_heads(80, random.Random(1)))) == 0


@pytest.mark.timeout(1200)
def test_each_rule() -> None:
    cases = crafted_heads()
    expected = open_on_cpu(list(cases.values()))
    for name, ours, theirs in zip(cases, open_by_kernel(list(cases.values())), expected, strict=True):
        assert are_same(ours, theirs), name
    assert sum(opened is not None for opened in expected) == 8


def test_the_memory_for_a_head_is_needed() -> None:
    """With a byte less of workspace, the kernel refuses every head."""
    heads = list(random_heads(20, random.Random(2)))
    assert all(opened is None for opened in open_by_kernel(heads, less_workspace=1))


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("count", [100, pytest.param(20_000, marks=pytest.mark.slow)])
def test_damaged_heads(count: int) -> None:
    rng = random.Random(count)
    intact = [*random_heads(60, rng), *(head for head in heads_of_texts() if len(head.payload) < 1000)]
    assert count / 4 < check(list(damaged_heads(intact, count, rng))) < count
