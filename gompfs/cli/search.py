"""`gompfs search`: the statistic search, with its words as arguments."""

from __future__ import annotations

import click

from gompfs.cli.parameters import IntegerRange, archive_argument, engine_option, json_option
from gompfs.cli.stats import stats_command


@click.command("search")
@archive_argument
@click.argument("words", metavar="WORD...", nargs=-1, required=True)
@click.option("--top", type=IntegerRange(min=1), metavar="N", default=10, show_default=True, help="Print N files.")
@engine_option
@json_option
@click.pass_context
def search_command(
    ctx: click.Context, archive: str, words: tuple[str, ...], *, top: int, engine: str, as_json: bool
) -> None:
    """Print the files of ARCHIVE that fit the WORDs best.

    A line is the score, the path, and the number and text of the line with most of the WORDs. Files are ranked by BM25:
    a WORD counts the more, the fewer files have it and the shorter a file is. Case is ignored unless a WORD has an
    uppercase letter. If no file has a WORD, the exit status is 1.

    The output is that of `gompfs stats ARCHIVE "search/WORD..."`, and that of the file stats/search/WORD... of a mount,
    which lists 10 files.
    """
    name = "search/" + " ".join(words)
    ctx.invoke(stats_command, archive=archive, name=name, top=top, engine=engine, as_json=as_json)
