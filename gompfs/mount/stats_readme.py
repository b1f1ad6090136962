"""The file `stats/README` of a mount: what each file and directory in `stats` is for, with an example."""

from __future__ import annotations

import textwrap

from gompfs.mount.pattern_files import PATTERN_DIRECTORIES
from gompfs.statistics.formats import Format
from gompfs.statistics.tasks import LISTED_OF_FILE, NAMES_OF_FILE, SEARCHES, TASKS

_WIDTH = 79
_INTRODUCTION = """\
This directory has the statistics of all files of this mount together. They are computed when a file is first opened,
or when a program asks for its size, and then kept until the mount ends. Run the examples in this directory.
"""
_BY_NAME = """\
These are opened by name. No listing shows them, since they can be much larger than the text and can take minutes to
compute: programs such as ls, grep -r, tar and rsync would compute all of them.
"""
_DIRECTORIES = """\
A file in one of these directories is created when it is opened by its name, and the directory looks empty (all but
files). They are symbolic links, so programs that walk a tree, such as grep -r, find, tar and rsync -a, leave them out.
A file that has nothing to show does not exist.
"""
_EXAMPLES = {
    "README": "less README",
    "info": "cat info",
    "index.sqlite": "head -c 15 index.sqlite",
    "metrics": "grep requests metrics",
    "metrics.json": "python3 -m json.tool metrics.json",
    "binary-files": "wc -l binary-files",
    "sha256sums": "cd ..; sha256sum -c stats/sha256sums",
    "wordcount": "head -20 wordcount",
    "sort": "grep -P '^colou?r\\t' sort",
    "inverted_index": "grep -P '^error\\t' inverted_index",
    "term_vector": "grep -P '^docs/index.md\\t' term_vector",
    "sequence_count": "head -20 sequence_count",
    "ranked_inverted_index": "grep -P '^to be or\\t' ranked_inverted_index",
    "tfidf": "grep -P '^docs/index.md\\t' tfidf",
    "word": "cat word/error",
    "phrase": "cat 'phrase/to be or not'",
    "search": "cat 'search/disk error'",
    "grep": "cat 'grep/^#include .*signal'",
    "count": "cat 'count/TODO|FIXME'",
    "files-with": "cat files-with/Copyright",
    "files": "head files/docs/index.md/wordcount",
    "tables": "head -2 tables/tfidf.jsonl",
}
_HELP = {
    "README": "this text",
    "index.sqlite": "the index as a SQLite database, for sqlite3 'file:index.sqlite?immutable=1': names and extents",
    "metrics": "counters of the mount in the format of Prometheus: requests, bytes, caches, times",
    "metrics.json": "the same counters as JSON",
    "grep": "the lines that match a regular expression, as path:number:line; / is written %2F, and % is %25",
    "count": "each file with lines that match a regular expression, and their number",
    "files-with": "the files with lines that match a regular expression",
}


def readme() -> bytes:
    """Returns the text of the file."""
    tasks = [name for name, task in TASKS.items() if task.in_mount and not task.argument]
    listed = ["README", *(name for name in tasks if TASKS[name].is_listed), "metrics", "metrics.json"]
    directories = [*SEARCHES, *map(bytes.decode, PATTERN_DIRECTORIES)]
    parts = [
        _paragraph(_INTRODUCTION),
        _title("Files"),
        *(_entry(name, name, _help(name)) for name in listed),
        _title("Files that are opened by name"),
        _paragraph(_BY_NAME),
        *(_entry(name, name, _help(name)) for name in ["index.sqlite", *tasks] if name not in listed),
        _title("Directories"),
        _paragraph(_DIRECTORIES),
        *(_entry(name, _form(name), _help(name)) for name in directories),
        _entry("files", "files/PATH/NAME", _help_of_files()),
        _entry("tables", "tables/NAME.FORMAT", _help_of_tables(tasks)),
        _title("More"),
        _paragraph(
            "'gompfs stats MOUNTPOINT NAME' prints the same, also the first lines of it only (--top) and n-grams of "
            "another length (--n); 'gompfs stats --help' has all options."
        ),
    ]
    return "\n".join(parts).encode()


def _form(name: str) -> str:
    return TASKS[name].form if name in TASKS else f"{name}/PATTERN"


def _help(name: str) -> str:
    return _HELP[name] if name in _HELP else TASKS[name].help


def _help_of_files() -> str:
    by_name = ", ".join(name for name in NAMES_OF_FILE if name not in LISTED_OF_FILE)
    return (
        "statistics of the file PATH alone; directories as in the archive. NAME is one of "
        f"{', '.join(LISTED_OF_FILE)}, which a listing shows, and {by_name}, which it does not"
    )


def _help_of_tables(tasks: list[str]) -> str:
    forms = ", ".join(form.value for form in Format if form is not Format.TEXT)
    return f"the statistic NAME as a table. NAME is one of {', '.join(tasks)}; FORMAT is one of {forms}"


def _title(text: str) -> str:
    return f"{text}\n{'-' * len(text)}\n"


def _paragraph(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), _WIDTH, break_on_hyphens=False) + "\n"


def _entry(name: str, form: str, text: str) -> str:
    said = textwrap.fill(text + ".", _WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return f"{form}\n{said}\n    Example: {_EXAMPLES[name]}\n"
