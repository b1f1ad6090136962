"""Gives an archive that was packed without stats the grammars that the analytics need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from gompfs.engine import Engine
from gompfs.errors import PackError
from gompfs.grammar import GrammarCollector
from gompfs.options import PackOptions
from gompfs.pack.generation import new_generation
from gompfs.pack.segment import grammar_codec, grammar_collector, write_grammar
from gompfs.pack.stream import StreamWriter


class SegmentText(Protocol):
    """The files of a segment."""

    binary_files: list[int]
    """The inodes that are known to be of binary files; of all after `collect`."""

    def collect(self, collector: GrammarCollector) -> Iterator[int]:
        """Give all files to a collector; the size of each piece that it took."""


def add_grammars(
    archive: Path,
    generation: int,
    texts: Mapping[int, SegmentText],
    *,
    engine: Engine,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Append the grammars of segments, by number, that have none in the archive's `generation`; their compressed size.

    `progress` gets the size of each piece of text. A crash leaves the archive as it was (`new_generation`). Raises
    PackError, also where somebody has added to the archive meanwhile, or the error of a file that is damaged.
    """
    with new_generation(archive) as grown:
        if grown.number != generation + 1:
            raise PackError("another process has added to the archive", path=archive)
        options = PackOptions(words=grown.base.meta().get("words", PackOptions.words), jobs=engine.num_threads)
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
            for ino in text.binary_files:
                grown.index.add_binary_file(ino)
    return size
