"""The words of files that no grammar covers, cut on the engine's device or on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gompfs.grammar import NO_RULES, Grammar, GrammarBuilder, GrammarCollector
from gompfs.statistics.content import ContentText
from gompfs.threads import default_threads

if TYPE_CHECKING:
    from gompfs.statistics.device_content import DeviceText

_TEXT_OF_GRAMMAR = 512 << 20


def content_word_counts(content: ContentText, num_threads: int = 0) -> list[tuple[Grammar, NDArray[np.uint64]]]:
    """Returns all words in grammars that hold nothing else, each with the counts of its words (uint64).

    Memory holds the dictionaries of all grammars, and one whole grammar. Raises the same errors as `content_grammars`.
    """
    on_device = _on_device(content)
    if on_device is not None:
        return [on_device.word_counts()]
    num_threads = num_threads or default_threads()
    counted = []
    for grammar in _host_grammars(content, num_threads):
        counted.append((grammar, grammar.word_counts(num_threads=num_threads)))
        grammar.drop_parts()
    return counted


def content_grammars(content: ContentText, num_threads: int = 0) -> Iterator[Grammar]:
    """Yields all words in order, in grammars without rules. A file may continue in the next grammar.

    The stream is decoded once, in batches; on the engine's device, if it is used to split text of this size into words.
    Raises CorruptBlockError if a file lies in a damaged block.
    """
    on_device = _on_device(content)
    if on_device is not None:
        yield on_device.grammar()
    else:
        yield from _host_grammars(content, num_threads)


def _on_device(content: ContentText) -> DeviceText | None:
    archive = content.archive
    if not content.layout.inos.size or archive.verifies_content:
        return None
    accelerator = archive.engine.accelerator
    device = accelerator.text(content.num_bytes) if accelerator else None
    if device is None:
        return None
    from gompfs.statistics.device_content import DeviceText

    return DeviceText(archive, content, device)


def _host_grammars(content: ContentText, num_threads: int) -> Iterator[Grammar]:
    """Yields a grammar for each 512 MiB of text, approximately."""
    if not content.layout.inos.size:
        return
    collector = GrammarCollector(GrammarBuilder(NO_RULES, content.word_rule, num_threads))
    num_bytes = 0
    for piece_size in content.collect(collector):
        num_bytes += piece_size
        if num_bytes >= _TEXT_OF_GRAMMAR:
            yield collector.take()
            num_bytes = 0
    yield collector.take()
