"""Traversal in mask rounds, compared with the CPU. As a program, runs all cases with the kernels on the host.

Usage: round_cases.py LIBRARY, where LIBRARY was made by native_builds.kernel_library.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from device_cases import cases
from host_device import HostDevice
from tool_modules import tool_module

from gompfs._native.statistics import Direction, PostingsTask
from gompfs.gpu.device.arrays import ArrayDevice
from gompfs.statistics.postings import postings_report
from gompfs.statistics.traversal import Traversal
from gompfs.text.grammar import Grammar

report_in_rounds = tool_module("experiments.mask_rounds").report_in_rounds


def compare_in_rounds(
    device: ArrayDevice,
    grammars: list[Grammar],
    paths: dict[int, bytes],
    name: str = "",
    lengths: Iterable[int] = (1, 3),
) -> None:
    """Checks that each task gives the same bytes as the CPU, in all directions."""
    for direction in Direction:
        how = Traversal(direction, num_threads=2, device=device)
        for task in (PostingsTask.INVERTED_INDEX, PostingsTask.TERM_VECTOR):
            found = report_in_rounds(task, grammars, paths, 1, how)
            assert found == postings_report(task, grammars, paths).read(), (name, task, direction)
        for length in lengths:
            for task in (PostingsTask.SEQUENCE_COUNT, PostingsTask.RANKED_INVERTED_INDEX):
                expected = postings_report(task, grammars, paths, ngram_length=length).read()
                found = report_in_rounds(task, grammars, paths, length, how)
                assert found == expected, (name, task, direction, length)


if __name__ == "__main__":
    np.seterr(all="raise", over="ignore")
    for name, grammars, paths in cases():
        compare_in_rounds(HostDevice(Path(sys.argv[1])), grammars, paths, name, lengths=(3,))
        sys.stdout.write(f"{name}\n")
