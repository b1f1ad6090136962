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

from gompfs._native.statistics import Task
from gompfs.gpu.arrays import ArrayDevice
from gompfs.grammar import Grammar
from gompfs.statistics import (
    Direction,
    Traversal,
    inverted_index_report,
    ranked_inverted_index_report,
    sequence_count_report,
    term_vector_report,
)

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
        for task, report in ((Task.INVERTED_INDEX, inverted_index_report), (Task.TERM_VECTOR, term_vector_report)):
            found = report_in_rounds(task, grammars, paths, 1, how)
            assert found == report(grammars, paths).read(), (name, task, direction)
        for num_words in lengths:
            expected = sequence_count_report(grammars, paths, num_words=num_words).read()
            found = report_in_rounds(Task.SEQUENCE_COUNT, grammars, paths, num_words, how)
            assert found == expected, (name, direction, num_words)
            expected = ranked_inverted_index_report(grammars, paths, num_words=num_words).read()
            found = report_in_rounds(Task.RANKED_INVERTED_INDEX, grammars, paths, num_words, how)
            assert found == expected, (name, direction, num_words)


if __name__ == "__main__":
    np.seterr(all="raise", over="ignore")
    for name, grammars, paths in cases():
        compare_in_rounds(HostDevice(Path(sys.argv[1])), grammars, paths, name, lengths=(3,))
        sys.stdout.write(f"{name}\n")
