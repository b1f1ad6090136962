"""`gompfs stats`: the files of the directory stats of a mount, without a mount."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from gompfs.cli.application import leave_on_sigterm
from gompfs.cli.output import human_size, print_json, print_json_array, print_line, write_bytes
from gompfs.cli.parameters import IntegerRange, archive_argument, complete_entry, engine_option, json_option, opened
from gompfs.cli.progress import progress_bar
from gompfs.errors import EntryNotFoundError, EntryTypeError, OptionError, display_path

if TYPE_CHECKING:
    from gompfs.archive import Archive
    from gompfs.mount.virtual_files import StatsQuery

_LIST = "list"
_SEQUENCES = ("sequence_count", "ranked_inverted_index")
_SEARCHES = ("word/", "phrase/")


def _names() -> list[str]:
    from gompfs.mount.virtual_files import STATISTICS

    return [name.decode() for name in STATISTICS]


def _complete_name(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in [*_names(), _LIST] if name.startswith(incomplete)]


@click.command("stats")
@archive_argument
@click.argument("name", default=_LIST, shell_complete=_complete_name)
@click.option(
    "--file", "path", metavar="PATH", shell_complete=complete_entry, help="Compute the statistic of the file PATH only."
)
@click.option(
    "--top",
    type=IntegerRange(min=1),
    metavar="N",
    help="Print the first N lines; in term_vector and tfidf (default 10), the first N words of each file; "
    "in ranked_inverted_index, the first N files of each n-gram.",
)
@click.option(
    "--n",
    "num_words",
    type=IntegerRange(1, 5),
    metavar="N",
    help="Length of the n-grams in sequence_count and ranked_inverted_index, 1 to 5 words; default 3.",
)
@click.option(
    "--range", "word_range", metavar="I:J", help="For words: print words I to J - 1 of the file, counted from 0."
)
@click.option("--build", is_flag=True, help="First add the grammar for segments that were packed with --no-stats.")
@engine_option
@json_option
def stats_command(
    archive: str,
    name: str,
    *,
    path: str | None,
    top: int | None,
    num_words: int | None,
    word_range: str | None,
    build: bool,
    engine: str,
    as_json: bool,
) -> None:
    """Print the statistic NAME of ARCHIVE: the same bytes as the file stats/NAME of a mount.

    \b
    wordcount              each word and its count, the most frequent word first
    sort                   each word and its count, sorted by word
    inverted_index         each word and the files that contain it
    term_vector            each file and its words with counts
    sequence_count         each n-gram of three words and its count
    ranked_inverted_index  each n-gram of three words and the files that contain it
    tfidf                  each file and its most characteristic words with tf-idf scores
    word/WORD              the files that contain WORD, with counts
    phrase/W1 W2 W3        the files that contain a phrase of 1 to 5 words, with counts
    files/PATH/NAME        wordcount, sort, term_vector or sequence_count of one file
    words                  the words of the file given with --file, one per line; not in a mount
    info                   facts about the archive
    list                   these names; the default

    If no file contains the word or the phrase, the exit status is 1.

    --build without NAME adds the grammar and prints no statistic. An interrupted --build leaves ARCHIVE unchanged.
    """
    from gompfs.mount.virtual_files import check_name, compute

    kind = check_name(name, _LIST)
    _check_usage(kind, path, top, num_words, word_range)
    if build:
        size = _build_grammars(archive, engine)
        if name == _LIST:
            _print_built(archive, size, as_json=as_json)
            return
    with opened(archive, engine=engine) as opened_archive:
        query = _query(opened_archive, path, top, num_words, word_range)
        if name == _LIST:
            _print_names(as_json)
            return
        report = compute(os.fsencode(name), opened_archive, query)
        if name.startswith(_SEARCHES) and report.size == 0:
            raise EntryNotFoundError("no file contains this", archive=archive, path=display_path(name))
        if not as_json:
            for piece in report:
                write_bytes(piece)
            return
        from gompfs.statistics import records

        if name == "info":
            print_json(next(records(kind, report)))
        else:
            print_json_array(records(kind, report))


def _print_names(as_json: bool) -> None:
    if as_json:
        print_json(_names())
    else:
        write_bytes("".join(f"{name}\n" for name in _names()).encode())


def _build_grammars(path: str, engine: str) -> int:
    """Add missing grammars to an archive as a new generation. Returns their compressed size; 0 if none were missing."""
    from gompfs.pack import add_grammars
    from gompfs.statistics.content import text_without_grammar

    leave_on_sigterm()
    with opened(path, engine=engine) as archive:
        texts = text_without_grammar(archive)
        if not texts:
            return 0
        total = sum(text.num_bytes for text in texts.values())
        with progress_bar(os.path.basename(archive.path), lambda: total) as bar:
            progress = bar.advance if bar is not None else None
            generation = archive.footer.generation
            return add_grammars(Path(archive.path), generation, texts, engine=archive.engine, progress=progress)


def _print_built(path: str, size: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"grammar_size": size})
    else:
        what = f"added grammar for statistics: {human_size(size)}" if size else "has the grammar for statistics already"
        print_line(f"{display_path(path)}: {what}".encode())


def _check_usage(
    kind: str, path: str | None, top: int | None, num_words: int | None, word_range: str | None
) -> None:
    from gompfs.mount.virtual_files import WORDS

    if num_words is not None and kind not in _SEQUENCES:
        raise OptionError(f"--n is only for {' and '.join(_SEQUENCES)}")
    if kind in (_LIST, "info") and (path is not None or top is not None):
        raise OptionError(f"--file and --top have no meaning for {kind}")
    if kind == WORDS and (path is None or top is not None):
        raise OptionError("words needs --file; use --range, not --top, to select words")
    if word_range is not None and kind != WORDS:
        raise OptionError(f"--range is only for {WORDS}")


def _query(
    archive: Archive, path: str | None, top: int | None, num_words: int | None, word_range: str | None
) -> StatsQuery:
    from gompfs.mount.virtual_files import StatsQuery

    ino = None
    if path is not None:
        inode = archive.resolve(path, follow=True)
        if not stat.S_ISREG(inode.mode):
            raise EntryTypeError("not a regular file", archive=archive.path, path=path)
        ino = inode.ino
    begin, end = _parse_range(word_range or ":")
    return StatsQuery(ino, num_words or StatsQuery.num_words, top or 0, begin=begin, end=end)


def _parse_range(word_range: str) -> tuple[int, int | None]:
    begin, colon, end = word_range.partition(":")
    if not colon or not all(number == "" or (number.isascii() and number.isdecimal()) for number in (begin, end)):
        raise OptionError(f"--range {word_range!r} is not I:J, I: or :J")
    numbers = [int(number or 0) for number in (begin, end)]
    if max(numbers) >= 1 << 63:
        raise OptionError(f"--range {word_range!r} is too large")
    return numbers[0], numbers[1] if end else None
