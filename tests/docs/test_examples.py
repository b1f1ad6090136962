"""The examples in README.md and in docs/ work, and print what these show."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from documents import ROOT, comparable
from session import run_session

from gompfs.cli.application import COMMAND_MODULES, application
from gompfs.options import MountOptions

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OPERATORS = {"|", "||", "&&", ";", "(", ")"}


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page in a language."""
    every = re.findall(r"^```([a-z]*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    return [text for name, text in every if name == language]


def steps(page: Path) -> Iterator[tuple[str, str]]:
    """Each command that the console blocks of a page show, with its output."""
    for block in blocks(page, "console"):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = step.partition("\n")
            yield command, output


@pytest.mark.parametrize("name", ["README.md", "docs/tutorial.md"])
def test_sessions_print_what_the_page_shows(name: str, sample: Path) -> None:
    shown = list(steps(ROOT / name))
    assert len(shown) >= 3
    done = list(run_session([command for command, _ in shown], sample))
    assert [(c, comparable(output)) for c, output in done] == [(c, comparable(output)) for c, output in shown]


def test_the_python_example_runs(tmp_path: Path) -> None:
    (tmp_path / "corpus" / "docs").mkdir(parents=True)
    (tmp_path / "corpus" / "docs" / "readme.txt").write_bytes(b"hello\n")
    pack = [sys.executable, "-m", "gompfs", "pack", "-q", "corpus", "corpus.gomp"]
    subprocess.run(pack, cwd=tmp_path, check=True)
    (example,) = blocks(ROOT / "docs/howto/python-fsspec.md", "python")
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.splitlines() == [b"hello", b"docs ['readme.txt'] 2", b"hello 1"]


def invocations(page: Path) -> Iterator[list[str]]:
    """The arguments of each `gompfs` that the shell blocks of a page run."""
    for block in blocks(page, "") + blocks(page, "console"):
        for line in block.splitlines():
            if "gompfs " not in line or line.startswith(("pandas", "duckdb", "echo", "trap")):
                continue
            words = list(shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True))
            if "gompfs" in words[:2]:
                arguments = words[words.index("gompfs") + 1 :]
                end = next((i for i, word in enumerate(arguments) if word in OPERATORS), len(arguments))
                yield arguments[:end]


def command_named(name: str) -> click.Command:
    command = application.get_command(click.Context(application), name)
    assert command is not None, name
    return command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_options_exist(page: Path) -> None:
    for name, *arguments in invocations(page):
        known = {option for parameter in command_named(name).params for option in (*parameter.opts, "-h", "--help")}
        used = [argument for argument in arguments if argument.startswith("-") and argument != "-"]
        assert set(used) <= known, (name, arguments)
        for position, argument in enumerate(arguments):
            if argument == "-o":
                MountOptions.parse(arguments[position + 1])


def test_every_command_is_shown_in_an_example() -> None:
    shown = {name for page in PAGES for name, *_ in invocations(page)}
    assert {"pack", "add", "mount", "umount", "stats", "verify", "extract"} <= shown <= set(COMMAND_MODULES)


def test_examples_of_fstab_parse() -> None:
    (fstab,) = re.findall(r"/mnt/all gompfs (\S+) ", (ROOT / "docs/howto/fstab-systemd.md").read_text())
    assert MountOptions.parse(fstab).several == "union"
