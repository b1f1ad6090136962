"""The table of tasks: all statistics that gompfs computes. A new statistic is one row of TASKS.

The command `gompfs stats` with its help and its checks of options, `files.stats`, the virtual files of a mount, the
JSON records, and the table in the documentation come from this table.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from gompfs._native.statistics import LineMerge, PostingsTask
from gompfs.errors import EntryTypeError, GompfsError, OptionError, display_path
from gompfs.statistics.answering import CPU, GPU, Answering
from gompfs.statistics.info import MountFacts, binary_files, info
from gompfs.statistics.overlap import overlap_of_documents, phrase
from gompfs.statistics.postings import from_postings, tfidf
from gompfs.statistics.query import EVERYTHING, MAX_NGRAM_LENGTH, MAX_SEARCHED_LENGTH, StatsQuery
from gompfs.statistics.ranked_search import ranked_search
from gompfs.statistics.records import Column, Columns, ColumnType, Items
from gompfs.statistics.report import Report
from gompfs.statistics.sha256sums import sha256sums
from gompfs.statistics.source import StatsSource
from gompfs.statistics.word_counts import SortOrder, word_counts

if TYPE_CHECKING:
    from gompfs.archive import Archive
    from gompfs.statistics.gpu.resident_text import ResidentText
    from gompfs.text.grammar import Grammar

FILE, TOP, N, FIELD = "--file", "--top", "--n", "--field"
"""The options of `gompfs stats` that a task can take."""


class Task(NamedTuple):
    """One row: a statistic."""

    name: str
    help: str
    """The meaning of a line of it."""
    columns: Columns
    """The fields of a line. Empty for lines of facts (see records)."""
    order: str
    """The order of the lines, for the documentation."""
    options: tuple[str, ...]
    compute: Callable[[StatsSource, StatsQuery], Report]
    argument: str = ""
    """The argument of a search: the name of the statistic is `name/argument`. Empty for all other statistics."""
    is_of_file: bool = False
    """Whether a mount has it in files/PATH too, for each file."""
    needs_all_files: bool = False
    """Whether it needs the words of all files even for one file, so that a mount does not list it in files/PATH."""
    is_listed: bool = False
    """Whether a mount lists it in `stats`. Other files there can be opened, but `ls -l` must not compute them."""
    in_mount: bool = True
    takes_documents: bool = False
    """Whether the user names documents to compare with the archive."""
    ngram_length: int = StatsQuery.ngram_length
    """The default length of its n-grams."""
    max_ngram_length: int = MAX_NGRAM_LENGTH
    stays: bool = False
    """Whether it can be computed of words that stay on a device: it is in resident_answers.ANSWERS."""
    merge: LineMerge | None = None
    """How lines with the same key are merged when several archives are; None: they cannot be merged."""

    @property
    def form(self) -> str:
        """The name as the user writes it, for example `word/WORD`."""
        documents = " DOCUMENT..." if self.takes_documents else ""
        return f"{self.name}/{self.argument}" if self.argument else self.name + documents

    @property
    def top_limits_lines(self) -> bool:
        """Whether --top N keeps the first N lines, rather than N of the numbered items of each line."""
        last = self.columns[-1] if self.columns else None
        return not isinstance(last, Items) or last.weight is None


_WORD, _NGRAM = Column("word", ColumnType.WORD), Column("words", ColumnType.NGRAM)
_PATH, _COUNT = Column("file", ColumnType.PATH), Column("count", ColumnType.COUNT)
_SCORE = Column("score", ColumnType.SCORE)

_ROWS = (
    Task(
        "wordcount",
        "each word and its count, the most frequent word first",
        (_WORD, _COUNT),
        "by count, then word",
        (FILE, TOP),
        partial(word_counts, SortOrder.BY_COUNT),
        is_of_file=True,
        is_listed=True,
        stays=True,
        merge=LineMerge.ADD_COUNTS,
    ),
    Task(
        "sort",
        "each word and its count, sorted by word",
        (_WORD, _COUNT),
        "by word",
        (FILE, TOP),
        partial(word_counts, SortOrder.BY_WORD),
        is_of_file=True,
        is_listed=True,
        stays=True,
        merge=LineMerge.ADD_COUNTS,
    ),
    Task(
        "inverted_index",
        "each word and the files that contain it",
        (_WORD, Items("files", _PATH)),
        "by word; paths by path",
        (FILE, TOP),
        partial(from_postings, PostingsTask.INVERTED_INDEX),
        stays=True,
        merge=LineMerge.JOIN_PATHS,
    ),
    Task(
        "term_vector",
        "each file and its words with counts",
        (_PATH, Items("words", _WORD, _COUNT)),
        "by path; words by count, then word",
        (FILE, TOP),
        partial(from_postings, PostingsTask.TERM_VECTOR),
        is_of_file=True,
        stays=True,
        merge=LineMerge.JOIN_FILES,
    ),
    Task(
        "sequence_count",
        "each n-gram of three words and its count",
        (_NGRAM, _COUNT),
        "by count, then n-gram",
        (FILE, TOP, N),
        partial(from_postings, PostingsTask.SEQUENCE_COUNT),
        is_of_file=True,
        stays=True,
        merge=LineMerge.ADD_COUNTS,
    ),
    Task(
        "ranked_inverted_index",
        "each n-gram of three words and the files that contain it",
        (_NGRAM, Items("files", _PATH, _COUNT)),
        "by n-gram; paths by count, then path",
        (FILE, TOP, N),
        partial(from_postings, PostingsTask.RANKED_INVERTED_INDEX),
        stays=True,
        merge=LineMerge.JOIN_RANKED_PATHS,
    ),
    Task(
        "tfidf",
        "each file and its most characteristic words with tf-idf scores",
        (_PATH, Items("words", _WORD, _SCORE)),
        "by path; words by score, then word",
        (FILE, TOP),
        tfidf,
        is_of_file=True,
        needs_all_files=True,
        stays=True,
    ),
    Task(
        "word",
        "the files that contain WORD, with counts",
        (_PATH, _COUNT),
        "by count, then path",
        (FILE, TOP),
        phrase,
        argument="WORD",
        stays=True,
        merge=LineMerge.JOIN_RANKED_PATHS,
    ),
    Task(
        "phrase",
        f"the files that contain a phrase of 1 to {MAX_SEARCHED_LENGTH} words, with counts",
        (_PATH, _COUNT),
        "by count, then path",
        (FILE, TOP),
        phrase,
        argument="W1 W2 W3",
        stays=True,
        merge=LineMerge.JOIN_RANKED_PATHS,
    ),
    Task(
        "search",
        "the files that fit some words best by BM25, each with the line that has most of them",
        (_SCORE, _PATH, Column("line_number", ColumnType.COUNT), Column("line", ColumnType.LINE)),
        "by score, then path",
        (TOP,),
        ranked_search,
        argument="W1 W2 W3",
    ),
    Task(
        "overlap",
        "each DOCUMENT, and how many of its n-grams the archive has, and where; not in a mount",
        (
            Column("document", ColumnType.PATH),
            Column("ngrams", ColumnType.COUNT),
            Column("found", ColumnType.COUNT),
            Column("fraction", ColumnType.SCORE),
            _COUNT,
            Items("files", _PATH, Column("ngrams", ColumnType.COUNT)),
        ),
        "as given; paths by n-grams, then count, then path",
        (FILE, TOP, N, FIELD),
        overlap_of_documents,
        in_mount=False,
        takes_documents=True,
        ngram_length=13,
        max_ngram_length=MAX_SEARCHED_LENGTH,
    ),
    Task(
        "binary-files",
        "the binary files, which all other statistics leave out",
        (_PATH,),
        "by path",
        (),
        binary_files,
        is_listed=True,
    ),
    Task(
        "sha256sums",
        "the SHA-256 of each file, binary files too, as sha256sum -c reads it",
        (Column("sha256", ColumnType.SHA256), _PATH),
        "by path",
        (FILE, TOP),
        sha256sums,
    ),
    Task("info", "facts about the archive", (), "", (), info, is_listed=True),
)

TASKS = {task.name: task for task in _ROWS}
"""All statistics by name, in the order of the help."""
NAMES = sorted(task.name for task in _ROWS if task.in_mount and not task.argument)
"""The statistics that need no argument: the names of the virtual files of an archive."""
SEARCHES = sorted(task.name for task in _ROWS if task.argument)
"""The statistics that are searches."""
NAMES_OF_FILE = sorted(task.name for task in _ROWS if task.is_of_file)
"""The statistics that each file has in `files/PATH`."""
LISTED_OF_FILE = sorted(task.name for task in _ROWS if task.is_of_file and not task.needs_all_files)
"""The names of NAMES_OF_FILE that a mount lists there."""
OF_FILE_DIRECTORY = "files"
OF_FILE_FORM = f"{OF_FILE_DIRECTORY}/PATH/NAME"
"""How the user names one of NAMES_OF_FILE of a single file."""


def task_of(name: str, *commands: str) -> Task:
    """Returns the task of a statistic's full name: NAME, word/WORD, phrase/W1 W2 W3 or files/PATH/NAME.

    Raises OptionError if there is none. Its message lists the names that are known, and `commands`.
    """
    first, _, rest = name.partition("/")
    last = rest.rpartition("/")[2]
    if first == OF_FILE_DIRECTORY and last in NAMES_OF_FILE:
        return TASKS[last]
    task = TASKS.get(first)
    if task is None or (not task.argument and name != task.name):
        raise _unknown(name, commands)
    if task.argument and not rest:
        raise OptionError(f"{name} needs something to search for: {task.form}")
    return task


def _unknown(name: str, commands: Sequence[str]) -> OptionError:
    if name == "metrics":
        return OptionError("metrics exist only in a mount, as stats/metrics")
    forms = [TASKS[search].form for search in SEARCHES]
    others = [task.name for task in _ROWS if not task.in_mount]
    known = ", ".join([*NAMES, *forms, OF_FILE_FORM, *others, *commands])
    return OptionError(f"unknown statistic {name!r}; use one of {known}, or in a mount metrics")


def compute(
    name: bytes,
    archive: Archive,
    query: StatsQuery = EVERYTHING,
    *,
    grammars: Callable[[], list[Grammar]] | None = None,
    mount: MountFacts | None = None,
    answering: Answering | None = None,
) -> Report:
    """Returns the text of a statistic. `name` is its full name, as for `task_of`. Raises GompfsError.

    `grammars`, `mount` and `answering` are those of StatsSource.
    """
    try:
        task = task_of(os.fsdecode(name))
        rest = name.partition(b"/")[2]
        if task.argument:
            query = replace(query, words=tuple(rest.split(b" ")) if " " in task.argument else (rest,))
        elif rest:
            query = _of_file(rest.rpartition(b"/")[0], archive, query)
        return _answer(task, StatsSource(archive, grammars, mount, answering), query)
    except GompfsError as error:
        error.archive = error.archive or str(archive.path)
        raise


def _answer(task: Task, source: StatsSource, query: StatsQuery) -> Report:
    """Computes a statistic where `source.answering` says."""
    may_stay = task.stays and not query.prefix and len(query.words) <= MAX_NGRAM_LENGTH
    if source.answering is None or not may_stay:
        return task.compute(source, query)
    if query.ino is not None:
        source.counted_inos(query)  # raises an error for a binary file

    def on_device(text: ResidentText) -> Report:
        from gompfs.statistics.resident_answers import ANSWERS

        return ANSWERS[task.name](text, query)

    def otherwise() -> tuple[Report, str]:
        report = task.compute(source, query)
        return report, GPU if source.uses_device else CPU

    kind = task.name if query.ino is None else f"{OF_FILE_DIRECTORY}/{task.name}"
    return source.answering.answer(kind, on_device, otherwise)


def _of_file(path: bytes, archive: Archive, query: StatsQuery) -> StatsQuery:
    inode = archive.resolve(path)
    if not stat.S_ISREG(inode.mode):
        raise EntryTypeError("not a regular file", path=display_path(path))
    return replace(query, ino=inode.ino, path=path)
