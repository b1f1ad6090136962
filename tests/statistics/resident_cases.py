"""Statistics of text that stays on a device, compared with the CPU. As a program, runs all cases on the host.

Usage: resident_cases.py LIBRARY, where LIBRARY was made by native_builds.kernel_library.
"""

from __future__ import annotations

import random
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
from device_cases import Case, cases
from plain_grammars import plain_grammar_of

from gompfs._native import statistics as _statistics
from gompfs._native.statistics import PostingsTask
from gompfs._native.text import WordRule
from gompfs.archive import Archive
from gompfs.gpu.device.arrays import ArrayDevice
from gompfs.statistics.gpu.resident_text import ResidentText
from gompfs.statistics.paths import files_in_order
from gompfs.statistics.postings import postings_report
from gompfs.statistics.query import StatsQuery
from gompfs.statistics.report import Report
from gompfs.statistics.resident_answers import (
    resident_phrase,
    resident_postings,
    resident_tfidf_of_file,
    resident_word_counts,
)
from gompfs.statistics.traversal import PhaseTimes
from gompfs.statistics.word_counts import SortOrder, word_count_report
from gompfs.text.grammar import CountedWords

ROOM = 64 << 20
_PHRASES = ([b"a"], [b"1"], [b"0", b"0"], [b"a", b"b"], [b"1", b"0", b"1"], [b"w0"] * 3, [b"0"] * 5, [b"nowhere", b"a"])
_FEW = 4  # files of a case that are asked for one by one


def check_resident(
    device: ArrayDevice, case: Case, room: int = ROOM, repeats: int = 2, others: Sequence[ArrayDevice] = ()
) -> ResidentText:
    """Checks each answer of all files together and of some alone. The second time, it uses what has stayed.

    The text is divided among `device` and `others`.
    """
    name, grammars, paths = case
    expected = [(question, ask_cpu(case, question)) for question in _questions(case)]
    archive = cast("Archive", SimpleNamespace(path_of=paths.get))
    text = ResidentText(archive, [device, *others], grammars, files_in_order(paths), room, PhaseTimes())
    for _ in range(repeats):
        for question, lines in expected:
            assert ask_device(text, question) == lines, (name, question)
    return text


Question = tuple[object, StatsQuery]


LARGE = 2
"""The inode number of a large file of many_files."""


def many_files() -> Case:
    """Returns thousands of files with the same words, equally often in many of them; and a file with many words."""
    rng = random.Random(5)
    files = []
    for ino in range(1, 6001):
        words = [b"everywhere"] * (ino % 4) + [b"both of"] * (ino % 3 != 0) + [b"%d" % rng.randrange(400)]
        rng.shuffle(words)
        files.append((ino, b" ".join(words)))
    others = [b"%d" % (rng.randrange(30_000) + 1000) for _ in range(50_000)]
    files[LARGE - 1] = LARGE, b" ".join([*others, *others[:9000]])
    paths = {ino: b"%04d/file" % (ino * 37 % 6007) for ino, _ in files}
    return "many files", [plain_grammar_of(part) for part in (files[:2000], files[2000:3000], files[3000:])], paths


def questions_of_many_files() -> list[Question]:
    """Returns questions whose answers have many lines, or come in several pieces."""
    found: list[Question] = []
    for top in (0, 1, 3000):
        found += [("phrase", StatsQuery(words=(b"everywhere",), top=top))]
        found += [("phrase", StatsQuery(words=(b"both", b"of"), top=top))]
        for ino in (1, LARGE):
            query = StatsQuery(ino, top=top)
            found += [(what, query) for what in (*SortOrder, *PostingsTask)]
            found += [("phrase", StatsQuery(ino, words=(b"everywhere",)))]
    return found


def _questions(case: Case) -> list[Question]:
    _, _, paths = case
    files = [None, *sorted(paths)[:: max(len(paths) // _FEW, 1)]]
    found: list[Question] = []
    for ino in files:
        query = StatsQuery(ino)
        found += [(what, query) for what in (*SortOrder, PostingsTask.TERM_VECTOR, PostingsTask.INVERTED_INDEX)]
        found += [(PostingsTask.TFIDF, query), (PostingsTask.TERM_VECTOR, StatsQuery(ino, top=2))]
        found += [(SortOrder.BY_COUNT, StatsQuery(ino, top=3))]
        lengths = (1, 3, 5) if ino is None else (3,)
        for length in lengths:
            asked = StatsQuery(ino, ngram_length=length)
            found += [(PostingsTask.SEQUENCE_COUNT, asked), (PostingsTask.RANKED_INVERTED_INDEX, asked)]
        found += [("phrase", StatsQuery(ino, words=tuple(words))) for words in _PHRASES]
    return found


def ask_device(text: ResidentText, question: Question) -> bytes:
    """Returns the answer of a device."""
    report = report_of_device(text, question)
    found = report.read()
    assert report.size in (None, len(found)), question
    return found


def report_of_device(text: ResidentText, question: Question) -> Report:
    """Returns the answer of a device, which is not read yet."""
    what, query = question
    report: Report
    if isinstance(what, SortOrder):
        report = resident_word_counts(what, text, query)
    elif what is PostingsTask.TFIDF and query.ino is not None:
        report = resident_tfidf_of_file(text, query)
    elif isinstance(what, PostingsTask):
        length = query.ngram_length if what in _OF_NGRAMS else 1
        top = query.top or (10 if what is PostingsTask.TFIDF else 0)
        report = resident_postings(what, text, query, length, top)
    else:
        report = resident_phrase(text, query)
    return report


_OF_NGRAMS = (PostingsTask.SEQUENCE_COUNT, PostingsTask.RANKED_INVERTED_INDEX)


def ask_cpu(case: Case, question: Question) -> bytes:
    """Returns the answer of the CPU."""
    _, grammars, paths = case
    what, query = question
    of_query = paths if query.ino is None else {query.ino: paths[query.ino]}
    if isinstance(what, SortOrder):
        counted = [CountedWords(grammar, grammar.word_counts(of_query)) for grammar in grammars]
        return word_count_report(counted, what, top=query.top).read()
    if what is PostingsTask.TFIDF:
        lines = postings_report(what, grammars, paths, top=query.top or 10).read().splitlines(keepends=True)
        return b"".join(line for line in lines if query.ino is None or line.startswith(paths[query.ino] + b"\t"))
    if isinstance(what, PostingsTask):
        return postings_report(what, grammars, of_query, ngram_length=query.ngram_length, top=query.top).read()
    ngrams = _statistics.NgramSet(len(query.words), WordRule.WHITESPACE, b"")
    ngrams.add_words(list(query.words))
    files = files_in_order(of_query)
    overlap = _statistics.Overlap(ngrams, array("Q", (ino for ino, _ in files)), "/tmp", 1 << 20, 1 << 30)
    for grammar in grammars:
        overlap.search_grammar(grammar.native, 1)
    ((_, _, found),) = overlap.finish(query.top or len(files) or 1)
    return b"".join(b"%s\t%d\n" % (files[file][1], count) for file, _, count in found)


if __name__ == "__main__":
    from host_device import HostDevice

    np.seterr(all="raise", over="ignore")
    for case in cases():
        check_resident(HostDevice(Path(sys.argv[1])), case, repeats=1)
        sys.stdout.write(f"{case[0]}\n")
