"""The commands that a user would run instead of reading a statistic: coreutils and awk, and data frames."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from .programs import environment


@dataclass(frozen=True)
class _WordRule:
    """How the programs find words: a command, and sets of characters as regular expressions, for awk and Python.

    The end of a file also ends a word.
    """

    one_per_line: str
    awk_separator: str
    separator: str
    letter: str


_WORD_RULES = {
    "whitespace": _WordRule(r"tr -s '[:space:]' '\n'", r"[ \t\r\v\f]", r"[ \t\n\x0b\x0c\r]", r"[^ \t\n\x0b\x0c\r]"),
    "identifiers": _WordRule(
        r"tr -cs '[:alnum:]_\200-\377' '\n'",
        r"[^0-9A-Za-z_\200-\377]",
        r"[^0-9A-Za-z_\x80-\xff]",
        r"[0-9A-Za-z_\x80-\xff]",
    ),
}
_WORDS = r"xargs -0 awk 1 | {one_per_line} | sed '/^$/d'"
_WORDS_OF_FILES = r"""xargs -0 awk '
    BEGIN { FS = "{separator}+" }
    { for (at = 1; at <= NF; ++at) if ($at != "") print FILENAME "\t" $at }'"""
_SEQUENCES_OF_FILES = r"""xargs -0 awk '
    BEGIN { FS = "{separator}+" }
    FNR == 1 { seen = 0 }
    { for (at = 1; at <= NF; ++at) if ($at != "") {
        if (++seen > 2) print FILENAME "\t" first " " second " " $at
        first = second; second = $at } }'"""
_COUNT = r"sort | uniq -c | sed -E 's/^ *([0-9]+) (.*)$/\2\t\1/'"
_COUNT_FIRST = r"sort | uniq -c | sed -E 's/^ *([0-9]+) /\1\t/'"
_BY_COUNT = r"sort -t $'\t' -k2,2nr -k1,1"
_JOIN = r"""awk -F'\t' '
    ($1 "") != (last "") { printf "%s%s", (NR > 1 ? "\n" : ""), $1; last = $1 }
    { printf "\t%s", $2 }
    END { if (NR) printf "\n" }'"""
_BY_FILE = r"""sort -t $'\t' -k2,2 -k1,1nr -k3,3 | awk -F'\t' '{ print $2 FS $1 " " $3 }'"""
_BY_SEQUENCE = r"""sort -t $'\t' -k3,3 -k1,1nr -k2,2 | awk -F'\t' '{ print $3 FS $1 " " $2 }'"""
_BY_WORD = r"""sort -u | awk -F'\t' '{ print $2 FS $1 }' | sort -t $'\t' -k1,1 -k2,2"""

_PIPELINES = {
    "wordcount": f"{_WORDS} | {_COUNT} | {_BY_COUNT}",
    "sort": f"{_WORDS} | {_COUNT}",
    "inverted_index": f"{_WORDS_OF_FILES} | {_BY_WORD} | {_JOIN}",
    "term_vector": f"{_WORDS_OF_FILES} | {_COUNT_FIRST} | {_BY_FILE} | {_JOIN}",
    "sequence_count": f"{_SEQUENCES_OF_FILES} | cut -f2 | {_COUNT} | {_BY_COUNT}",
    "ranked_inverted_index": f"{_SEQUENCES_OF_FILES} | {_COUNT_FIRST} | {_BY_SEQUENCE} | {_JOIN}",
}

# Text is decoded as Latin-1: every byte is a character, and characters sort in byte order.
_READ = r"""
import sys
texts = [open(name, "rb").read().decode("latin-1") for name in sys.stdin.buffer.read().split(b"\0")[:-1]]
def write(rows):
    sys.stdout.buffer.writelines(f"{word}\t{count}\n".encode("latin-1") for word, count in rows)
"""
_FRAMES = {
    "polars": r"""
import polars
words = polars.Series("word", texts).str.extract_all("{letter}+").explode().drop_nulls()
counts = words.value_counts(name="count").sort(["count", "word"], descending=[True, False])
write(counts.iter_rows())
""",
    "duckdb": r"""
import duckdb
connection = duckdb.connect()
connection.execute("set enable_progress_bar = false")  # otherwise it goes to standard output
connection.execute("create table texts (text varchar)")
connection.executemany("insert into texts values (?)", [[text] for text in texts])
write(connection.execute('''
    select word, count(*) from (select unnest(regexp_split_to_array(text, '{separator}+')) as word from texts)
    where word <> '' group by word order by 2 desc, 1''').fetchall())
""",
    "cudf": r"""
import cudf
words = cudf.Series(texts).str.replace("{separator}+", " ", regex=True).str.split(" ").explode()
counts = words[words.notnull() & (words != "")].value_counts().reset_index()
counts.columns = ["word", "count"]
counts = counts.sort_values(["count", "word"], ascending=[False, True])
write(zip(counts["word"].to_arrow().to_pylist(), counts["count"].to_arrow().to_pylist()))
""",
}


@dataclass(frozen=True)
class UserScript:
    """A command that reads file names, each followed by a NUL, from standard input."""

    name: str
    command: tuple[str, ...]

    def run(self, tree: Path, files: Sequence[bytes]) -> bytes:
        """Runs the command in the tree and returns its output; raises CalledProcessError."""
        given = b"".join(name + b"\0" for name in files)
        how = environment() | {"LC_ALL": "C"}
        return subprocess.run(self.command, input=given, stdout=subprocess.PIPE, cwd=tree, env=how, check=True).stdout


def scripts_for(task: str, words: str, python: str) -> list[UserScript]:
    """Returns the scripts that can run here, for a word rule; data frames are used only for word counts."""
    scripts: list[UserScript] = []
    rule = _WORD_RULES.get(words)
    if rule is None:
        return scripts
    if all(shutil.which(program) for program in ("bash", "xargs", "awk", "sort")):
        pipeline = _fill(_PIPELINES[task], one_per_line=rule.one_per_line, separator=rule.awk_separator)
        scripts.append(UserScript("coreutils", ("bash", "-o", "pipefail", "-c", pipeline)))
    if task == "wordcount":
        scripts += [
            UserScript(name, (python, "-c", _READ + _fill(script, separator=rule.separator, letter=rule.letter)))
            for name, script in _FRAMES.items()
            if find_spec(name)
        ]
    return scripts


def _fill(script: str, **values: str) -> str:
    for name, value in values.items():
        script = script.replace(f"{{{name}}}", value)
    return script


def missing_frames() -> list[str]:
    """Returns the data frame packages that are not installed."""
    return [name for name in _FRAMES if not find_spec(name)]
