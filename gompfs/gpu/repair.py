"""Builds grammars on a device by batch Re-Pair: runs kernels/grammar/repair.cu and repair_rules.cu, and manages memory.

The parts of a batch are processed together. Each round replaces frequent digrams by new rules. A part is finished when
a round hardly shortens it. At the end, rules that do not pay are dissolved. The result equals that of the CPU's builder
(native/grammar/repair.cpp).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gompfs.errors import EngineUnavailableError
from gompfs.gpu.device.arrays import ArrayDevice, Tile
from gompfs.gpu.tokens import PartsInWords, number_words
from gompfs.grammar import PartsInRules, PartsInText

TILE = Tile(num_items=2048, num_threads=256, shared_bytes=8448)
_ITEMS = Tile(num_items=256, num_threads=256)  # one thread per item
_ROUNDS = "grammar/repair"  # the source of the kernels of a round
_RULES = "grammar/repair_rules"  # that of the kernels after the last round
_MAX_ROUNDS = 32  # as in native/grammar/repair.cpp
_LEAST_GAIN = 512  # a part is finished when a round shortens it by at most 1/512

Words = NDArray[np.uint32]


def build_rules(device: ArrayDevice, parts: PartsInText) -> PartsInRules:
    """Returns the words of each part, and the same rules that the CPU's builder `repair` makes.

    It needs about 60 bytes of device memory per symbol. If that is too much, the parts are processed in two halves.
    Raises EngineUnavailableError if the memory is too small for a single part.
    """
    try:
        with device:
            words = number_words(device, parts)
            return _Repair(device, words).build()
    except MemoryError as error:
        if parts.part_files.size == 2:
            raise EngineUnavailableError(f"{device.name} has too little memory for a grammar: {error}") from None
    left, right = split_parts(parts)
    return join_parts(build_rules(device, left), build_rules(device, right))


def split_parts(parts: PartsInText) -> tuple[PartsInText, PartsInText]:
    """Splits the parts into a first and a second half."""
    middle = parts.part_files.size // 2
    file = parts.part_files[middle]
    at = parts.file_ends[file - 1] + np.uint32(1)
    left = parts.text[:at], parts.file_ends[:file], parts.part_files[: middle + 1]
    right = parts.text[at:], parts.file_ends[file:] - at, parts.part_files[middle:] - file
    return PartsInText(*left, parts.word_rule), PartsInText(*right, parts.word_rule)


def join_parts(left: PartsInRules, right: PartsInRules) -> PartsInRules:
    """Concatenates the grammars of two halves."""

    def join_bounds(name: str, size: int, skipped: int = 0) -> NDArray[np.uint32]:
        bounds = getattr(left, name), getattr(right, name)[skipped:] + np.uint32(size)
        return np.concatenate(bounds)

    return PartsInRules(
        np.concatenate([left.word_bytes, right.word_bytes]),
        join_bounds("word_ends", left.word_bytes.size),
        join_bounds("part_words", left.word_ends.size, 1),
        np.concatenate([left.symbols, right.symbols]),
        join_bounds("rule_ends", left.symbols.size),
        join_bounds("part_rules", left.rule_ends.size, 1),
    )


class _Repair:
    """The symbols and rules of one batch, updated by each round. Device arrays are uint32 unless noted."""

    def __init__(self, device: ArrayDevice, parts: PartsInWords) -> None:
        self._device = device
        self._xp = device.xp
        self._parts_in_words = parts
        self._word_bases = parts.part_words
        self._num_words = int(parts.part_words[-1])
        self._num_parts = parts.part_words.size - 1
        self._starts = parts.starts
        self._symbols = parts.symbols
        # Each rule replaces at least two digrams and has two symbols, so all rules have at most as many symbols as the
        # text.
        self._rules = self._xp.empty(max(parts.symbols.size, 1), np.uint32)
        self._num_rules = 0
        self.is_active = np.diff(parts.starts) >= 2
        self.range_starts: list[Words] = []  # per round: the first rule of each part

    def build(self) -> PartsInRules:
        """Returns the grammars of all parts."""
        while self.is_active.any() and len(self.range_starts) < _MAX_ROUNDS:
            self.run_round()
        return self.tidy()

    @property
    def _size(self) -> int:
        return int(self._starts[-1])

    @property
    def _parts(self) -> tuple[Any, int]:
        return self._upload(self._starts), self._num_parts

    def _upload(self, values: Words) -> Any:
        return self._device.upload(values.astype(np.uint32, copy=False))

    def _for_each(self, source: str, kernel: str, count: int, *arguments: Any) -> None:
        self._launch(source, kernel, count, _ITEMS, arguments)

    def _by_tiles(self, kernel: str, *arguments: Any) -> None:
        self._launch(_ROUNDS, kernel, self._size, TILE, arguments)

    def _launch(self, source: str, kernel: str, count: int, tile: Tile, arguments: tuple[Any, ...]) -> None:
        values = (np.uint32(value) if isinstance(value, int) else value for value in arguments)
        self._device.launch(source, kernel, count, *values, tile=tile)

    def run_round(self) -> None:
        """Replaces frequent digrams in the parts that are still active."""
        xp, size, parts = self._xp, self._size, self._parts
        num_tiles = -(-size // TILE.num_items)
        slots, frequencies, replaced = (xp.empty(size, np.uint32) for _ in range(3))
        keys, counts = xp.zeros(2 * size, np.uint64), xp.zeros(2 * size, np.uint32)
        is_active = self._upload(self.is_active.astype(np.uint32))
        self._for_each(_ROUNDS, "count_digrams", size, self._symbols, size, *parts, is_active, keys, counts, slots)
        del keys
        ascents, symbol_counts, rule_counts = (xp.empty(num_tiles, np.uint32) for _ in range(3))
        self._by_tiles("find_frequencies", slots, size, counts, frequencies, ascents)
        chosen = xp.empty(size, np.uint8)
        first, last = xp.full(2 * size, 0xFFFFFFFF, np.uint32), xp.zeros(2 * size, np.uint32)
        self._by_tiles("choose_occurrences", slots, size, frequencies, ascents, chosen, first, last)
        self._by_tiles("count_results", slots, chosen, first, last, size, symbol_counts, rule_counts)
        rule_sums = xp.cumsum(rule_counts, dtype=np.uint32)
        symbol_sums = xp.cumsum(symbol_counts, dtype=np.uint32)
        rules_before, new_starts = (xp.empty(self._num_parts, np.uint32) for _ in range(2))
        facts = (slots, chosen, first, last)
        # The counts are no longer needed: reuse their slots for the numbers of the rules.
        self._by_tiles(
            *("make_rules", self._symbols, size, *parts, *facts, rule_sums),
            *(self._num_rules, self._rules, counts, rules_before),
        )
        self._by_tiles(
            *("replace_digrams", self._symbols, size, *parts, frequencies, *facts, symbol_sums),
            *(counts, self._num_words, replaced, new_starts),
        )
        self._symbols = replaced
        self.range_starts.append(self._device.download(rules_before) + np.uint32(self._num_rules))
        self._num_rules += int(self._device.download(rule_sums[-1:])[0])
        self._end_round(np.append(self._device.download(new_starts), self._device.download(symbol_sums[-1:])))

    def _end_round(self, starts: Words) -> None:
        old_sizes, sizes = np.diff(self._starts), np.diff(starts)
        self.is_active &= (old_sizes - sizes > old_sizes // _LEAST_GAIN) & (sizes >= 2)
        self._starts = starts

    def tidy(self) -> PartsInRules:
        """Dissolves rules that do not pay, renumbers the others within their parts, and returns the grammars."""
        uses, lengths = self._dissolve()
        sizes = self._xp.empty(self._size, np.uint32)
        symbols = (self._symbols, self._size)
        self._for_each(_RULES, "measure_symbols", self._size, *symbols, self._num_words, uses, lengths, sizes)
        symbol_ends = self._xp.cumsum(sizes, dtype=np.uint32)
        root_numbers, number_of, rule_at, lengths_at = self._number(uses, lengths)
        root_ends = self._device.download(symbol_ends[self._upload(self._starts[1:] - 1)])
        lengths_at[self._upload(root_numbers[:-1])] = self._upload(np.diff(root_ends, prepend=np.uint32(0)))
        ends = self._xp.cumsum(lengths_at, dtype=np.uint32)
        host_ends = self._device.download(ends, pinned=True)
        output = self._xp.empty(int(host_ends[-1]), np.uint32)
        part_starts, num_parts = self._parts
        self._for_each(
            *(_RULES, "write_rules", output.size, self._symbols, symbol_ends, self._size, part_starts),
            *(self._upload(root_numbers), num_parts, self._upload(self._word_bases), self._num_words, self._rules),
            *(uses, lengths, number_of, rule_at, ends, ends.size, output, output.size),
        )
        words = self._parts_in_words
        of_words = (words.word_bytes, words.word_ends, words.part_words)
        return PartsInRules(*of_words, self._device.download(output, pinned=True), host_ends, root_numbers)

    def _dissolve(self) -> tuple[Any, Any]:
        """Returns the uses of each rule (0 for dissolved rules), and the length of each rule after dissolving."""
        uses = self._xp.zeros(max(self._num_rules, 1), np.uint32)
        lengths = self._xp.zeros(max(self._num_rules, 1), np.uint32)
        for symbols, size in ((self._symbols, self._size), (self._rules, 2 * self._num_rules)):
            self._for_each(_RULES, "count_uses", size, symbols, size, self._num_words, uses)
        bounds = [*(int(starts[0]) for starts in self.range_starts), self._num_rules]
        rounds = list(itertools.pairwise(bounds))

        def for_rules(kernel: str, begin: int, end: int) -> None:
            self._for_each(_RULES, kernel, end - begin, self._rules, begin, end, self._num_words, uses, lengths)

        for begin, end in rounds:
            for_rules("measure_rules", begin, end)
        for begin, end in reversed(rounds):
            for_rules("dissolve_rules", begin, end)
        for begin, end in rounds:
            for_rules("measure_rules", begin, end)
        return uses, lengths

    def _number(self, uses: Any, lengths: Any) -> tuple[Words, Any, Any, Any]:
        """Numbers the roots and the rules that remain.

        Returns the number of each root, then on the device: the number of each rule, and by number the rule and its
        length. Rule and length are not set for roots.
        """
        xp, num_rules = self._xp, self._num_rules
        kept_up_to = xp.cumsum(uses >= 2, dtype=np.uint32)
        starts = np.concatenate([*self.range_starts, [num_rules]]).astype(np.uint32)
        kept = np.zeros((len(self.range_starts), self._num_parts), np.uint32)
        if num_rules:
            bounds = self._device.download(kept_up_to[self._upload(np.maximum(starts, 1) - 1)])
            bounds[starts == 0] = 0
            kept[:] = np.diff(bounds).reshape(kept.shape)
        root_numbers = np.concatenate([[0], np.cumsum(kept.sum(axis=0) + 1)]).astype(np.uint32)
        # Within a part, rules of later rounds have lower numbers.
        later = np.cumsum(kept[::-1], axis=0)[::-1] - kept
        bases = (root_numbers[:-1] + 1 + later).astype(np.uint32).ravel()
        number_of = xp.empty(max(num_rules, 1), np.uint32)
        rule_at, lengths_at = (xp.empty(int(root_numbers[-1]), np.uint32) for _ in range(2))
        self._for_each(
            *(_RULES, "number_rules", num_rules, num_rules, self._upload(starts), starts.size - 1),
            *(self._upload(bases), uses, kept_up_to, lengths, number_of, rule_at, lengths_at),
        )
        return root_numbers, number_of, rule_at, lengths_at
