"""Opens the heads of parts, and the dictionary of an archive, with the readable decoder.

See gompfs._native.text.PartHeads, which does the same fast.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from gompfs.codec.block import BlockStatus, Buffer
from gompfs.codec.codecs import Codec
from gompfs.codec.words import max_word_bytes
from oracle.block import check_block
from oracle.constants import BLOCK_HEADER_SIZE, MAX_DICTIONARY_SIZE, MAX_HEAD_PAYLOAD
from oracle.payload import decode_payload
from oracle.sequences import PayloadError
from oracle.tadoc import GlobalWords, Part, read_head, read_words

BlockRanges = tuple[Sequence[int], Sequence[int]]
"""The archive_offset and compressed_size of each block of a section."""
WordRanges = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""The same, and the uncompressed_size of each block."""

_NO_WORDS = bytes(8)  # a section without words and separators
_MAX_WORDS_BYTES = (1 << 32) - 1  # of all words, with a space after each


class SegmentHeads(NamedTuple):
    """The first block of each part and the end of the last, its heads, and the blocks of the section `words`.

    `uses_dictionary` has 1 for a part whose blocks need the dictionary of the archive, else 0. Blocks of the section
    are columns of archive_offset, compressed_size and uncompressed_size.
    """

    first_blocks: Sequence[int]
    head_offsets: Sequence[int]
    head_sizes: Sequence[int]
    uses_dictionary: Sequence[int]
    words: WordRanges


class PartHeads:
    """The heads of an archive's parts, decoded when a block needs them. Any number of threads may use it."""

    def __init__(
        self,
        segments: Sequence[SegmentHeads],
        dictionary: BlockRanges,
        read: Callable[[int, int], Buffer],
        capacity: int,
    ) -> None:
        """Caches heads, up to `capacity` bytes of pools. `read` gets an offset and a size.

        `dictionary` are the blocks of the archive's dictionary; without values if it has none.
        """
        self._segments = segments
        self._read = read
        self._bytes_left = capacity
        self._lock = threading.Lock()
        self._words: dict[int, GlobalWords] = {}
        self._parts: OrderedDict[int, tuple[Part, int]] = OrderedDict()
        self._dictionary_blocks = dictionary
        self._dictionary: tuple[bytes | None, BlockStatus] | None = None

    def open(self, blocks: Sequence[int]) -> tuple[list[Part | bytes | None], bytes]:
        """Returns the part of each block, and the BlockStatus of its head.

        It is the content of the dictionary for a part that uses it. There is none for other parts without a head, nor
        if the head or the dictionary is damaged.
        """
        with self._lock:
            opened = [self._open(block) for block in blocks]
        return [part for part, _ in opened], bytes(status for _, status in opened)

    def _open(self, block: int) -> tuple[Part | bytes | None, BlockStatus]:
        for number, segment in enumerate(self._segments):
            if segment.first_blocks[0] <= block < segment.first_blocks[-1]:
                index = bisect_right(segment.first_blocks, block) - 1
                if segment.uses_dictionary[index]:
                    self._dictionary = self._dictionary or self._read_dictionary()
                    return self._dictionary
                if segment.head_sizes[index] == 0:
                    break
                return self._open_part(number, index)
        return None, BlockStatus.OK

    def _open_part(self, number: int, index: int) -> tuple[Part | None, BlockStatus]:
        segment = self._segments[number]
        key = segment.first_blocks[index]
        if key in self._parts:
            self._parts.move_to_end(key)
            return self._parts[key][0], BlockStatus.OK
        size = segment.head_sizes[index]
        if size > BLOCK_HEADER_SIZE + MAX_HEAD_PAYLOAD:
            return None, BlockStatus.BAD_HEADER
        block = self._read(segment.head_offsets[index], size)
        header, status = check_block(block)
        if header is None or header.codec is not Codec.HEAD:
            return None, BlockStatus.BAD_HEADER
        if status is not BlockStatus.OK:
            return None, status
        try:
            part = read_head(bytes(block[BLOCK_HEADER_SIZE:]), header.uncompressed_size, self._words_of(number))
        except PayloadError:
            return None, BlockStatus.BAD_PAYLOAD
        self._keep(key, part, header.uncompressed_size)
        return part, BlockStatus.OK

    def _keep(self, key: int, part: Part, pool_size: int) -> None:
        self._parts[key] = part, pool_size
        self._bytes_left -= pool_size
        while self._bytes_left < 0 and len(self._parts) > 1:
            _, (_, dropped) = self._parts.popitem(last=False)
            self._bytes_left += dropped

    def _words_of(self, number: int) -> GlobalWords:
        if number not in self._words:
            self._words[number] = self._read_words(self._segments[number])
        return self._words[number]

    def _read_dictionary(self) -> tuple[bytes | None, BlockStatus]:
        """Returns the content of the dictionary, or why there is none."""
        content = bytearray()
        for offset, size in zip(*self._dictionary_blocks, strict=True):
            block, status = _decode_block(self._read(offset, size))
            if status is not BlockStatus.OK:
                return None, status
            content += block
            if len(content) > MAX_DICTIONARY_SIZE:
                break
        if not 0 < len(content) <= MAX_DICTIONARY_SIZE:
            return None, BlockStatus.BAD_HEADER
        return bytes(content), BlockStatus.OK

    def _read_words(self, segment: SegmentHeads) -> GlobalWords:
        """Returns the global words of a segment; none if their section is damaged."""
        section = bytearray()
        for offset, size, uncompressed_size in zip(*segment.words, strict=True):
            content, status = _decode_block(self._read(offset, size))
            if status is not BlockStatus.OK or len(content) != uncompressed_size:
                return read_words(_NO_WORDS)
            section += content
        try:
            words = read_words(bytes(section) or _NO_WORDS)
        except PayloadError:
            return read_words(_NO_WORDS)
        sizes = segment.words[1]
        num_stored = sum(sizes) - BLOCK_HEADER_SIZE * len(sizes)
        is_allowed = (
            words.num_bytes <= max_word_bytes(num_stored) and words.num_bytes + words.num_words <= _MAX_WORDS_BYTES
        )
        return words if is_allowed else read_words(_NO_WORDS)


def _decode_block(block: Buffer) -> tuple[bytes, BlockStatus]:
    """Returns the content of a block of a section, and its status; no content if it is damaged."""
    header, status = check_block(block)
    if header is None or header.codec > Codec.GOMPRESSO_BIT:
        return b"", BlockStatus.BAD_HEADER
    if status is not BlockStatus.OK:
        return b"", status
    try:
        content = decode_payload(header.codec, bytes(block[BLOCK_HEADER_SIZE:]), header.uncompressed_size)
    except PayloadError:
        return b"", BlockStatus.BAD_PAYLOAD
    if xxh3_64_intdigest(content) != header.content_xxh3:
        return b"", BlockStatus.BAD_CONTENT
    return content, BlockStatus.OK
