"""Words of text in device memory: replaces words by numbers and makes a dictionary in byte order."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gompfs.gpu.device.arrays import Array, ArrayDevice
from gompfs.grammar.word_characters import word_characters
from gompfs.model import WORD_RULES

BYTES_OF_MASK = 32
"""The text on the device is padded with newlines to a multiple of this many bytes."""
MAX_TEXT = 1 << 31
_WORDS, _TABLE = "statistics/words", "statistics/word_table"
_NO_SLOT = 0xFFFFFFFF
_IS_TOKEN = 1 << 31
_NUM_SLOTS = 1 << 20
_LONG_WORD = 1 << 16  # bytes; longer words are handled on the host, since one would keep a single device thread busy
_MAX_ROUNDS = 16  # rounds of 8 bytes; the host sorts words that are still equal after all rounds


@dataclass(frozen=True)
class Copies:
    """Ranges of bytes to copy: source offset, target offset and size in bytes (all uint64, on the host).

    No range is empty. Target offsets ascend, and the targets do not overlap.
    """

    sources: NDArray[np.uint64]
    targets: NDArray[np.uint64]
    sizes: NDArray[np.uint64]


@dataclass(frozen=True)
class Tokens:
    """The words of a text (uint32 arrays): start offset, end offset and the number of its entry in the word table."""

    starts: Array
    ends: Array
    entries: Array


@dataclass(frozen=True)
class DeviceDictionary:
    """All words in byte order: word i is bytes[starts[i] : starts[i + 1]] (`starts` is uint64, `bytes` uint8).

    `counts` (uint64) is how often each word occurs. `ranks` (uint32) maps entries of the word table to words.
    """

    starts: Array
    bytes: Array
    counts: Array
    ranks: Array


def padded_size(size: int) -> int:
    """Returns the bytes of memory that a text of `size` bytes needs with its padding."""
    return -(-size // BYTES_OF_MASK) * BYTES_OF_MASK


def gather(device: ArrayDevice, source: Array, copies: Copies, size: int) -> Array:
    """Copies ranges of `source` into a new array of `size` bytes (uint8); all other bytes are newlines."""
    output = device.xp.empty(size, np.uint8)
    columns = (device.upload(array) for array in (copies.sources, copies.targets, copies.sizes))
    device.launch(_WORDS, "gather_bytes", size, source, *columns, copies.sizes.size, output, size)
    return output


def find_nuls(device: ArrayDevice, source: Array, offsets: NDArray[np.uint64], sizes: NDArray[np.uint64]) -> Array:
    """Returns for each file whether its first 8 KiB contain a NUL (bool, on the host).

    `offsets` are those of the files in `source`, `sizes` their sizes in bytes.
    """
    flags = device.xp.zeros(offsets.size, np.uint32)
    of_files = device.upload(offsets), device.upload(sizes), offsets.size
    device.launch(_WORDS, "find_nuls", offsets.size * 256, source, *of_files, flags)
    return device.download(flags) != 0


def count_before(device: ArrayDevice, words: Tokens, offsets: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Returns how many words begin before each of the offsets of the text."""
    if not words.starts.size:
        return np.zeros(offsets.size, np.uint64)
    counts = device.xp.searchsorted(words.starts, device.upload(offsets))
    return device.download(counts).astype(np.uint64)


class WordTable:
    """The distinct words of a series of texts, with their counts.

    A hash table that also keeps the bytes of the words (kernels/statistics/word_table.cu). It compares the bytes, so
    hash collisions cause no errors. It needs 16 bytes per slot, keeps half of the slots free, and needs the bytes of
    the words in addition.
    """

    def __init__(
        self,
        device: ArrayDevice,
        word_rule: str = WORD_RULES[0],
        *,
        num_slots: int = _NUM_SLOTS,
        hash_bits: int = 64,
    ) -> None:
        """Takes words of a rule, one of WORD_RULES.

        The table begins with `num_slots` slots, a power of two. Tests set `hash_bits` below 64 to make hashes collide.
        """
        xp = device.xp
        self._device = device
        self._rule = np.uint32(WORD_RULES.index(word_rule))
        bitmap = word_characters(word_rule)
        self._characters = device.upload(np.frombuffer(bitmap, np.uint8)) if bitmap else None
        self._hash = np.uint64(secrets.randbits(64)), np.uint64((1 << hash_bits) - 1)
        self._slots = xp.zeros(num_slots, np.uint64)
        self._pool = xp.empty(0, np.uint8)
        self._starts = xp.zeros(1, np.uint64)
        self._counts = xp.zeros(0, np.uint64)
        self._long_words: dict[bytes, int] = {}

    @property
    def num_words(self) -> int:
        """The number of distinct words."""
        return int(self._counts.size)

    def add(self, text: Array, size: int, *, goes_on: bool = False) -> tuple[Tokens, int]:
        """Counts the words of a text (uint8) of `size` bytes, less than MAX_TEXT, which is padded with newlines.

        Returns the words, and how many bytes at the end of the text must be repeated at the start of the next one. That
        is 0 unless the text `goes_on` in the next one; then it covers a last word or character that may be incomplete.
        """
        starts, ends = self._find_words(text)
        again = 0
        if goes_on:
            again, num_whole = self._cut(starts, ends, size)
            starts, ends = starts[:num_whole], ends[:num_whole]
        entries = self._number(text, starts, ends)
        return Tokens(starts, ends, entries), again

    def _find_words(self, text: Array) -> tuple[Array, Array]:
        """Returns the start and end offsets of the words (uint32)."""
        device, xp = self._device, self._device.xp
        num_masks = text.size // BYTES_OF_MASK
        masks, counts = (xp.empty(num_masks, np.uint32) for _ in range(2))
        device.launch(_WORDS, "mark_words", num_masks, text, text.size, self._rule, self._characters, masks)
        device.launch(_WORDS, "count_words", num_masks, masks, num_masks, counts)
        ends_of_counts = xp.cumsum(counts, dtype=np.uint32)
        num_words = int(ends_of_counts[-1]) if num_masks else 0
        starts, ends = (xp.empty(num_words, np.uint32) for _ in range(2))
        device.launch(_WORDS, "write_words", num_masks + 1, masks, num_masks, ends_of_counts, starts, ends)
        return starts, ends

    def _cut(self, starts: Array, ends: Array, size: int) -> tuple[int, int]:
        """Returns how many bytes must be repeated in the next text, and how many words lie before them."""
        tail = 0 if self._characters is None else min(3, size)  # a UTF-8 character may be incomplete there
        num_words = int(starts.size)
        if num_words and int(ends[-1]) >= size - tail:
            return size - int(starts[-1]), num_words - 1
        return tail, num_words

    def _number(self, text: Array, starts: Array, ends: Array) -> Array:
        """Returns the table entry of each word of a text (uint32)."""
        is_long = ends - starts > np.uint32(_LONG_WORD)
        if not is_long.any():
            return self._find_entries(text, starts, ends)
        entries = self._device.xp.empty(starts.size, np.uint32)
        entries[~is_long] = self._find_entries(text, starts[~is_long], ends[~is_long])
        entries[is_long] = self._find_long_words(text, starts[is_long], ends[is_long])
        return entries

    def _find_long_words(self, text: Array, starts: Array, ends: Array) -> Array:
        """Like _number, for words longer than _LONG_WORD, which the host looks up in a dict."""
        device = self._device
        starts = starts.astype(np.uint64)
        sizes = ends.astype(np.uint64) - starts
        offsets = device.xp.cumsum(sizes, dtype=np.uint64) - sizes
        content = device.download(_gather_on_device(device, text, starts, offsets, sizes)).data
        new: list[int] = []
        entries: list[int] = []
        bounds = zip(device.download(offsets).tolist(), device.download(sizes).tolist(), strict=True)
        for number, (offset, size) in enumerate(bounds):
            word = bytes(content[offset : offset + size])
            if word not in self._long_words:
                self._long_words[word] = self.num_words + len(new)
                new.append(number)
            entries.append(self._long_words[word])
        if new:
            chosen = device.upload(np.array(new, np.int64))
            self._add_entries(text, starts[chosen], sizes[chosen])
        found, counts = np.unique(np.array(entries, np.int64), return_counts=True)
        self._counts[device.upload(found)] += device.upload(counts.astype(np.uint64))
        return device.upload(np.array(entries, np.uint32))

    def _find_entries(self, text: Array, starts: Array, ends: Array) -> Array:
        """Like _number, for words that the hash table on the device holds."""
        device, xp = self._device, self._device.xp
        num_words = int(starts.size)
        slots_of_words = xp.full(num_words, _NO_SLOT, np.uint32)
        entries = xp.empty(num_words, np.uint32)
        of_text = (text, starts, ends)
        taken = self.num_words
        while num_words:
            counters = device.upload(np.array([taken, 0], np.uint32))
            device.launch(
                *(_TABLE, "find_slots", num_words, *of_text, num_words, self._pool, self._starts),
                *(*self._hash, self._slots, self._slots.size),
                *(np.uint32(self._slots.size // 2), counters, slots_of_words),
            )
            taken, is_full = device.download(counters).tolist()
            if not is_full:
                break
            self._grow(of_text, slots_of_words)
        self._keep_new_words(*of_text)
        arguments = (num_words, slots_of_words, self._slots, entries, self._counts)
        device.launch(_TABLE, "count_entries", num_words, *arguments)
        return entries

    def _grow(self, of_text: tuple[Array, Array, Array], slots_of_words: Array) -> None:
        """Doubles the number of slots, and updates the slot numbers in `slots_of_words`."""
        device, xp = self._device, self._device.xp
        old, self._slots = self._slots, xp.zeros(2 * self._slots.size, np.uint64)
        moved = xp.empty(old.size, np.uint32)
        device.launch(
            *(_TABLE, "move_slots", old.size, *of_text, self._pool, self._starts, *self._hash),
            *(old, old.size, self._slots, self._slots.size, moved),
        )
        device.launch(_TABLE, "move_word_slots", slots_of_words.size, slots_of_words.size, moved, slots_of_words)

    def _keep_new_words(self, text: Array, starts: Array, ends: Array) -> None:
        """Makes entries for the words that this text has added to the slots."""
        xp = self._device.xp
        new = xp.flatnonzero(self._slots & np.uint64(_IS_TOKEN))
        if not new.size:
            return
        values = self._slots[new]
        tokens = (values & np.uint64(_IS_TOKEN - 1)).astype(np.int64) - 1
        word_starts = starts[tokens].astype(np.uint64)
        sizes = ends[tokens].astype(np.uint64) - word_starts
        numbers = xp.arange(self.num_words + 1, self.num_words + 1 + int(new.size), dtype=np.uint64)
        self._slots[new] = values >> np.uint64(32) << np.uint64(32) | numbers
        self._add_entries(text, word_starts, sizes)

    def _add_entries(self, text: Array, starts: Array, sizes: Array) -> None:
        """Appends words of a text (starts and sizes: uint64) to the pool."""
        xp = self._device.xp
        ends_in_pool = xp.cumsum(sizes, dtype=np.uint64)
        more = _gather_on_device(self._device, text, starts, ends_in_pool - sizes, sizes)
        self._starts = xp.concatenate([self._starts, ends_in_pool + self._starts[-1]])
        self._pool = xp.concatenate([self._pool, more])
        self._counts = xp.concatenate([self._counts, xp.zeros(sizes.size, np.uint64)])

    def dictionary(self) -> DeviceDictionary:
        """Returns all words in byte order."""
        device, xp = self._device, self._device.xp
        order = sort_words(device, self._pool, self._starts)
        sizes = (self._starts[1:] - self._starts[:-1])[order]
        starts = xp.zeros(order.size + 1, np.uint64)
        starts[1:] = xp.cumsum(sizes, dtype=np.uint64)
        content = _gather_on_device(device, self._pool, self._starts[:-1][order], starts[:-1], sizes)
        ranks = xp.empty(order.size, np.uint32)
        ranks[order] = xp.arange(order.size, dtype=np.uint32)
        return DeviceDictionary(starts, content, self._counts[order], ranks)


def gather_words(device: ArrayDevice, text: Array, starts: Array, ends: Array) -> tuple[Array, Array]:
    """Returns the concatenated bytes of words of a text (uint8), and the end offset of each word in them (uint32)."""
    starts = starts.astype(np.uint64)
    sizes = ends.astype(np.uint64) - starts
    offsets = device.xp.cumsum(sizes, dtype=np.uint64)
    return _gather_on_device(device, text, starts, offsets - sizes, sizes), offsets.astype(np.uint32)


def _gather_on_device(device: ArrayDevice, source: Array, sources: Array, targets: Array, sizes: Array) -> Array:
    """Concatenates ranges of `source`; like gather, but the arrays that describe the ranges are on the device."""
    size = int(targets[-1] + sizes[-1]) if sizes.size else 0
    output = device.xp.empty(size, np.uint8)
    columns = (device.xp.ascontiguousarray(array) for array in (sources, targets, sizes))
    device.launch(_WORDS, "gather_bytes", size, source, *columns, sizes.size, output, size)
    return output


def sort_words(device: ArrayDevice, pool: Array, starts: Array) -> Array:
    """Returns the byte order (int64) of the words of a pool, which are all different.

    Word i is pool[starts[i] : starts[i + 1]]. Each round compares 8 more bytes. Words that are equal so far are
    neighbours; the next round sorts only these, within their groups.
    """
    xp = device.xp
    order = xp.arange(starts.size - 1, dtype=np.int64)
    positions = order.copy()  # positions in `order` whose words are still tied with a neighbour
    groups = xp.zeros(order.size, np.int64)  # the group of tied words at each of these positions
    for number in range(_MAX_ROUNDS):
        if not positions.size:
            return order
        items = order[positions]
        keys, sizes = xp.empty(items.size, np.uint64), xp.empty(items.size, np.uint8)
        arguments = (pool, starts, items.view(np.uint64), items.size, 8 * number, keys, sizes)
        device.launch(_TABLE, "load_keys", items.size, *arguments)
        sorting = xp.argsort(sizes, kind="stable")
        for column in (keys, groups):
            sorting = sorting[xp.argsort(column[sorting], kind="stable")]
        order[positions] = items[sorting]
        keys, sizes, groups = keys[sorting], sizes[sorting], groups[sorting]
        is_first = xp.ones(items.size + 1, bool)
        is_first[1:-1] = (groups[1:] != groups[:-1]) | (keys[1:] != keys[:-1]) | (sizes[1:] != sizes[:-1])
        is_tied = ~(is_first[:-1] & is_first[1:])
        groups = xp.cumsum(is_first[:-1], dtype=np.int64)[is_tied]
        positions = positions[is_tied]
    if positions.size:
        _sort_on_host(device, pool, starts, order, positions, groups)
    return order


def _sort_on_host(
    device: ArrayDevice, pool: Array, starts: Array, order: Array, positions: Array, groups: Array
) -> None:
    """Sorts the words at these positions of `order`, each within its group."""
    xp = device.xp
    items = order[positions]
    word_starts = starts[items]
    sizes = starts[items + 1] - word_starts
    ends = xp.cumsum(sizes, dtype=np.uint64)
    content = device.download(_gather_on_device(device, pool, word_starts, ends - sizes, sizes)).tobytes()
    bounds = [0, *device.download(ends).tolist()]
    words = [content[start:end] for start, end in pairwise(bounds)]
    numbers = device.download(groups).tolist()
    ranking = sorted(range(len(words)), key=lambda index: (numbers[index], words[index]))
    order[positions] = items[device.upload(np.array(ranking, np.int64))]
