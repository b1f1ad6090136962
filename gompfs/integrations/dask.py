"""Statistics and search over many archives as Dask collections, on one machine or on a cluster.

    stats         a statistic of all archives, as a bag of the values that `ArchiveFiles.stats` yields
    stats_output  the same as text, as `gompfs stats` prints it
    grep          a bag of matches, with a partition for each archive
    grep_outputs  the text that `gompfs grep` prints for each archive

Each archive is one task, which opens the archive itself: workers share no state. The lines of a statistic are sorted
by their first field, so the lines of several archives merge like sorted runs. The tasks that merge form a tree; no task
holds more than a few texts, and each is dropped when it is merged.

Archives are given as paths, or as URLs of any store that fsspec knows. The workers open paths, so these must lead to
the same files there. With several archives, the paths of files begin with what the caller calls their archive.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from typing import Any, NamedTuple

from dask import delayed
from dask.bag import Bag, from_delayed
from dask.base import tokenize
from dask.delayed import Delayed

from gompfs._native.statistics import LineMerge, merge_lines, sort_lines, sort_lines_by_count
from gompfs.archive import Archive
from gompfs.engine import select_engine
from gompfs.errors import GompfsError, OptionError, StatsUnavailableError, display_path
from gompfs.files import ArchiveFiles
from gompfs.format import LocalFile
from gompfs.model import ROOT_INO, WORD_RULES
from gompfs.remote.remote_file import open_url
from gompfs.search.matches import LineMatch
from gompfs.search.query import SearchQuery
from gompfs.search.search import ArchiveSearch, SearchTotals
from gompfs.statistics.paths import escape_path
from gompfs.statistics.query import StatsQuery
from gompfs.statistics.records import records
from gompfs.statistics.report import FirstLines, FixedReport
from gompfs.statistics.tasks import TASKS, Task, compute, task_of
from gompfs.threads import threads_limited_to

AnyArchive = str | os.PathLike[str]

MERGED = tuple(task.name for task in TASKS.values() if task.merge is not None)
"""The statistics that can be computed for several archives."""
_TEXTS_OF_MERGE = 8
_ORDERED_BY_COUNT = ("wordcount", "sequence_count")
_LIMITED_LINES = ("sort", "inverted_index")  # `top` limits the lines, whose order is that of the merged lines


class StatsOutput(NamedTuple):
    """What a statistic of several archives prints."""

    text: bytes
    warnings: list[str]
    """Of archives that were opened although a part of them is damaged."""


class SearchOutput(NamedTuple):
    """What a search prints for one archive."""

    text: bytes
    warnings: list[str]
    failures: list[str]
    """The messages of files that could not be read."""
    totals: SearchTotals


class _Source(NamedTuple):
    """An archive, and how a task reads it."""

    name: str
    """As the caller calls it. Messages and printed paths use this."""
    url: str
    prefix: bytes
    """What the paths of its files begin with."""
    options: Mapping[str, Any]
    """Those of the store."""
    engine: str
    num_threads: int

    @contextmanager
    def opened(self) -> Iterator[Archive]:
        """Opens the archive. Every error of the body becomes a GompfsError that names the archive."""
        try:
            with threads_limited_to(self.num_threads), self._open() as archive:
                yield archive
                return
        except MemoryError:
            raise
        except GompfsError as error:
            error.archive = error.archive or display_path(self.name)
            raise
        except Exception as error:  # stores raise errors of many types, some of which cannot be pickled
            reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        raise GompfsError(reason, archive=self.name)

    def _open(self) -> Archive:
        file = open_url(self.url, self.options) if _is_url(self.url) else LocalFile.open(self.url)
        return Archive(self.name, file=file, engine=select_engine(self.engine))


class _Lines(NamedTuple):
    """The lines of a statistic of some archives, sorted by their first field."""

    text: bytes
    word_rule: str
    archive: str
    """One of these archives."""
    warnings: list[str]


def stats_output(
    archives: Sequence[AnyArchive],
    name: str = "wordcount",
    *,
    top: int = 0,
    ngram_length: int = 0,
    engine: str = "cpu",
    num_threads: int = 1,
    storage_options: Mapping[str, Any] | None = None,
) -> Delayed:
    """Returns the text of a statistic of all archives together, as a Delayed of StatsOutput.

    The text is that of one archive with the same files, each archive in a directory of its name. `name` is one of
    MERGED, `word/WORD` or `phrase/W1 W2 W3`; `top` and `ngram_length` are those of `ArchiveFiles.stats`. A task uses
    `engine` and `num_threads` (0: one per core), which is 1 because Dask runs a task on each thread of a worker.
    `storage_options` are for the stores of URLs.

    Raises OptionError. The computation raises a GompfsError that names the archive, also for archives that split text
    into words by different rules.
    """
    task = _merged_task(name)
    if top < 0:
        raise OptionError(f"top must not be negative, but is {top}")
    length = ngram_length or task.ngram_length
    if not 1 <= length <= task.max_ngram_length:
        raise OptionError(f"n-grams have 1 to {task.max_ngram_length} words, not {length}")
    sources = _sources(archives, engine, num_threads, storage_options)
    count = partial(_count, name, StatsQuery(top=top, ngram_length=length))
    counted = _tasks(f"gompfs-stats-{task.name}", count, sources)
    merged = _merge_in_tree(counted, partial(_merge, name, top))
    output: Delayed = delayed(_finish, pure=True)(merged, name, top)
    return output


def stats(archives: Sequence[AnyArchive], name: str = "wordcount", **options: Any) -> Bag:
    """Returns a bag of one partition with the values of a statistic, as `ArchiveFiles.stats` yields them.

    The arguments are those of stats_output.
    """
    return from_delayed([delayed(_values, pure=True)(stats_output(archives, name, **options), name)])


def grep(
    archives: Sequence[AnyArchive],
    *patterns: str | bytes,
    engine: str = "cpu",
    num_threads: int = 1,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Bag:
    """Returns a bag of pairs (archive, LineMatch), with a partition for each archive.

    `options` are those of `ArchiveFiles.grep`, the others those of stats_output.
    """
    sources = _sources(archives, engine, num_threads, storage_options)
    return from_delayed(_tasks("gompfs-matches", partial(_matches, patterns, options), sources))


def grep_outputs(
    archives: Sequence[AnyArchive],
    query: SearchQuery,
    *,
    engine: str = "cpu",
    num_threads: int = 1,
    storage_options: Mapping[str, Any] | None = None,
) -> list[Delayed]:
    """Returns a Delayed of SearchOutput for each archive. Raises OptionError, also for patterns that cannot be used."""
    query.matcher()
    sources = _sources(archives, engine, num_threads, storage_options)
    return _tasks("gompfs-grep", partial(_search, query), sources)


def _merged_task(name: str) -> Task:
    task = task_of(name)
    if task.merge is None or (name != task.name and not task.argument):
        raise OptionError(f"{name} cannot be computed for several archives; use one of {', '.join(MERGED)}")
    return task


def _is_url(archive: str) -> bool:
    return "://" in archive or "::" in archive


def _sources(
    archives: Sequence[AnyArchive], engine: str, num_threads: int, storage_options: Mapping[str, Any] | None
) -> list[_Source]:
    names = [os.fspath(archive) for archive in archives]
    if not names:
        raise OptionError("no archive given")
    sources, seen = [], set()
    for name in names:
        url = name if _is_url(name) else os.path.abspath(name)
        if url in seen:
            raise OptionError(f"{display_path(name)} is given twice")
        seen.add(url)
        prefix = os.fsencode(name).rstrip(b"/") + b"/" if len(names) > 1 else b""
        sources.append(_Source(name, url, prefix, storage_options or {}, engine, num_threads))
    return sources


def _tasks(name: str, function: Callable[[_Source], Any], sources: Sequence[_Source]) -> list[Delayed]:
    """Returns a task for each archive. Its key has the archive's name, for messages of Dask, such as of lost workers.

    The keys differ between calls, because an archive may have been replaced.
    """
    job = f"{name}-{os.urandom(8).hex()}"
    return [delayed(function)(source, dask_key_name=(job, source.name)) for source in sources]


def _merge_in_tree(texts: list[Delayed], merge: Callable[[list[_Lines]], _Lines]) -> Delayed:
    while len(texts) > 1:
        groups = [texts[first : first + _TEXTS_OF_MERGE] for first in range(0, len(texts), _TEXTS_OF_MERGE)]
        texts = [
            delayed(merge)(group, dask_key_name=f"gompfs-merge-{tokenize([text.key for text in group])}")
            for group in groups
        ]
    return texts[0]


def _count(name: str, query: StatsQuery, source: _Source) -> _Lines:
    """Returns the statistic of one archive."""
    task = task_of(name)
    with source.opened() as archive:
        rule = archive.meta.get("words", WORD_RULES[0])
        if task.argument:
            text = _as_one_line(compute(os.fsencode(name), archive, query).read(), escape_path(source.prefix))
        elif task.name == "wordcount":
            text = compute(b"sort", archive).read()
        elif task.name == "sequence_count":
            text = sort_lines(compute(os.fsencode(name), archive, StatsQuery(ngram_length=query.ngram_length)).read())
        else:
            query = StatsQuery(top=query.top, ngram_length=query.ngram_length, prefix=source.prefix)
            text = compute(os.fsencode(name), archive, query).read()
        return _Lines(text, rule, source.name, archive.warnings)


def _merge(name: str, top: int, parts: Sequence[_Lines]) -> _Lines:
    first = parts[0]
    for part in parts:
        if part.word_rule != first.word_rule:
            raise StatsUnavailableError(
                f"words are split by the rule {part.word_rule}, but those of {first.archive} by {first.word_rule}",
                archive=part.archive,
            )
    how = task_of(name).merge
    assert how is not None
    try:
        text = merge_lines([part.text for part in parts], how, top if how is LineMerge.JOIN_RANKED_PATHS else 0)
    except ValueError as error:
        archives = f"{first.archive} to {parts[-1].archive}"
        raise StatsUnavailableError(f"the statistics of {archives} cannot be merged: {error}") from None
    return _Lines(text, first.word_rule, first.archive, [warning for part in parts for warning in part.warnings])


def _finish(lines: _Lines, name: str, top: int) -> StatsOutput:
    return StatsOutput(_in_final_order(lines.text, name, top), lines.warnings)


def _in_final_order(text: bytes, name: str, top: int) -> bytes:
    task = task_of(name)
    if task.argument:
        return _as_lines(text)
    if task.name in _ORDERED_BY_COUNT:
        return sort_lines_by_count(text, top)
    if task.name in _LIMITED_LINES and top:
        return FirstLines(FixedReport(text), top).read()
    return text


def _as_one_line(text: bytes, prefix: bytes) -> bytes:
    """Returns lines `path<TAB>count` as one line with a field `count path` for each, as in a ranked inverted index."""
    fields = (line.rpartition(b"\t") for line in text.split(b"\n")[:-1])
    ranked = b"".join(b"\t%s %s%s" % (count, prefix, path) for path, _, count in fields)
    return ranked and ranked + b"\n"


def _as_lines(line: bytes) -> bytes:
    """Returns what _as_one_line had before."""
    fields = (field.partition(b" ") for field in line.removesuffix(b"\n").split(b"\t")[1:])
    return b"".join(b"%s\t%s\n" % (path, count) for count, _, path in fields)


def _values(output: StatsOutput, name: str) -> list[Any]:
    return list(records(task_of(name).columns, BytesIO(output.text)))


def _matches(
    patterns: Sequence[str | bytes], options: Mapping[str, Any], source: _Source
) -> list[tuple[str, LineMatch]]:
    with source.opened() as archive:
        return [(source.name, match) for match in ArchiveFiles(archive).grep(*patterns, **options)]


def _search(query: SearchQuery, source: _Source) -> SearchOutput:
    with source.opened() as archive:
        search = ArchiveSearch(archive, query, [(source.prefix.rstrip(b"/"), ROOT_INO)])
        text = b"".join(search)
        return SearchOutput(text, archive.warnings, [str(failure) for failure in search.failures], search.totals)
