"""`gompfs search`: the statistic search, with its words as arguments."""

from __future__ import annotations

from gompfs.cli.command_line import IntegerRange, argument, command, option
from gompfs.cli.parameters import archive_argument, engine_option, json_option
from gompfs.cli.stats import stats_command


@command("search")
@archive_argument
@argument("words", metavar="WORD...", several=True)
@option("--top", type=IntegerRange(1), metavar="N", default=10, show_default=True, help="Print N files.")
@engine_option
@json_option
def search_command(archive: str, words: tuple[str, ...], *, top: int, engine: str, as_json: bool) -> int:
    """Print the files of ARCHIVE that fit the WORDs best.

    A line is the score, the path, and the number and text of the line with most of the WORDs. Files are ranked by BM25:
    a WORD counts the more, the fewer files have it and the shorter a file is. A WORD in lowercase also stands for the
    same word in uppercase and with an uppercase first letter. If no file has a WORD, the exit status is 1.

    The output is that of `gompfs stats ARCHIVE "search/WORD..."`, and that of the file stats/search/WORD... of a mount,
    which lists 10 files.
    """
    options = ["--top", str(top), "--engine", engine, *(["--json"] if as_json else [])]
    return stats_command.run([*options, "--", archive, "search/" + " ".join(words)])
