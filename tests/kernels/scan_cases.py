"""Texts in blocks, and what the kernels that search blocks must find in them.

As a program, with a sanitized library of the kernels for the host, checks random texts in a process of its own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from host_device import HostDevice
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gompfs.gpu.device.arrays import ArrayDevice
from gompfs.search.gpu.block_scan import (
    HAS_FOLDING,
    HAS_MARK,
    HAS_NUL,
    BlockScan,
    ScanTable,
    StreamText,
    measure_blocks,
    stream_text,
)
from gompfs.search.query import SearchQuery

_ALIGNMENT, _PADDING = 32, 64
LONG_LINE = 16 << 10  # kernels/search/run_automaton.cu

_words = st.sampled_from(
    [b"foo", b"Foo", b"bar", b"foobar", b"a", b"aa", b"ab", b"\xc5\xbfoo", b"\xe2\x84\xaai", b"kiss"]
)
_separators = st.sampled_from(
    [b" ", b"\n", b"", b"\n\n", b"\0", b"\xff\xfe", b"\xfe", b"x" * 40, b"\xc3\xa9", b"-" * 600]
)
_texts = st.lists(st.tuples(_words, _separators), max_size=40).map(lambda pairs: b"".join(map(b"".join, pairs)))

Contents = Sequence[tuple[bytes, int]]
"""The text of each run of blocks that follow each other, and the sizes of its blocks."""
contents = st.lists(st.tuples(_texts, st.integers(1, 700)), min_size=1, max_size=4)
literals = st.lists(
    st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=9).map(str.encode), max_size=6
)

PATTERNS: list[tuple[bytes, dict[str, Any]]] = [
    (rb"foo", {}),
    (rb"foobar", {}),
    (rb"a", {}),
    (rb"foo|bar|aab", {}),
    (rb"foo", {"ignore_case": True}),
    (rb"kiss|fo", {"ignore_case": True}),
    (rb"f[a-p]+b", {}),
    (rb"foo.*bar", {}),
    (rb"(?i)f[^x]*kiss", {}),
    (rb"\bfoo\b.*(a|b)$", {}),
    (rb"\w{3}\s\w+", {}),
    (rb"[^\w\s]{2}", {}),
    (rb"(foo|a){2,4}b", {}),
    (rb"(?-u)\xff", {}),
    (rb".\p{L}b", {}),
]


class Blocks:
    """Runs of texts, cut into blocks, in memory of the device."""

    def __init__(self, device: ArrayDevice, contents: Contents, *, is_cut: bool = False) -> None:
        pieces = [[text[at : at + size] for at in range(0, max(len(text), 1), size)] for text, size in contents]
        self.contents = [piece for of_run in pieces for piece in of_run]
        self.continues = [index > 0 for of_run in pieces for index in range(len(of_run))] + [False]
        self.continues[0] = is_cut
        sizes = np.array([len(piece) for piece in self.contents], np.uint32)
        padded = -(-sizes.astype(np.uint64) // _ALIGNMENT) * _ALIGNMENT
        offsets = np.cumsum(padded) - padded
        memory = np.full(int(padded.sum()) + _PADDING, ord("\n"), np.uint8)
        for offset, piece in zip(offsets.tolist(), self.contents, strict=True):
            memory[offset : offset + len(piece)] = np.frombuffer(piece, np.uint8)
        self.stream: StreamText = stream_text(
            device, device.upload(memory), offsets.astype(np.uint64), sizes, np.array(self.continues, np.uint8)
        )

    def runs(self) -> list[tuple[bytes, list[int]]]:
        """Returns the text of each run, and the numbers of its blocks."""
        found: list[tuple[bytes, list[int]]] = []
        for number, content in enumerate(self.contents):
            if number and self.continues[number]:
                text, numbers = found[-1]
                found[-1] = text + content, [*numbers, number]
            else:
                found.append((content, [number]))
        return found

    def having(self, numbers: list[int], begin: int, end: int) -> set[int]:
        """Returns the blocks of a run that have one of its bytes from `begin` to `end`."""
        having, at = set(), 0
        for number in numbers:
            size = len(self.contents[number])
            if size and at < end and at + size > begin:
                having.add(number)
            at += size
        return having


def table_of(patterns: Sequence[bytes], **options: bool) -> ScanTable | None:
    table = SearchQuery(tuple(patterns), **options).matcher().scan_table(100 << 10)  # type: ignore[arg-type]
    return None if table is None else ScanTable(*table)


def scan(device: ArrayDevice, table: ScanTable | None, blocks: Blocks) -> set[int]:
    """Returns the blocks that may have matches, as a search decides it."""
    assert table is not None
    found = set(np.flatnonzero(device.download(BlockScan(device, table).find(blocks.stream))).tolist())
    if table.is_unsure_of_folding:
        facts = device.download(measure_blocks(device, blocks.stream).facts)
        found |= set(np.flatnonzero(facts & HAS_FOLDING).tolist())
    return found


def check_pattern(device: ArrayDevice, pattern: bytes, options: dict[str, Any], contents: Contents) -> None:
    """Every match has a byte in a block that was found."""
    blocks = Blocks(device, contents)
    found = scan(device, table_of([pattern], **options), blocks)
    for begin, end, numbers in _matches(blocks, pattern, options):
        assert blocks.having(numbers, begin, end) & found


def _matches(blocks: Blocks, pattern: bytes, options: dict[str, Any]) -> Iterator[tuple[int, int, list[int]]]:
    """Yields the matches in lines of runs, as Python finds them: where they are, and the blocks of their runs."""
    flags = re.IGNORECASE if options.get("ignore_case") else 0
    encoding = ("latin-1", "strict") if pattern.startswith(b"(?-u)") else ("utf-8", "surrogateescape")
    compiled = re.compile(pattern.removeprefix(b"(?-u)").decode("latin-1").replace(r"\p{L}", r"[^\W\d_]"), flags)
    for text, numbers in blocks.runs():
        for line in re.finditer(rb"[^\n]+", text):
            for match in compiled.finditer(line.group().decode(*encoding)):
                before, inside = (part.encode(*encoding) for part in (match.string[: match.start()], match.group()))
                begin = line.start() + len(before)
                yield begin, begin + len(inside), numbers


def check_literals(device: ArrayDevice, literals: Sequence[bytes], contents: Contents) -> None:
    """Every literal has a byte in a block that was found, and one begins in each of these."""
    blocks = Blocks(device, contents)
    found = scan(device, table_of(literals, fixed_strings=True), blocks)
    beginning = set()
    for text, numbers in blocks.runs():
        for literal in literals:
            for match in re.finditer(rb"(?=" + re.escape(literal) + rb")", text):
                beginning |= blocks.having(numbers, match.start(), match.start() + 1)
                assert blocks.having(numbers, match.start(), match.start() + len(literal)) & found
    assert found <= beginning


def check_measures(device: ArrayDevice, contents: Contents) -> None:
    """Lines are counted, and rare bytes found, also over the ends of blocks."""
    blocks = Blocks(device, contents)
    facts, num_lines, last_lines = map(device.download, measure_blocks(device, blocks.stream))
    marked: set[int] = set()
    folding: set[int] = set()
    for text, numbers in blocks.runs():
        for having, pattern in ((marked, rb"\xff\xfe|\xfe\xff"), (folding, rb"\xc5\xbf|\xe2\x84\xaa")):
            for match in re.finditer(rb"(?=" + pattern + rb")", text):
                having |= blocks.having(numbers, match.start(), match.start() + 1)
    for number, content in enumerate(blocks.contents):
        assert bool(facts[number] & HAS_NUL) == (b"\0" in content)
        assert bool(facts[number] & HAS_MARK) == (number in marked)
        assert bool(facts[number] & HAS_FOLDING) == (number in folding)
        assert num_lines[number] == content.count(b"\n")
        assert last_lines[number] == content.rfind(b"\n") + 1


def check_all(device: ArrayDevice, num_examples: int) -> None:
    """Checks random texts."""
    random = settings(
        max_examples=num_examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )

    @random
    @given(case=st.sampled_from(PATTERNS), contents=contents)
    def check_any_pattern(case: tuple[bytes, dict[str, Any]], contents: Contents) -> None:
        check_pattern(device, *case, contents)

    @random
    @given(literals=literals, contents=contents)
    def check_any_literals(literals: list[bytes], contents: Contents) -> None:
        check_literals(device, [*literals, b"foobar"], contents)

    @random
    @given(contents=contents)
    def check_any_measures(contents: Contents) -> None:
        check_measures(device, contents)

    check_any_pattern()
    check_any_literals()
    check_any_measures()


if __name__ == "__main__":
    check_all(HostDevice(Path(sys.argv[1])), num_examples=40)
    sys.stdout.write("the kernels find the blocks\n")
