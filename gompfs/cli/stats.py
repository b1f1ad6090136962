"""`gompfs stats`: the files of the directory stats of a mount, without a mount."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from typing import TYPE_CHECKING

from gompfs.cli.cluster import DASK, archives_and_name, dask_option, print_statistic_of_cluster
from gompfs.cli.command_line import PATH, Choice, IntegerRange, argument, command, option
from gompfs.cli.grep_targets import is_archive, target_of
from gompfs.cli.output import print_json, write_bytes
from gompfs.cli.parameters import archive_argument, complete_entry, engine_option, json_option, opened
from gompfs.cli.statistic_output import OutputForm, output_form, print_report
from gompfs.cli.stats_in_mount import (
    NeedsArchiveError,
    check_archive_of,
    path_in_archive,
    path_of_file,
    statistic_in_mount,
)
from gompfs.cli.waiting import Waiting
from gompfs.errors import EntryNotFoundError, EntryTypeError, OptionError, display_path
from gompfs.memory import share_arenas
from gompfs.statistics.documents import DEFAULT_FIELD, read_documents
from gompfs.statistics.formats import Format
from gompfs.statistics.query import MAX_SEARCHED_LENGTH, StatsQuery
from gompfs.statistics.tasks import (
    FIELD,
    FILE,
    NAMES,
    NAMES_OF_FILE,
    OF_FILE_FORM,
    TASKS,
    TOP,
    N,
    Task,
    compute,
    task_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gompfs.archive import Archive
    from gompfs.cli.grep_targets import Target

_LIST = "list"


def _tasks_with(option: str) -> str:
    """Returns the names of the tasks that take an option, as text."""
    names = [task.name for task in TASKS.values() if option in task.options]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _ngram_lengths() -> str:
    """Returns the limits of --n as text."""
    return "; ".join(
        f"1 to {task.max_ngram_length} in {task.name} (default {task.ngram_length})"
        for task in TASKS.values()
        if N in task.options
    )


def _help() -> str:
    """Returns the help text of the command, with a line for each task."""
    forms = {task.form: task.help for task in TASKS.values()}
    *names, last = NAMES_OF_FILE
    forms[OF_FILE_FORM] = f"{', '.join(names)} or {last} of one file"
    forms[_LIST] = "these names; the default"
    merged = ", ".join(task.name for task in TASKS.values() if task.merge is not None)
    lines = "\n".join(f"{form:<21}  {text}" for form, text in forms.items())
    return f"""Print the statistic NAME of ARCHIVE.

The output has the same bytes as the file stats/NAME of a mount. ARCHIVE may also be the mount point of a mounted
archive, or a file in it for the statistics of that file: then the daemon of the mount computes them.

\b
{lines}

If no file contains the word or the phrase, the exit status is 1.

A DOCUMENT of overlap is a file; if its name ends in .jsonl or .ndjson, each line of it is a document. Files ending in
.gz are decompressed. Its lines have: the document, its different n-grams, how many of them occur, the same as a
fraction, how often they occur, and for each of the files with most of them, `number path`.

--dask takes several archives, as in `gompfs stats --dask ADDRESS ARCHIVE... NAME`, for {merged}. With several,
the paths of files begin with the path of their archive.
"""


def _complete_name(_given: Mapping[str, Any], incomplete: str) -> list[str]:
    return [name for name in [*NAMES, _LIST] if name.startswith(incomplete)]


@command("stats", help=_help)
@archive_argument
@argument("name", default=_LIST, complete=_complete_name)
@argument("documents", metavar="[DOCUMENT]...", several=True, required=False, type=PATH)
@option("--file", "path", metavar="PATH", complete=complete_entry, help="Compute the statistic of the file PATH only.")
@option(
    "--top",
    type=IntegerRange(1),
    metavar="N",
    help="Print the first N lines; in term_vector and tfidf (default 10), the first N words of each file; "
    "in ranked_inverted_index, the first N files of each n-gram; in search (default 10), N files; in overlap (default "
    "10), N files of each document.",
)
@option(
    "--n",
    "ngram_length",
    type=IntegerRange(1, MAX_SEARCHED_LENGTH),
    metavar="N",
    help=f"Length of the n-grams, in words: {_ngram_lengths()}.",
)
@option(
    "--field",
    "fields",
    metavar="NAME",
    multiple=True,
    help=f"For overlap: the field of a line of JSON that has the text of the document; default {DEFAULT_FIELD}. "
    "May be repeated: the texts are joined.",
)
@option(
    "--format",
    "form",
    type=Choice([form.value for form in Format]),
    help="text, the default; jsonl: the values of --json, one per line; arrow or parquet: a flat table. These two need "
    "pyarrow.",
)
@dask_option
@engine_option
@json_option
def stats_command(
    archive: str,
    name: str,
    *,
    path: str | None,
    top: int | None,
    ngram_length: int | None,
    fields: tuple[str, ...],
    documents: tuple[str, ...],
    scheduler: str | None,
    engine: str,
    form: str | None,
    as_json: bool,
) -> None:
    """Print a statistic, or list the names of all."""
    archives: list[str] = []
    if scheduler is not None:
        archives, name = archives_and_name(archive, name, documents, _LIST)
        documents = ()
    elif is_archive(name):
        raise OptionError(f"stats reads one archive; with a Dask cluster, several: {DASK} ADDRESS ARCHIVE... NAME")
    task = None if name == _LIST else task_of(name, _LIST)
    _check_usage(task, path, top, ngram_length)
    output = output_form(form, as_json=as_json, lists_names=task is None)
    _check_documents(task, documents, fields)
    if scheduler is not None and task is not None:
        if path is not None:
            raise OptionError(f"{DASK} cannot be used with {FILE}")
        print_statistic_of_cluster(
            scheduler, archives, task, name,
            top=top or 0, ngram_length=ngram_length or 0, engine=engine, output=output,
        )  # fmt: skip
        return
    target = target_of(archive)
    is_in_mount = target.mountpoint is not None
    is_plain = engine == "auto" and not documents and (task is None or ngram_length in (None, task.ngram_length))
    if is_in_mount and _print_from_mount(target, name, task, path, top or 0, output, is_plain=is_plain):
        return
    with opened(target.archive, engine=engine) as opened_archive:
        path = path_in_archive(target, opened_archive, path) if is_in_mount else path
        query = _query(opened_archive, path, top)
        if task is None:
            _print_names(NAMES, as_json=as_json)
        else:
            query = replace(
                query,
                ngram_length=ngram_length or task.ngram_length,
                documents=read_documents(documents, fields or (DEFAULT_FIELD,)),
            )
            _print_statistic(task, name, opened_archive, query, output)


def _print_names(names: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        print_json(names)
    else:
        write_bytes("".join(f"{name}\n" for name in names).encode())


def _print_from_mount(
    target: Target, name: str, task: Task | None, path: str | None, top: int, output: OutputForm, *, is_plain: bool
) -> bool:
    """Prints what the daemon of a mount computes. Returns False if the archive is needed, and can be opened.

    Without `is_plain`, there are options that need the archive. Raises MountError if it is needed but cannot be opened.
    """
    try:
        file = path_of_file(target, path)
        if task is None:
            _print_names(NAMES if file is None else NAMES_OF_FILE, as_json=output is None)
            return True
        if not is_plain:
            raise NeedsArchiveError("these options need the archive")
        with statistic_in_mount(target, name, task, file, top) as report:
            print_report(report, task, output)
    except NeedsArchiveError as error:
        check_archive_of(target, str(error))
        return False
    return True


def _print_statistic(task: Task, name: str, archive: Archive, query: StatsQuery, output: OutputForm) -> None:
    share_arenas()
    with Waiting(display_path(name)) as waiting:
        report = compute(os.fsencode(name), archive, query)
        if task.argument and report.size == 0:
            raise EntryNotFoundError("no file contains this", archive=archive.path, path=display_path(name))
        print_report(waiting.until_it_begins(report), task, output)


def _check_usage(task: Task | None, path: str | None, top: int | None, ngram_length: int | None) -> None:
    """Raises OptionError for options that the task (None: list) does not take."""
    name = _LIST if task is None else task.name
    options = () if task is None else task.options
    if ngram_length is not None:
        if task is None or N not in options:
            raise OptionError(f"{N} is only for {_tasks_with(N)}")
        if ngram_length > task.max_ngram_length:
            raise OptionError(f"the n-grams of {name} have 1 to {task.max_ngram_length} words, not {ngram_length}")
    for one, value in ((FILE, path), (TOP, top)):
        if value is not None and one not in options:
            raise OptionError(f"{one} has no meaning for {name}")


def _check_documents(task: Task | None, documents: tuple[str, ...], fields: tuple[str, ...]) -> None:
    """Raises OptionError if there are documents for a task that takes none, or none for one that needs some."""
    takes_documents = task is not None and task.takes_documents
    if documents and not takes_documents:
        raise OptionError(f"unexpected argument {documents[0]!r}; only overlap takes documents")
    if task is not None and takes_documents and not documents:
        raise OptionError(f"{task.name} needs documents: {task.form}")
    if fields and not takes_documents:
        raise OptionError(f"{FIELD} is only for {_tasks_with(FIELD)}")


def _query(archive: Archive, path: str | None, top: int | None) -> StatsQuery:
    ino = None
    if path is not None:
        inode = archive.resolve(path, follow=True)
        if not stat.S_ISREG(inode.mode):
            raise EntryTypeError("not a regular file", archive=archive.path, path=path)
        ino = inode.ino
    return StatsQuery(ino, top=top or 0)
