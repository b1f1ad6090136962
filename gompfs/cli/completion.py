"""Answers the scripts in completions/, with which shells complete gompfs commands.

A script runs `gompfs` with _GOMPFS_COMPLETE=SHELL and passes the command line as arguments. The answer is a list of
records of three fields, each terminated by a NUL byte: type, value, help. Types are `plain` (an option or command),
`entry` (a path inside an archive), and `file` and `dir` (the shell completes paths of the host).

The author of an archive chooses the names of its entries and may be hostile. So no script evaluates, splits or expands
a value. Values for bash are quoted here, because readline inserts them unchanged (its own quoting, `compopt -o
filenames`, does not quote dollar signs and backquotes). zsh quotes what `compadd` adds; fish quotes every candidate.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence

from gompfs.cli.completions import Completion

SHELLS = ("bash", "zsh", "fish")


def answer_shell(
    completions: Callable[[Sequence[str]], Iterable[Completion]], shell: str, arguments: Sequence[str]
) -> int:
    """Print the completions that a script asks for, and return the exit status.

    `completions` returns those of the last word of a line. `shell` is what the script has in the environment variable.
    For zsh and fish, `arguments` are the words after `gompfs` up to the cursor; the last word is incomplete. For bash,
    they are the command line up to the cursor, and the part of it that readline replaces.
    """
    if shell not in SHELLS or not arguments or (shell == "bash" and len(arguments) != 2):
        return 1
    words = list(arguments)
    quoted: Callable[[str], str] = str
    if shell == "bash":
        line = BashLine(*arguments)
        words, quoted = line.words[1:] or [""], line.quoted
    for item in completions(words):
        if shell == "fish" and item.kind == "entry" and "\t" in item.value:
            continue  # fish shows the text after a tab as a description
        fields = (item.kind, quoted(item.value), item.help)
        sys.stdout.buffer.write(b"".join(os.fsencode(field) + b"\0" for field in fields))
    sys.stdout.flush()
    return 0


class BashLine:
    """A command line of bash up to the cursor. Variables, globs and history in it are not expanded."""

    def __init__(self, line: str, replaced: str) -> None:
        """`replaced` is the end of the line that readline replaces: the incomplete word, or a part of it.

        A part begins after an opening quote, or after one of the characters at which readline breaks words.
        """
        kept, self._quote = _bash_words(line[: len(line) - len(replaced)])
        self.words, _ = _bash_words(line)
        self._num_kept = len(kept[-1])

    def quoted(self, value: str) -> str:
        """The text that must replace the end of the line so that the last word becomes `value`."""
        return quote_for_bash(value[self._num_kept :], self._quote)


def _bash_words(line: str) -> tuple[list[str], str]:
    """The unquoted words of a line, of which the last may be incomplete or empty, and the quote that is still open."""
    words = [""]
    quote = ""
    is_escaped = False
    for char in line:
        if is_escaped:
            words[-1] += "\\" + char if quote and char not in '"\\$`' else char
            is_escaped = False
        elif char == "\\" and quote != "'":
            is_escaped = True
        elif char == quote:
            quote = ""
        elif not quote and char in "\"'":
            quote = char
        elif not quote and char in " \t\n":
            words += [""] if words[-1] else []
        else:
            words[-1] += char
    return words, quote


def quote_for_bash(value: str, quote: str = "") -> str:
    """A value quoted for bash, to be inserted after the opening `quote`, which readline closes, or without a quote."""
    if quote == "'":
        return value.replace("'", "'\\''")
    if quote:
        # An exclamation mark starts a history expansion inside double quotes, and cannot be escaped there.
        return re.sub(r'(["\\$`])', r"\\\1", value).replace("!", "\"'!'\"")
    if any(char < " " or char == "\x7f" for char in value):
        return "'" + value.replace("'", "'\\''") + "'"
    return re.sub(r"([^\w./,+%\x80-\U0010ffff-])", r"\\\1", value, flags=re.ASCII)
