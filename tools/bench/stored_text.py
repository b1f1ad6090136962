"""Text in memory as an archive stores it with gompresso-tadoc: parts with heads, and a section of shared words."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from gompfs._native.text import PartHeads, PartsBuilder
from gompfs.codec import DEFAULT_PART_SIZE, CodecOptions
from gompfs.engine.cpu import CpuEngine
from gompfs.text.word_characters import WORD_RULE_KINDS, word_characters

_CAPACITY = 64 << 20  # bytes of open heads


@dataclass(frozen=True)
class StoredText:
    """The blocks of all parts; the heads, and the blocks of the section `words`, are in `file`."""

    blocks: list[bytes]
    file: bytes
    columns: tuple[array[int], array[int], array[int], bytes, tuple[array[int], array[int], array[int]]]
    """As PartHeads needs them."""

    @property
    def size(self) -> int:
        """The size of everything in bytes."""
        return len(self.file) + sum(map(len, self.blocks))

    def heads(self, num_threads: int) -> PartHeads:
        """Returns the heads, none of them open yet."""
        return PartHeads([self.columns], lambda at, size: self.file[at : at + size], _CAPACITY, num_threads)


def store_text(pieces: Sequence[bytes], block_size: int, num_threads: int = 0) -> StoredText:
    """Stores the bytes of all pieces as one file, in parts of the size that archives have."""
    engine = CpuEngine(num_threads)
    rule = WORD_RULE_KINDS["identifiers"], word_characters("identifiers")
    with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch:
        builder = PartsBuilder(*rule, block_size, DEFAULT_PART_SIZE, engine.num_threads, scratch)
        for piece in pieces:
            builder.add_bytes(piece)
        builder.end_file()
        builder.finish()
        section = builder.word_section()
        blocks: list[bytes] = []
        heads: list[bytes] = []
        starts = array("Q", [0])
        while parts := builder.next_parts():
            for head, of_part in parts:
                heads.append(head)
                blocks += (block for block, _, _ in of_part)
                starts.append(len(blocks))
    words = [block.data for block in engine.encode_blocks(section, block_size, CodecOptions())] if section else []
    word_sizes = [min(block_size, len(section) - start) for start in range(0, len(section), block_size)]
    sizes = [len(block) for block in (*heads, *words)]
    offsets = [0, *accumulate(sizes)]
    count = len(heads)
    columns = (
        starts,
        array("Q", offsets[:count]),
        array("I", sizes[:count]),
        bytes(count),
        (array("Q", offsets[count:-1]), array("I", sizes[count:]), array("I", word_sizes)),
    )
    return StoredText(blocks, b"".join((*heads, *words)), columns)
