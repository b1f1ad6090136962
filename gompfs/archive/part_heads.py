"""Opens the heads of an archive's parts, for blocks of the codec gompresso-tadoc.

The reference engine has its own decoder of heads. All others use that of the C++ core.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from gompfs._native.parts import PartHeads
from gompfs.engine import Engine
from gompfs.format import ArchiveFile, LocalFile
from gompfs.model import WORD_SECTION, Section, Segment

if TYPE_CHECKING:
    from gompfs.codec.reference_heads import ReferencePartHeads

    AnyPartHeads: TypeAlias = PartHeads | ReferencePartHeads

_CAPACITY = 64 << 20  # bytes of decoded heads: about 400 parts of 256 KiB


def open_part_heads(
    file: ArchiveFile, engine: Engine, segments: Sequence[Segment], sections: Sequence[Section], block_size: int
) -> AnyPartHeads:
    """Returns the heads of all segments, for blocks that `engine` decodes.

    They are read from `file` when they are needed.
    """
    words = {section.segment: section.places for section in sections if section.kind == WORD_SECTION}
    columns = []
    for segment in segments:
        parts = segment.parts
        if not any(parts.head_sizes):
            continue
        starts = array("Q", [segment.first_block])
        for size in parts.sizes:
            starts.append(starts[-1] + -(-size // block_size))
        places = words.get(segment.number)
        of_words = (places.archive_offsets, places.compressed_sizes) if places else (b"", b"")
        columns.append((starts, parts.head_offsets, parts.head_sizes, *of_words))

    def read(offset: int, size: int) -> bytes | memoryview:
        return file.read(size, offset)

    if engine.name == "reference":
        from gompfs.codec.reference_heads import ReferencePartHeads, SegmentHeads

        return ReferencePartHeads([SegmentHeads(*each) for each in columns], read, _CAPACITY)
    if isinstance(file, LocalFile):
        return PartHeads(columns, file.duplicate() if columns else -1, _CAPACITY)
    return PartHeads(columns, read, _CAPACITY)
