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

from gompfs.cli.completion import SCRIPTS, BashLine

_QUIET_SECONDS = 0.4
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


class Shell:
    """An interactive shell on a pseudo terminal, with the completion script loaded."""

    def __init__(self, directory: Path, command: list[str | Path], script: str, prompt: str) -> None:
        binaries = directory / "bin"
        binaries.mkdir()
        (binaries / "gompfs").write_text(
            f'#!/bin/sh\nPYTHONPATH="{PACKAGE_PARENT}" exec "{sys.executable}" -P -m gompfs "$@"\n'
        )
        (binaries / "gompfs").chmod(0o755)
        (directory / "script").write_text(script)
        self.written = b""
        controller, terminal = pty.openpty()
        self._controller = controller
        environment = {
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "HOME": str(directory),
            "TERM": "xterm",
            "LC_ALL": "C.UTF-8",
            "PYTHONPYCACHEPREFIX": str(directory / "pycache"),
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
        self.type(prompt + "\n")

    def read(self, *, quiet_seconds: float = _QUIET_SECONDS, limit: float = 30) -> bytes:
        """Returns what the shell writes, until it has written something and then nothing for `quiet_seconds`."""
        piece = b""
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            if not select.select([self._controller], [], [], quiet_seconds if piece else 10)[0]:
                break
            try:
                new = os.read(self._controller, 65536)
            except OSError:
                break
            # fish asks the terminal these questions; a terminal would answer.
            for question, reply in ((b"\x1b[c", b"\x1b[?62c"), (b"\x1b[6n", b"\x1b[1;1R")):
                if question in new:
                    os.write(self._controller, reply)
            piece += new
        self.written += piece
        return piece

    def type(self, text: str) -> bytes:
        os.write(self._controller, text.encode())
        return self.read()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._controller)


COMMANDS: dict[str, tuple[list[str | Path], str]] = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "PS1='> '; set -H; bind 'set bell-style none'; . ./script"),
    "zsh": (["zsh", "-f", "-i"], "PS1='> '; autoload -U compinit; compinit -u -D; unsetopt beep; . ./script"),
    "fish": (["fish", "--no-config", "-i"], "function fish_prompt; echo '> '; end; source ./script"),
}


@pytest.fixture
def hostile_tree(tmp_path: Path) -> Path:
    """Has one directory per hostile name. Each contains one file of that name, whose content is its number."""
    root = tmp_path / "tree"
    for number, name in enumerate(_NAMES):
        (root / f"d{number}").mkdir(parents=True)
        path = os.path.join(os.fsencode(root / f"d{number}"), name)
        with open(path, "w") as file:
            file.write(f"content {number}")
    with open(os.path.join(os.fsencode(root), _NAMES[17]), "w") as file:
        file.write("a leading dash at the root")
    pack(tmp_path / "a.gomp", root)
    return tmp_path


@pytest.fixture(params=SCRIPTS)
def shell(request: pytest.FixtureRequest, hostile_tree: Path) -> Iterator[Shell]:
    name = request.param
    if name != "bash" and not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    shell = Shell(hostile_tree, *[COMMANDS[name][0], SCRIPTS[name], COMMANDS[name][1]])
    shell.name = name  # type: ignore[attr-defined]
    yield shell
    shell.close()


def written_by(path: Path) -> str | None:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if path.exists() and (content := path.read_text()):
            return content
        time.sleep(0.05)
    return None


def test_hostile_names_are_completed_and_not_evaluated(shell: Shell, hostile_tree: Path) -> None:
    """TAB inserted the name `q$(touch PWNED)` unquoted into the command line, and the next Enter executed it."""
    failed = []
    for number, name in enumerate(_NAMES):
        if shell.name == "fish" and b"\t" in name:  # type: ignore[attr-defined]
            continue
        shell.type(f"gompfs cat a.gomp d{number}/\t")
        shell.type(f" >out{number}\r")
        if written_by(hostile_tree / f"out{number}") != f"content {number}":
            failed.append(name)
            shell.type("\x03")
        assert not (hostile_tree / "PWNED").exists(), name
    assert not failed, shell.written[-5000:].decode(errors="replace")


def test_a_name_with_a_leading_dash_is_not_an_option(shell: Shell, hostile_tree: Path) -> None:
    shell.type("gompfs cat a.gomp ./-\t")
    shell.type(" >out\r")
    assert written_by(hostile_tree / "out") == "a leading dash at the root"
    assert not (hostile_tree / "PWNED").exists()


def test_names_are_completed_inside_quotes(shell: Shell, hostile_tree: Path) -> None:
    for quote in "'\"":
        shell.type(f"gompfs cat a.gomp {quote}d3/3 two\t")
        shell.type(" >out\r")
        if shell.name != "fish":  # type: ignore[attr-defined]
            assert written_by(hostile_tree / "out") == "content 3"
            (hostile_tree / "out").unlink()
        shell.type("\x03")
        shell.type(f"gompfs cat a.gomp {quote}d0/0\t")
        shell.type(" >out\r")
        assert written_by(hostile_tree / "out") == "content 0"
        (hostile_tree / "out").unlink()
    assert not (hostile_tree / "PWNED").exists()


def test_commands_options_and_local_files(shell: Shell, hostile_tree: Path) -> None:
    (hostile_tree / "local archive.gomp").write_bytes((hostile_tree / "a.gomp").read_bytes())
    shell.type("gompfs comple\t")
    shell.type("bash >out1\r")
    assert written_by(hostile_tree / "out1") == SCRIPTS["bash"].lstrip()
    shell.type("gompfs ls --rec\t")
    shell.type("local\t")
    shell.type(" d1/ >out2\r")
    assert written_by(hostile_tree / "out2") == "d1/1`touch PWNED`\n"


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
        (r'gompfs "a\n\"$(b', r'a\n\"$(b', ["gompfs", r'a\n"$(b'], r'a\n"$(b', r"a\\n\"\$(b"),
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
