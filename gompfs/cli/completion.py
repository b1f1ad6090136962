"""`gompfs completion`: scripts for shells that complete gompfs commands, and the answers to these scripts.

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

from gompfs.cli.command_line import Choice, argument, command
from gompfs.cli.completions import Completion

_BASH = r"""
_gompfs_completion() {
    local program=$1 answer=() number value all_directories=1
    command -v -- "$program" >/dev/null || program=gompfs
    COMPREPLY=()
    mapfile -d '' -t answer < <(
        _GOMPFS_COMPLETE=bash "$program" "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null
    )
    for ((number = 0; number + 2 < ${#answer[@]}; number += 3)); do
        value=${answer[number + 1]}
        case ${answer[number]} in
            dir) compopt -o dirnames; return ;;
            file) compopt -o default; return ;;
        esac
        [[ $value == */ || $value == */\' || $value == *= ]] || all_directories=
        COMPREPLY+=("$value")
    done
    [[ $all_directories ]] && compopt -o nospace
    return 0
}

complete -o nosort -F _gompfs_completion gompfs
"""

_ZSH = r"""
#compdef gompfs

_gompfs_completion() {
    local -a answer values directories described
    local kind value text
    (( $+commands[gompfs] )) || return 1
    answer=("${(@0)$(
        _GOMPFS_COMPLETE=zsh gompfs "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null
    )}")
    for kind value text in "${(@)answer[1,-2]}"; do
        case $kind in
            dir) _path_files -/; return ;;
            file) _path_files -f; return ;;
        esac
        if [[ -n $text ]]; then
            described+=("${value//:/\\:}:$text")
        elif [[ $value == */ || $value == *= ]]; then
            directories+=("$value")
        else
            values+=("$value")
        fi
    done
    (( $#described )) && _describe -V unsorted described -U
    (( $#directories )) && compadd -U -V unsorted -S '' -a -- directories
    (( $#values )) && compadd -U -V unsorted -a -- values
    return 0
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _gompfs_completion "$@"  # found in fpath
else
    compdef _gompfs_completion gompfs  # sourced
fi
"""

_FISH = r"""
function _gompfs_completion
    set -l current (commandline -ct)
    set -l words (commandline -opc)
    set -l unescaped (string unescape -- "$current" | string collect)
    if test -z "$unescaped"
        set unescaped (string trim -l -c '"\'' -- "$current" | string collect)
    end
    set -l answer (_GOMPFS_COMPLETE=fish gompfs $words[2..-1] "$unescaped" 2>/dev/null | string split0)
    set -l number 1
    while test (math $number + 2) -le (count $answer)
        set -l kind $answer[$number]
        set -l value $answer[(math $number + 1)]
        set -l text $answer[(math $number + 2)]
        set number (math $number + 3)
        if test $kind = dir
            __fish_complete_directories "$unescaped" | string split \n | string join0
        else if test $kind = file
            __fish_complete_path "$unescaped" | string split \n | string join0
        else if test -n "$text"
            printf '%s\t%s\0' "$value" "$text"
        else
            printf '%s\0' "$value"
        end
    end
end

complete --no-files --command gompfs --arguments "(_gompfs_completion | string split0)"
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


@command("completion")
@argument("shell", metavar="{bash|zsh|fish}", type=Choice(SCRIPTS))
def completion_command(shell: str) -> None:
    """Print a script with which SHELL completes gompfs commands.

    The script completes commands, options, and paths inside archives.

    \b
    bash: gompfs completion bash > ~/.local/share/bash-completion/completions/gompfs
    zsh:  gompfs completion zsh > ~/.zfunc/_gompfs     (with ~/.zfunc in fpath)
    fish: gompfs completion fish > ~/.config/fish/completions/gompfs.fish
    """
    sys.stdout.write(SCRIPTS[shell].lstrip("\n"))


def answer_shell(
    completions: Callable[[Sequence[str]], Iterable[Completion]], shell: str, arguments: Sequence[str]
) -> int:
    """Print the completions that a script of SCRIPTS asks for, and return the exit status.

    `completions` returns those of the last word of a line. `shell` is what the script has in the environment variable.
    For zsh and fish, `arguments` are the words after `gompfs` up to the cursor; the last word is incomplete. For bash,
    they are the command line up to the cursor, and the part of it that readline replaces.
    """
    if shell not in SCRIPTS or not arguments or (shell == "bash" and len(arguments) != 2):
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
