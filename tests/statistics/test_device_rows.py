"""Rows of an answer that stay on a device until they are read. The kernels run on the host here."""

from __future__ import annotations

import bisect
import itertools
import random
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from device_cases import Case, texts
from host_device import HostDevice
from resident_cases import ROOM, Question, ask_cpu

from gompfs._native.statistics import PostingsTask
from gompfs.archive import Archive
from gompfs.errors import StatsUnavailableError
from gompfs.statistics.gpu import device_rows
from gompfs.statistics.gpu.device_counter import DeviceCounter
from gompfs.statistics.gpu.device_rows import DeviceRows, Totals, add_totals
from gompfs.statistics.gpu.local_tables import PairCounts
from gompfs.statistics.gpu.resident_text import ResidentText
from gompfs.statistics.paths import files_in_order
from gompfs.statistics.query import EVERYTHING, StatsQuery
from gompfs.statistics.report import Report
from gompfs.statistics.resident_answers import resident_postings, resident_word_counts
from gompfs.statistics.traversal import PhaseTimes
from gompfs.statistics.word_counts import SortOrder

QUESTIONS: list[Question] = [(task, EVERYTHING) for task in PostingsTask]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_rows, "_ROWS_OF_A_PIECE", 37)
    monkeypatch.setattr(device_rows, "_ROWS_OF_THE_FIRST_PIECE", 5)


def text_of(case: Case, *devices: HostDevice, room: int = ROOM) -> ResidentText:
    _, grammars, paths = case
    archive = cast("Archive", SimpleNamespace(path_of=paths.get))
    return ResidentText(archive, devices, grammars, files_in_order(paths), room, PhaseTimes())


def ask(text: ResidentText, question: Question) -> Report:
    task, query = question
    assert isinstance(task, PostingsTask)
    is_of_ngrams = task in (PostingsTask.SEQUENCE_COUNT, PostingsTask.RANKED_INVERTED_INDEX)
    top = 10 if task is PostingsTask.TFIDF else 0
    return resident_postings(task, text, query, query.ngram_length if is_of_ngrams else 1, top)


@pytest.mark.parametrize("top", [0, 3, 1 << 40])
@pytest.mark.parametrize("order", SortOrder)
def test_the_size_of_word_counts_is_known(device: HostDevice, order: SortOrder, top: int) -> None:
    """So a mount shows their beginning before the rest is made."""
    case = texts(1)
    expected = ask_cpu(case, (order, StatsQuery(top=top)))
    report = resident_word_counts(order, text_of(case, device), StatsQuery(top=top))
    assert report.size == len(expected)
    assert report.read() == expected


def test_sizes_of_counts(device: HostDevice) -> None:
    counts = [1, 9, 10, 11, 99, 100, 10**18 - 1, 10**18, 10**19 - 1, 10**19, 2**64 - 1]
    ranks = np.arange(len(counts), dtype=np.uint64)[::-1].copy()
    totals = Totals((ranks,), np.array(counts, np.uint64))
    sizes = np.arange(5, 5 + len(counts), dtype=np.uint32)
    lines = [b"w" * int(sizes[rank]) + b"\t%d\n" % count for rank, count in zip(ranks, counts, strict=True)]
    assert totals.size_of_lines(device, sizes) == len(b"".join(lines))


def test_answers_go_to_files_when_the_memory_is_given_back(device: HostDevice) -> None:
    """While a text is read, and after that: its next lines are the same."""
    case = texts(1)
    expected = [ask_cpu(case, question) for question in QUESTIONS]
    text = text_of(case, device)
    reports = [ask(text, question) for question in QUESTIONS]
    readers = [iter(report) for report in reports]
    begun = [list(itertools.islice(reader, count)) for count, reader in enumerate(readers)]
    assert sum(rows.num_bytes for rows in text.shares[0]._held) > 0
    held = list(text.shares[0]._held)
    text.release()
    assert device.reserved == 0
    assert [rows.num_bytes for rows in held] == [0] * len(QUESTIONS)
    read = [b"".join([*pieces, *reader]) for pieces, reader in zip(begun, readers, strict=True)]
    assert read == expected
    assert [report.read() for report in reports] == expected
    assert all(len(list(report)) > 3 and all(report) for report in reports)


def test_answers_that_do_not_fit_on_the_disk(device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(texts(1), device)
    report = ask(text, (PostingsTask.INVERTED_INDEX, EVERYTHING))
    monkeypatch.setattr(device_rows, "free_space", lambda _: 100)
    text.release()
    with pytest.raises(StatsUnavailableError, match=r"had to be freed.* more temporary space than is allowed"):
        report.read()


def test_answers_that_cannot_be_copied_for_lack_of_memory(device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(_array: object) -> None:
        raise MemoryError

    text = text_of(texts(1), device)
    report = ask(text, (PostingsTask.INVERTED_INDEX, EVERYTHING))
    with monkeypatch.context() as patched:
        patched.setattr(device, "download", download)
        text.release()
    assert device.reserved == 0
    with pytest.raises(StatsUnavailableError, match=r"had to be freed.* out of memory"):
        report.read()


@pytest.mark.parametrize("settles", [False, True])
def test_ranges_of_files(library: Path, monkeypatch: pytest.MonkeyPatch, settles: bool) -> None:
    """If one range of files does not fit, the rows of several are put together; some of them may be in files."""
    case = texts(0)
    expected = [ask_cpu(case, question) for question in QUESTIONS]
    devices = [HostDevice(library, memory=100_000) for _ in range(2)]
    room = max(share.forest.bytes_of_words for share in text_of(texts(0), *devices).shares)
    text = text_of(case, *devices, room=room)
    if settles:
        monkeypatch.setattr(DeviceRows, "num_bytes", property(lambda rows: 90_000 if rows._device else 0))
    for question, lines in zip(QUESTIONS, expected, strict=True):
        report = ask(text, question)
        held = [rows for share in text.shares for rows in share._held]
        if question[0] is not PostingsTask.SEQUENCE_COUNT:  # its counts are added up
            assert len(held) > 2
            assert not settles or any(rows._device is None for rows in held)
        assert report.read() == lines, question
        del report, held
    assert sum(text.times.directions.values()) > 4 * len(QUESTIONS)


@pytest.mark.parametrize("error", [MemoryError, StatsUnavailableError])
def test_counts_that_do_not_fit_on_the_device(
    device: HostDevice, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """The host adds them up."""
    question = PostingsTask.SEQUENCE_COUNT, EVERYTHING
    expected = ask_cpu(texts(1), question)

    def fails(*_: object) -> Totals:
        raise error("it is full")

    monkeypatch.setattr(DeviceCounter, "totals", fails)
    text = text_of(texts(1), device)
    assert ask(text, question).read() == expected
    assert not text.shares[0]._held


def test_answers_that_are_read_slowly_leave_memory_for_others(device: HostDevice) -> None:
    """If they take more than a quarter of it, the next question moves them to files."""
    text = text_of(texts(1), device)
    reports = [ask(text, (PostingsTask.RANKED_INVERTED_INDEX, EVERYTHING)) for _ in range(2)]
    (first, second) = text.shares[0]._held
    device.memory = 3 * first.num_bytes - (text.shares[0].forest.words.room or 0)
    ask(text, (PostingsTask.TERM_VECTOR, StatsQuery(1)))
    assert first.num_bytes == second.num_bytes == 0
    expected = ask_cpu(texts(1), (PostingsTask.RANKED_INVERTED_INDEX, EVERYTHING))
    assert [report.read() for report in reports] == [expected] * 2


def test_rows_of_an_answer_are_dropped_with_it(device: HostDevice) -> None:
    text = text_of(texts(1), device)
    question = PostingsTask.TERM_VECTOR, EVERYTHING
    ask(text, question)  # what it needs stays
    memory = text.shares[0].memory()
    report = ask(text, question)
    assert text.shares[0].memory() < memory
    del report
    assert text.shares[0].memory() == memory


def _random_keys(rng: random.Random, count: int) -> list[int]:
    return sorted(
        {rng.choice([rng.getrandbits(70), rng.getrandbits(66), rng.getrandbits(3) << 64]) for _ in range(count)}
    )


@pytest.mark.parametrize("num_halves", [0, 1, 2])
@pytest.mark.parametrize("settles", [False, True])
def test_search_for_keys(device: HostDevice, num_halves: int, settles: bool) -> None:
    """The oracle is `bisect` on Python's integers."""
    rng = random.Random(num_halves)
    for count in (0, 1, 2, 300):
        mask = (1 << (64 * num_halves or 40)) - 1
        keys = sorted({key & mask for key in _random_keys(rng, count)})
        firsts = sorted(rng.randrange(len(keys)) for _ in range(2 * len(keys)))
        numbers = [keys[first] for first in firsts] if num_halves == 0 else firsts
        pairs = np.array([number << 4 | row % 16 for row, number in enumerate(numbers)], np.uint64)
        pairs.sort()
        halves = [np.array([key >> shift & 2**64 - 1 for key in keys], np.uint64) for shift in (64, 0)][
            2 - num_halves :
        ]
        rows = DeviceRows(device, PairCounts(pairs, np.ones(len(pairs), np.uint64), 4), halves if num_halves else ())
        if settles:
            rows.settle()
        of_rows = [keys[first] for first in firsts]
        asked = np.arange(len(firsts))
        assert [int(high) << 64 | int(low) for high, low in rows.keys_of(asked)] == of_rows
        wanted = sorted([*keys, *((key + 1) & mask for key in keys), 0])
        as_array = np.array([[key >> 64, key & 2**64 - 1] for key in wanted], np.uint64)
        assert rows.starts_of(as_array).tolist() == [bisect.bisect_left(of_rows, key) for key in wanted]


def test_totals_of_several_ranges(device: HostDevice) -> None:
    """The oracle is a dictionary."""
    rng = random.Random(3)
    universe = _random_keys(rng, 400)
    expected: dict[int, int] = {}
    ranges = []
    for _ in range(3):
        keys = sorted(rng.sample(universe, 250))
        counts = [rng.choice([1, 2, 2**40 + 1]) for _ in keys]
        for key, count in zip(keys, counts, strict=True):
            expected[key] = expected.get(key, 0) + count
        halves = tuple(np.array([key >> shift & 2**64 - 1 for key in keys], np.uint64) for shift in (64, 0))
        ranges.append(Totals(halves, np.array(counts, np.uint64)))
    pairs, counts_of_rows, _, (highs, lows) = (
        add_totals(device, ranges).by_count(np).rows(device).read(0, len(expected))
    )
    assert pairs.tolist() == list(range(len(expected)))
    found = [(int(high) << 64 | int(low), int(n)) for high, low, n in zip(highs, lows, counts_of_rows, strict=True)]
    assert found == sorted(expected.items(), key=lambda item: (-item[1], item[0]))
