"""Compares grammars whose rules come from the kernels on the host with those of the C++ core.

Usage: check_grammar_kernels.py LIBRARY NUM_EXAMPLES, where LIBRARY is built from host_kernels.cpp. Since it has
sanitizers, this is a process of its own. PYTHONPATH must contain the folders conformance and grammar.
"""

from __future__ import annotations

import sys
from pathlib import Path

from host_device import HostDevice
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from part_batches import Texts, batches, section_of_core, sections_of_batch

from gompfs.gpu.repair import build_rules, join_parts, split_parts
from gompfs.grammar import GrammarBuilder, PartsInRules, PartsInText
from gompfs.model import WORD_RULES

few_words = st.lists(st.sampled_from([b"a ", b"b ", b"c ", b"d e ", b"f"]), max_size=80).map(b"".join)
runs = st.lists(st.tuples(st.sampled_from([b"a ", b"b ", b"c d "]), st.integers(1, 40))).map(
    lambda pairs: b"".join(word * times for word, times in pairs)
)
pieces = [b"a", b"b-", b" ", b"\t\n", "é€".encode(), b"\xe2\x82", b"\xff", b"\0", b"long" * 17_000]
any_text = st.lists(st.sampled_from(pieces), max_size=12).map(b"".join)
parts = st.lists(st.one_of(few_words, runs), min_size=1, max_size=4)


def main(library: Path, num_examples: int) -> None:
    """Checks random words, the batches of part_batches, and random batches."""
    random = settings(
        max_examples=num_examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    device = HostDevice(library)

    def compare(batch: list[Texts], halved: bool) -> None:
        def build(texts: PartsInText) -> PartsInRules:
            if not halved or texts.part_files.size < 3:
                return build_rules(device, texts)
            return join_parts(*(build_rules(device, half) for half in split_parts(texts)))

        assert sections_of_batch(batch, build) == [section_of_core(texts) for texts in batch]

    @random
    @given(batch=st.lists(parts, min_size=1, max_size=5), halved=st.booleans())
    def compare_any(batch: list[Texts], halved: bool) -> None:
        compare(batch, halved)

    @random
    @given(texts=st.lists(any_text, max_size=6), words=st.sampled_from(WORD_RULES))
    def compare_words(texts: list[bytes], words: str) -> None:
        sections = []
        for build in (None, lambda parts: build_rules(device, parts)):
            builder = GrammarBuilder(words=words, build_rules=build)
            builder.add_files(list(enumerate(texts, 1)))
            sections.append(b"".join(builder.finish()))
        assert sections[0] == sections[1]

    compare_words()
    for number, batch in enumerate(batches()):
        compare(batch, halved=number % 2 == 0)
    compare_any()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
