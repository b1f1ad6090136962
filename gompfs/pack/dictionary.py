"""The dictionary of an archive: text from which the blocks of gompresso-bit may copy.

It is chosen from samples of the sources when an archive is packed, and stored in the section `dictionary` of the first
segment. What is added later uses the same dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from gompfs._native.codec import Dictionary, choose_dictionary, decode_blocks
from gompfs.codec import DEFAULT_LEVEL, BlockStatus, Codec, CodecOptions, EncodedBlock
from gompfs.codec.codecs import MAX_LEVEL
from gompfs.codec.constants import MAX_DICTIONARY_SIZE
from gompfs.engine import Engine
from gompfs.errors import CorruptBlockError, CorruptIndexError
from gompfs.format import ArchiveFile
from gompfs.model import Section, is_dictionary
from gompfs.options import PackOptions
from gompfs.pack.sources.base import Source, SourceEntry
from gompfs.pack.sources.file_run import FileRun
from gompfs.pack.sources.samples import ReadAhead, sample_files

# Default sizes of a dictionary, by the least size of the content. Smaller archives get none.
_DEFAULT_SIZES = ((16 << 20, 1 << 20), (4 << 20, 256 << 10))
_TRIAL_SHARE = 16  # one of so many blocks of the sample is encoded to measure what the dictionary saves


@dataclass(frozen=True)
class ChosenDictionary:
    """A dictionary that was chosen for a new archive, and the blocks of its section."""

    native: Dictionary
    size: int
    blocks: list[EncodedBlock]


def sources_with_dictionary(
    sources: Sequence[Source], options: PackOptions, engine: Engine
) -> tuple[ChosenDictionary | None, Iterator[SourceEntry | FileRun]]:
    """Returns the dictionary for a new archive, and the items of all sources.

    There is no dictionary if the options do not allow one, or have a `dictionary_size` of 0. If they leave the choice,
    there is none that would not make the archive smaller. Raises PackError for an entry that cannot be read.
    """
    items: Iterator[SourceEntry | FileRun] = chain.from_iterable(source.items() for source in sources)
    if options.dictionary_size == 0 or not options.can_have_dictionary:
        return None, items
    files = [source.files() for source in sources]
    if None in files:
        ahead = ReadAhead(chain.from_iterable(source.entries() for source in sources))
        total, items = ahead.size, ahead.entries()
        size = options.dictionary_size or _default_size(total, engine)
        sample = b"".join(ahead.sample()) if size else b""
    else:
        total = sum(source.total_size or 0 for source in sources)
        size = options.dictionary_size or _default_size(total, engine)
        sample = b"".join(sample_files(chain.from_iterable(filter(None, files)), total)) if size else b""
    return _choose(sample, size, total, options, engine) if sample else None, items


def _default_size(total: int, engine: Engine) -> int:
    """Returns the size of the dictionary for content of `total` bytes, or 0 if it should have none.

    No kernel encodes with a dictionary, so an archive that is packed on a GPU has one only if a size is given.
    """
    return 0 if engine.name == "gpu" else next((size for least, size in _DEFAULT_SIZES if total >= least), 0)


def _choose(sample: bytes, size: int, total: int, options: PackOptions, engine: Engine) -> ChosenDictionary | None:
    """Returns a dictionary chosen from `sample`, for content of `total` bytes.

    Unless the user asked for it, returns None if it saves less than it takes. That is measured with blocks of the
    sample from which it is not chosen.
    """
    block_size = options.block_size
    pieces = [memoryview(sample)[start : start + block_size] for start in range(0, len(sample), block_size)]
    trial = [] if options.dictionary_size else pieces[_TRIAL_SHARE // 2 :: _TRIAL_SHARE]
    if trial:
        del pieces[_TRIAL_SHARE // 2 :: _TRIAL_SHARE]
    content = choose_dictionary(pieces, size, engine.num_threads)
    if not content:
        return None
    dictionary = Dictionary(content)
    blocks = engine.encode_blocks(content, block_size, CodecOptions(Codec.GOMPRESSO_BIT, MAX_LEVEL))
    if trial:
        text = b"".join(trial)
        saved = _saving(text, dictionary, options, engine) / len(text) * total
        if saved <= sum(block.compressed_size for block in blocks):
            return None
    return ChosenDictionary(dictionary, len(content), blocks)


def _saving(text: bytes, dictionary: Dictionary, options: PackOptions, engine: Engine) -> int:
    """Returns how many bytes smaller the blocks of `text` are with the dictionary."""
    codec = replace(options.data_codec(), level=min(options.level, DEFAULT_LEVEL))
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
