"""The words of text that is not stored in parts, cut by the CPU, also with the engine `gpu`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gompfs._native.text import PlainText
from gompfs.statistics.content import ContentText
from gompfs.text.grammar import Grammar
from gompfs.text.word_characters import WORD_RULE_KINDS, word_characters
from gompfs.threads import default_threads

_TEXT_OF_GRAMMAR = 512 << 20


def content_word_counts(content: ContentText, num_threads: int = 0) -> list[tuple[Grammar, NDArray[np.uint64]]]:
    """Returns all words in grammars that hold nothing else, each with the counts of its words (uint64).

    Memory holds the dictionaries of all grammars, and one whole grammar. Raises the same errors as `content_grammars`.
    """
    num_threads = num_threads or default_threads()
    counted = []
    for grammar in content_grammars(content, num_threads):
        counted.append((grammar, grammar.word_counts(num_threads=num_threads)))
        grammar.drop_parts()
    return counted


def content_grammars(content: ContentText, num_threads: int = 0) -> Iterator[Grammar]:
    """Yields all words in order, in grammars without rules: one for each 512 MiB of text, approximately.

    A file may continue in the next grammar. The stream is decoded once, in batches. Raises CorruptBlockError if a file
    lies in a damaged block.
    """
    if not content.layout.inos.size:
        return
    rule = content.word_rule
    text = PlainText(WORD_RULE_KINDS[rule], word_characters(rule), num_threads or default_threads())
    num_bytes = 0
    for ino, pieces in content.files():
        text.begin_file(ino)
        for piece in pieces:
            text.add_bytes(piece)
            num_bytes += len(piece)
            if num_bytes >= _TEXT_OF_GRAMMAR:
                yield Grammar(text.take())
                num_bytes = 0
        text.end_file()
    yield Grammar(text.take())
