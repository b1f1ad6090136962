"""Cuts the text of grammar parts into words and numbers the words on a device. Rules are built from these numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gompfs.gpu.device.arrays import Array, ArrayDevice
from gompfs.gpu.words import MAX_TEXT, WordTable, count_before, gather_words, padded_size
from gompfs.grammar import PartsInText
from gompfs.grammar.grammar import SPLITTER

_SOURCE = "grammar/tokens"
_UNUSED = 0xFFFFFFFF
_BYTES_OF_A_SLOT = 16  # bytes of text per slot of the initial table


@dataclass(frozen=True)
class PartsInWords:
    """Parts as word numbers (uint32): part p is `symbols[starts[p] : starts[p + 1]]`. Only `symbols` is on the device.

    Each part numbers its words in order of first occurrence, from `part_words[p]` on, so that a number belongs to one
    part only. Each file ends with SPLITTER. Word w is `word_bytes[word_ends[w - 1] : word_ends[w]]` (uint8).
    """

    symbols: Array
    starts: NDArray[np.uint32]
    part_words: NDArray[np.uint32]
    word_bytes: NDArray[np.uint8]
    word_ends: NDArray[np.uint32]


def number_words(device: ArrayDevice, parts: PartsInText) -> PartsInWords:
    """Cuts the text of the parts into words and numbers the words.

    Raises MemoryError if the text has 2 GiB or more, or the device too little memory.
    """
    xp, size = device.xp, parts.text.size
    if size >= MAX_TEXT:
        raise MemoryError(f"{size} bytes of text are too much for one pass")
    text = xp.full(padded_size(size), ord("\n"), np.uint8)
    text[:size] = device.upload(parts.text)
    num_slots = 1 << (size // _BYTES_OF_A_SLOT).bit_length()
    table = WordTable(device, parts.word_rule, num_slots=max(num_slots, 64))
    tokens, _ = table.add(text, size)
    num_tokens = int(tokens.entries.size)
    before_ends = count_before(device, tokens, parts.file_ends).astype(np.uint32)
    part_tokens = np.append(np.uint32(0), before_ends)[parts.part_files]
    # For each word of each part: its first token.
    of_parts = device.upload(part_tokens), parts.part_files.size - 1, table.num_words
    firsts = xp.full((parts.part_files.size - 1) * table.num_words, _UNUSED, np.uint32)
    device.launch(_SOURCE, "find_first_tokens", num_tokens, tokens.entries, num_tokens, *of_parts, firsts)
    is_first = xp.empty(num_tokens, np.uint32)
    device.launch(_SOURCE, "mark_first_tokens", num_tokens, tokens.entries, num_tokens, *of_parts, firsts, is_first)
    numbers = xp.cumsum(is_first, dtype=np.uint32)
    symbols = xp.full(num_tokens + parts.file_ends.size, SPLITTER, np.uint32)
    device.launch(
        *(_SOURCE, "write_symbols", num_tokens, tokens.entries, num_tokens, *of_parts, firsts, numbers),
        *(device.upload(before_ends), before_ends.size, symbols),
    )
    chosen = xp.flatnonzero(is_first)
    word_bytes, word_ends = gather_words(device, text, tokens.starts[chosen], tokens.ends[chosen])
    up_to = np.append(np.uint32(0), device.download(numbers[device.upload(part_tokens[part_tokens > 0] - 1)]))
    part_words = up_to[np.cumsum(part_tokens > 0)]
    starts = part_tokens + parts.part_files
    of_words = (device.download(array, pinned=True) for array in (word_bytes, word_ends))
    return PartsInWords(symbols, starts, part_words, *of_words)
