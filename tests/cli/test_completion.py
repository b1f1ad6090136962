"""Completion in real shells on a pseudo terminal. Hostile file names are inserted quoted and never evaluated."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tree_helpers import PACKAGE_PARENT, pack

from gompfs.cli.completion import SHELLS, BashLine
from gompfs.options import MOUNT_OPTIONS

SCRIPTS = {
    "bash": "gompfs.bash",
    "zsh": "_gompfs",
    "fish": "gompfs.fish",
}
_QUIET_SECONDS = 0.05
_LIMIT = 20  # seconds until an event
_NAMES = [
    b"0$(touch PWNED)",
    b"1`touch PWNED`",
    b"2;touch PWNED;",
    b"3 two  spaces and a tab\there",
    b"4'single\"double'",
    b"5back\\slash\\",
    b"6new\nline\ntouch PWNED\n",
    b"7*?[a-z]{b,c}",
    b"8a:b=c@d#e!f~g&h|i>PWNED<j^k%",
    b"9\xff\xfe not UTF-8",
    "A\N{LATIN SMALL LETTER E WITH ACUTE} \N{SNOWMAN}".encode(),
    b"B$HOME ${HOME} $[1+1] $((1+1))",
    b"C,plain,value",
    b"D:\\:describe[x]",
    b"E\x1b]0;title\x07",
    b"F\r\ntouch PWNED\r",
    b"G#comment",
    b"-rf $(touch PWNED)",
    b"~root",
    b"=ls",
    b"!history",
    b"%job",
    b"#hash",
]


# Tells in a file `events` of the shell's directory when it has run, so that no test has to guess how long that takes.
_PROGRAM = """#!/bin/sh
if [ -z "$_GOMPFS_COMPLETE" ] && [ -e "$HOME/record" ]; then
    printf '%s\\0' "$@" >"$HOME/arguments"
    exit
fi
PYTHONPATH="{path}" "{python}" -P -m gompfs "$@"
status=$?
[ -z "$_GOMPFS_COMPLETE" ] || echo answer >>"$HOME/events"
exit $status
"""


class Shell:
    """An interactive shell on a pseudo terminal, with the completion script loaded."""

    def __init__(self, directory: Path, name: str, bytecode: Path) -> None:
        command, preparation = COMMANDS[name]
        binaries = directory / "bin"
        binaries.mkdir()
        (binaries / "gompfs").write_text(_PROGRAM.format(path=PACKAGE_PARENT, python=sys.executable))
        (binaries / "gompfs").chmod(0o755)
        shutil.copy(Path(__file__).parents[2] / "completions" / SCRIPTS[name], directory / "script")
        self.name = name
        self.written = b""
        self._events = directory / "events"
        self._events.touch()
        controller, terminal = pty.openpty()
        self._controller = controller
        environment = {
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "HOME": str(directory),
            "TERM": "xterm",
            "LC_ALL": "C.UTF-8",
            "PYTHONPYCACHEPREFIX": str(bytecode),
        }
        self.process = subprocess.Popen(
            command,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=directory,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(terminal)
        self.enter(preparation)

    def complete(self, text: str) -> None:
        """Types text and TAB, and waits for the completion."""
        self._type(text + "\t", "answer")

    def enter(self, text: str) -> None:
        """Types text and Enter, and waits for the next prompt."""
        self._type(text + "\r", "prompt")

    def erase(self) -> None:
        """Types ^U, which empties the command line. fish ignores ^C while it completes."""
        self._send(b"\x15")

    def cancel(self) -> None:
        """Types ^C."""
        self._send(b"\x03")

    def _send(self, key: bytes) -> None:
        os.write(self._controller, key)
        select.select([self._controller], [], [], 0.1)
        self._read(_QUIET_SECONDS)

    def _type(self, text: str, event: str) -> None:
        num_before = self._count(event)
        os.write(self._controller, text.encode())
        deadline = time.monotonic() + _LIMIT
        while self._count(event) == num_before and time.monotonic() < deadline:
            self._read(0.01)
        self._read(_QUIET_SECONDS)

    def _count(self, event: str) -> int:
        return self._events.read_text().split().count(event)

    def _read(self, quiet_seconds: float) -> None:
        """Reads what the shell writes, until it has written nothing for `quiet_seconds`."""
        while select.select([self._controller], [], [], quiet_seconds)[0]:
            try:
                new = os.read(self._controller, 65536)
            except OSError:
                break
            # fish asks the terminal these questions; a terminal would answer.
            for question, reply in ((b"\x1b[c", b"\x1b[?62c"), (b"\x1b[6n", b"\x1b[1;1R")):
                if question in new:
                    os.write(self._controller, reply)
            self.written += new

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._controller)


# For each shell: its command, and a line after which it writes to `events` at each prompt.
COMMANDS: dict[str, tuple[list[str | Path], str]] = {
    "bash": (
        ["bash", "--norc", "--noprofile", "-i"],
        "PS1='> '; set -H; bind 'set bell-style none'; . ./script; PROMPT_COMMAND='echo prompt >>~/events'",
    ),
    "zsh": (
        ["zsh", "-f", "-i"],
        "PS1='> '; autoload -U compinit; compinit -u -D; unsetopt beep; . ./script; precmd() echo prompt >>~/events",
    ),
    "fish": (
        ["fish", "--no-config", "-i"],
        "function fish_prompt; echo prompt >>~/events; echo '> '; end; source ./script",
    ),
}


@pytest.fixture(scope="module")
def hostile_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has one directory per hostile name. Each contains one file of that name, whose content is its number."""
    directory = tmp_path_factory.mktemp("hostile")
    root = directory / "tree"
    for number, name in enumerate(_NAMES):
        (root / f"d{number}").mkdir(parents=True)
        path = os.path.join(os.fsencode(root / f"d{number}"), name)
        with open(path, "w") as file:
            file.write(f"content {number}")
    with open(os.path.join(os.fsencode(root), _NAMES[17]), "w") as file:
        file.write("a leading dash at the root")
    pack(directory / "a.gomp", root)
    return directory / "a.gomp"


@pytest.fixture(scope="module")
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for compiled Python modules."""
    return tmp_path_factory.mktemp("bytecode")


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, hostile_archive: Path, bytecode: Path, tmp_path: Path) -> Iterator[Shell]:
    """A shell in tmp_path, which contains the archive as a.gomp."""
    name = request.param
    if name != "bash" and not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    shutil.copy(hostile_archive, tmp_path)
    shell = Shell(tmp_path, name, bytecode)
    yield shell
    shell.close()


def written_by(path: Path) -> str | None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.exists() and (content := path.read_text()):
            return content
        time.sleep(0.02)
    return None


def test_hostile_names_are_completed_and_not_evaluated(shell: Shell, tmp_path: Path) -> None:
    """TAB inserted the name `q$(touch PWNED)` unquoted into the command line, and the next Enter executed it."""
    (tmp_path / "record").touch()
    failed = []
    for number, name in enumerate(_NAMES):
        if shell.name == "fish" and b"\t" in name:
            continue
        shell.complete(f"gompfs cat a.gomp d{number}/")
        shell.enter("")
        recorded = (tmp_path / "arguments").read_bytes() if (tmp_path / "arguments").exists() else b""
        if recorded != b"cat\0a.gomp\0d%d/%s\0" % (number, name):
            failed.append(name)
            shell.cancel()
        (tmp_path / "arguments").unlink(missing_ok=True)
        assert not (tmp_path / "PWNED").exists(), name
    assert not failed, shell.written[-5000:].decode(errors="replace")


def test_a_name_with_a_leading_dash_is_not_an_option(shell: Shell, tmp_path: Path) -> None:
    shell.complete("gompfs cat a.gomp ./-")
    shell.enter(" >out")
    assert written_by(tmp_path / "out") == "a leading dash at the root"
    assert not (tmp_path / "PWNED").exists()


def test_names_are_completed_inside_quotes(shell: Shell, tmp_path: Path) -> None:
    for quote in "'\"":
        shell.complete(f"gompfs cat a.gomp {quote}d3/3 two")
        if shell.name != "fish":
            shell.enter(" >out")
            assert written_by(tmp_path / "out") == "content 3"
            (tmp_path / "out").unlink()
        shell.erase()
        shell.complete(f"gompfs cat a.gomp {quote}d0/0")
        shell.enter(" >out")
        assert written_by(tmp_path / "out") == "content 0"
        (tmp_path / "out").unlink()
    assert not (tmp_path / "PWNED").exists()


def test_commands_options_and_local_files(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "local archive.gomp").write_bytes((tmp_path / "a.gomp").read_bytes())
    shell.complete("gompfs verif")
    shell.enter("-q a.gomp && echo good >out1")
    assert written_by(tmp_path / "out1") == "good\n"
    shell.complete("gompfs ls --rec")
    shell.complete("local")
    shell.enter(" d1/ >out2")
    assert written_by(tmp_path / "out2") == "d1/1`touch PWNED`\n"


@pytest.mark.parametrize(
    ("line", "replaced", "words", "value", "inserted"),
    [
        ("gompfs ", "", ["gompfs", ""], "a b", r"a\ b"),
        ("gompfs cat a.gomp d", "d", ["gompfs", "cat", "a.gomp", "d"], "d$x", r"d\$x"),
        (r"gompfs 'a b' x\ \$y", r"x\ \$y", ["gompfs", "a b", "x $y"], "x $y`z", r"x\ \$y\`z"),
        ("gompfs \"a 'b", "a 'b", ["gompfs", "a 'b"], "a 'b!\"$c", "a 'b\"'!'\"\\\"\\$c"),
        ("gompfs 'a", "a", ["gompfs", "a"], "a'b$c", "a'\\''b$c"),
        ("gompfs a:b=c", "c", ["gompfs", "a:b=c"], "a:b=c d", r"c\ d"),
        (r"gompfs a:b\:c", r"b\:c", ["gompfs", "a:b:c"], "a:b:cd", r"b\:cd"),
        ('gompfs "a b"/c', '"a b"/c', ["gompfs", "a b/c"], "a b/cd", r"a\ b/cd"),
        (r'gompfs "a\n\"$(b', r"a\n\"$(b", ["gompfs", r'a\n"$(b'], r'a\n"$(b', r"a\\n\"\$(b"),
        ("gompfs a\\", "a\\", ["gompfs", "a"], "a b", r"a\ b"),
        ("gompfs ", "", ["gompfs", ""], "a'\n\u00e9\udcff", "'a'\\''\n\u00e9\udcff'"),
        ("gompfs ", "", ["gompfs", ""], "\u00e9\udcff~", "\u00e9\udcff\\~"),
    ],
)
def test_lines_of_bash(line: str, replaced: str, words: list[str], value: str, inserted: str) -> None:
    bash_line = BashLine(line, replaced)
    assert bash_line.words == words
    assert bash_line.quoted(value) == inserted


def test_an_old_script_gets_no_answer(gompfs) -> None:
    """The scripts printed by earlier versions insert names unquoted, so they must get no names."""
    environment = {"_GOMPFS_COMPLETE": "bash_complete", "COMP_CWORD": "1", "COMP_WORDS": "gompfs um"}
    assert gompfs(**environment).output == b""


def test_the_answer_to_a_shell(gompfs, archive) -> None:
    result = gompfs("um", _GOMPFS_COMPLETE="zsh")
    assert re.fullmatch(rb"plain\0umount\0[^\0]+\0", result.output)
    result = gompfs("cat", archive, "docs/", _GOMPFS_COMPLETE="zsh")
    assert result.output == b"entry\0docs/a.txt\0\0entry\0docs/b.txt\0\0"


def completions(directory: Path, *words: str) -> list[str]:
    """What zsh is told."""
    environment = {**os.environ, "_GOMPFS_COMPLETE": "zsh"}
    command = [sys.executable, "-P", "-m", "gompfs", *words]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, check=True)
    return [os.fsdecode(value) for value in done.stdout.split(b"\0")[1::3]]


def test_mount_options_are_completed(tmp_path: Path) -> None:
    every = completions(tmp_path, "mount", "-o", "")
    assert {option.name for option in MOUNT_OPTIONS} == {value.partition("=")[0] for value in every} | {"stats=public"}
    assert completions(tmp_path, "mount", "-o", "verify,ca") == ["verify,cache_size="]
    assert completions(tmp_path, "mount", "-o", "stats=") == [
        *("stats=public", "stats=hidden", "stats=visible", "stats=off"),
    ]
    assert completions(tmp_path, "mount", "-o", "nothing") == []


def test_mount_options_in_a_shell(shell: Shell, tmp_path: Path) -> None:
    """Nothing is put after an equals sign, where the value follows, nor evaluated."""
    (tmp_path / "record").touch()
    shell.complete("gompfs mount -o verify,cache_s")
    shell.enter("1M a.gomp")
    assert (tmp_path / "arguments").read_bytes() == b"mount\0-o\0verify,cache_size=1M\0a.gomp\0"
