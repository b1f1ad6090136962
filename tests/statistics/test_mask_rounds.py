"""Traversal in mask rounds, an experiment, gives the same bytes as the CPU. The kernels run on the host here."""

from __future__ import annotations

import re

import pytest
from device_cases import cases, chain
from host_device import HostDevice
from native_builds import ROOT, kernel_library, run_cases_sanitized
from round_cases import compare_in_rounds, report_in_rounds
from stored_parts import grammar_of
from tool_modules import tool_module

from gompfs._native.statistics import Direction, PostingsTask
from gompfs.errors import StatsUnavailableError
from gompfs.statistics.traversal import Traversal


@pytest.mark.timeout(300)
def test_same_bytes_as_the_cpu() -> None:
    device = HostDevice(kernel_library())
    for name, grammars, paths in cases():
        compare_in_rounds(device, grammars, paths, name)
    text = (ROOT / "tools" / "experiments" / "kernels" / "mask_rounds.cu").read_text()
    kernels = re.findall(r"__global__ void (\w+)\(", text)
    assert len(kernels) == 3
    assert device.launched >= {*kernels}
    assert "add_tables" not in device.launched


@pytest.mark.slow  # an experiment, not a part of gompfs
@pytest.mark.timeout(1200)
def test_no_access_out_of_bounds() -> None:
    """Runs the same cases under AddressSanitizer and UndefinedBehaviorSanitizer."""
    assert len(run_cases_sanitized("round_cases").splitlines()) == len(list(cases()))


def test_deep_grammars_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    grammars = [grammar_of([(7, chain(20))])]
    monkeypatch.setattr(tool_module("experiments.mask_rounds"), "_MAX_ROUNDS", 3)
    device = HostDevice(kernel_library())
    for direction in Direction:
        with pytest.raises(StatsUnavailableError, match="nested more than"):
            report_in_rounds(
                PostingsTask.INVERTED_INDEX, grammars, {7: b"file"}, 1, Traversal(direction, device=device)
            )
