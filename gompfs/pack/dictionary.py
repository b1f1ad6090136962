"""The dictionary of an archive: text from which the blocks of gompresso-bit may copy.

It is chosen from the beginning of the stream when an archive is packed, and stored in the section `dictionary` of the
first segment. What is added later uses the same dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gompfs._native.codec import Dictionary, decode_blocks
from gompfs._native.codec import choose_dictionary as find_repeated
from gompfs.codec import DEFAULT_LEVEL, BlockStatus, Codec, CodecOptions, EncodedBlock
from gompfs.codec.codecs import MAX_LEVEL
from gompfs.codec.constants import MAX_DICTIONARY_SIZE
from gompfs.engine import Engine
from gompfs.errors import CorruptBlockError, CorruptIndexError
from gompfs.format import ArchiveFile
from gompfs.light_types import replaced
from gompfs.model import Section, is_dictionary
from gompfs.options import PackOptions
from gompfs.pack.stream import SAMPLE_SIZE

# Default sizes of a dictionary, by the least size of the content. Smaller archives get none.
_DEFAULT_SIZES = ((16 << 20, 1 << 20), (4 << 20, 256 << 10))
_TRIAL_SHARE = 16  # one of so many blocks of the sample is encoded to measure what the dictionary saves


@dataclass(frozen=True)
class ChosenDictionary:
    """A dictionary that was chosen for a new archive, and the blocks of its section."""

    native: Dictionary
    size: int
    blocks: list[EncodedBlock]


def may_have_dictionary(options: PackOptions, engine: Engine) -> bool:
    """Returns whether a new archive may have a dictionary.

    No kernel encodes with one, so an archive that is packed on a GPU has one only if a size is given.
    """
    default = 0 if engine.name == "gpu" else 1
    size = default if options.dictionary_size is None else options.dictionary_size
    return options.can_have_dictionary and size > 0


def choose_dictionary(content: Sequence[memoryview], options: PackOptions, engine: Engine) -> ChosenDictionary | None:
    """Returns a dictionary for a stream that begins with `content`, chosen from its first SAMPLE_SIZE bytes.

    Unless the user asked for it, returns None if it saves less than it takes in these bytes. That is measured with
    blocks of them from which it is not chosen.
    """
    sample = b"".join(content)[:SAMPLE_SIZE]
    size = options.dictionary_size or next((size for least, size in _DEFAULT_SIZES if len(sample) >= least), 0)
    if not size:
        return None
    block_size = options.block_size
    pieces = [memoryview(sample)[start : start + block_size] for start in range(0, len(sample), block_size)]
    trial = [] if options.dictionary_size else pieces[_TRIAL_SHARE // 2 :: _TRIAL_SHARE]
    if trial:
        del pieces[_TRIAL_SHARE // 2 :: _TRIAL_SHARE]
    chosen = find_repeated(pieces, size, engine.num_threads)
    if not chosen:
        return None
    dictionary = Dictionary(chosen)
    blocks = engine.encode_blocks(chosen, block_size, CodecOptions(Codec.GOMPRESSO_BIT, MAX_LEVEL))
    if trial:
        text = b"".join(trial)
        saved = _saving(text, dictionary, options, engine) / len(text) * len(sample)
        if saved <= sum(block.compressed_size for block in blocks):
            return None
    return ChosenDictionary(dictionary, len(chosen), blocks)


def _saving(text: bytes, dictionary: Dictionary, options: PackOptions, engine: Engine) -> int:
    """Returns how many bytes smaller the blocks of `text` are with the dictionary."""
    codec = replaced(options.data_codec(), level=min(options.level, DEFAULT_LEVEL))
    without, with_it = (
        sum(block.compressed_size for block in engine.encode_blocks(text, options.block_size, codec, each))
        for each in (None, dictionary)
    )
    return without - with_it


def read_dictionary(file: ArchiveFile, sections: Sequence[Section]) -> Dictionary | None:
    """Returns the dictionary of an archive, or None if it has none.

    Raises CorruptBlockError or CorruptIndexError if it is damaged.
    """
    section = next(filter(is_dictionary, sections), None)
    if section is None:
        return None
    table = section.blocks
    if not 0 < table.uncompressed_size <= MAX_DICTIONARY_SIZE:
        raise CorruptIndexError("the index is damaged: the dictionary has an impossible size")
    blocks = [file.read(*where) for where in zip(table.compressed_sizes, table.archive_offsets, strict=True)]
    content = bytearray(table.uncompressed_size)
    statuses = decode_blocks(blocks, content, True, 1, list(table.uncompressed_sizes))
    for number, status in enumerate(map(BlockStatus, statuses)):
        if status is not BlockStatus.OK:
            raise CorruptBlockError(f"section {section.kind}: {status.reason}", block=number)
    return Dictionary(bytes(content))
