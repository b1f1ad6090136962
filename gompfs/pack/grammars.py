"""Adds the grammars that statistics use to an archive that was packed without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from gompfs.engine import Engine
from gompfs.errors import PackError
from gompfs.grammar import GrammarCollector
from gompfs.options import PackOptions
from gompfs.pack.contents import grammar_codec, grammar_collector, write_grammar
from gompfs.pack.generation import new_generation
from gompfs.pack.stream import StreamWriter


class SegmentText(Protocol):
    """The files of a segment."""

    binary_files: list[int]
    """The inodes of the binary files found so far; complete after `collect`."""

    def collect(self, collector: GrammarCollector) -> Iterator[int]:
        """Pass all files to a collector. Yields the size of each piece."""


def add_grammars(
    archive: Path,
    generation: int,
    texts: Mapping[int, SegmentText],
    *,
    engine: Engine,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Append grammars to segments that have none. Returns their compressed size in bytes.

    `texts` maps segment numbers to their files. The archive must be at `generation`. `progress` is called with the size
    of each piece of text. A crash leaves the archive as it was (see new_generation). Raises PackError, also if another
    process has added to the archive, or the error of a damaged file.
    """
    with new_generation(archive, check=True, num_threads=engine.num_threads) as grown:
        if grown.number != generation + 1:
            raise PackError("another process has added to the archive", path=archive)
        words = grown.base.meta().get("words", PackOptions.words)
        options = PackOptions(words=words, jobs=engine.num_threads)
        size = 0
        for segment, text in texts.items():
            grammar = grammar_collector(options, engine)
            section = StreamWriter(grown.writer, engine, grown.block_size, grammar_codec(options))
            try:
                for piece_size in text.collect(grammar):
                    if progress is not None:
                        progress(piece_size)
                size += write_grammar(grammar, segment, section, grown.index)
            except BaseException:
                section.abandon()
                raise
            grown.index.add_binary_files(text.binary_files)
    return size
