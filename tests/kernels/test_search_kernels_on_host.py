"""The kernels that search blocks miss no match, whatever the text and the pattern, and find little else."""

from __future__ import annotations

import re
from typing import Any

import pytest
from host_device import HostDevice
from hypothesis import HealthCheck, example, given, settings
from native_builds import ROOT, kernel_library, run_cases_sanitized
from scan_cases import (
    LONG_LINE,
    PATTERNS,
    Blocks,
    Contents,
    check_literals,
    check_measures,
    check_pattern,
    contents,
    literals,
    scan,
    table_of,
)

_settings = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def device() -> HostDevice:
    return HostDevice(kernel_library())


@pytest.mark.parametrize(("pattern", "options"), PATTERNS)
@settings(_settings, max_examples=12)
@example(contents=[(b"", 1)])
@example(contents=[(b"foo", 1)])
@example(contents=[(b"fo", 1), (b"obar", 2)])
@example(contents=[(b"foo" + b" " * 3 * LONG_LINE + b"bar\nfoo", 5000), (b"bar", 9)])
@given(contents=contents)
def test_no_match_is_missed(device: HostDevice, pattern: bytes, options: dict[str, Any], contents: Contents) -> None:
    check_pattern(device, pattern, options, contents)


@settings(_settings, max_examples=40)
@given(contents=contents, literals=literals)
@example(contents=[(b"x" * 5 + b"foobar", 3)], literals=[b"oo", b"r"])
@example(contents=[(b"x" * 32, 32), (b"foobar" * 6, 36)], literals=[])
def test_a_literal_is_found_where_it_begins_only(device: HostDevice, contents: Contents, literals: list[bytes]) -> None:
    check_literals(device, [*literals, b"foobar"], contents)


def test_many_literals(device: HostDevice) -> None:
    needles = [b"needle%05d" % number for number in range(10_000)]
    text = b"".join(b"needle%05d\n" % number for number in (10_000, 123, 99_999)) + b"no needle" * 99
    blocks = Blocks(device, [(text, 12), (needles[-1], 5)])
    assert scan(device, table_of(needles, fixed_strings=True), blocks) == {1, len(blocks.contents) - 3}


@settings(_settings, max_examples=40)
@given(contents=contents)
def test_measures(device: HostDevice, contents: Contents) -> None:
    check_measures(device, contents)


def test_a_line_that_is_cut_may_match(device: HostDevice) -> None:
    """A line that began before the first block, and goes on after it, may have matched before."""
    table = table_of([rb"foo.*bar"])
    cut = [(b"-" * 600 + b"bar\n" + b"-" * 600, 300)]
    assert scan(device, table, Blocks(device, cut)) == set()
    assert scan(device, table, Blocks(device, cut, is_cut=True)) == {0, 1, 2}


@pytest.mark.parametrize("pattern", [rb"\d*", rb"(a|b?)c*", rb"a{0}", rb"(\w{90}){90}", rb"(a?){5000}", rb"[a&&b]"])
def test_patterns_without_a_table(pattern: bytes) -> None:
    assert table_of([pattern]) is None


@pytest.mark.parametrize(
    ("pattern", "most_states"),
    [(rb"\b(\w+)\s+\d{4}", 40), (rb"[A-Z]+_SUSPEND", 12), (rb"(foo|bar)+.*baz", 30), (rb"(?i)stra\xc3\x9fe", 30)],
)
def test_automata_are_small(pattern: bytes, most_states: int) -> None:
    table = table_of([pattern])
    assert table is not None
    assert table.kernel == "run_automaton"
    assert int.from_bytes(table.table[:4], "little") <= most_states
    assert table.shared_bytes == len(table.table)


def test_with_sanitizers() -> None:
    assert "the kernels find the blocks" in run_cases_sanitized("scan_cases")


def test_all_kernels_take_part() -> None:
    device = HostDevice(kernel_library())
    check_measures(device, [(b"foo", 2)])
    for pattern in (rb"foo", rb"f\w+"):
        check_pattern(device, pattern, {}, [(b"foo", 2)])
    texts = [path.read_text() for path in (ROOT / "kernels" / "search").glob("*.cu")]
    kernels = {kernel for text in texts for kernel in re.findall(r"__global__ void (\w+)\(", text)}
    assert kernels == device.launched
