"""The examples in README.md and in docs/ work, and print what these show."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import ROOT, comparable
from session import environment as session_environment
from session import run_session

from gompfs.cli.application import COMMAND_MODULES, command_named
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


def test_the_example_of_arrays_runs(tmp_path: Path) -> None:
    (tmp_path / "corpus" / "docs").mkdir(parents=True)
    (tmp_path / "corpus" / "docs" / "readme.txt").write_bytes(b"hello\n")
    pack = [sys.executable, "-m", "gompfs", "pack", "-q", "corpus", "corpus.gomp"]
    subprocess.run(pack, cwd=tmp_path, check=True)
    (example,) = blocks(ROOT / "docs/howto/arrays.md", "python")
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == b"2 [ 0  6 11] b'hello'\n"


def test_the_example_of_tables_runs(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "hamlet").write_bytes(b"to be or not to be\n")
    prepare = [
        "gompfs pack -q corpus corpus.gomp",
        "gompfs stats corpus.gomp term_vector --format parquet >words.parquet",
        "gompfs stats corpus.gomp tfidf --format arrow >tfidf.arrow",
    ]
    environment = session_environment()
    subprocess.run(["bash", "-ec", "\n".join(prepare)], cwd=tmp_path, check=True, env=environment)
    (example,) = blocks(ROOT / "docs/howto/statistics.md", "python")
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.splitlines() == [b"[('not', 1)]", b"(4, 5)", b"4 be", b"[('be or not',)]"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory with the trees and archives that the guides use, and a directory `work`."""
    text = b"an error to be or not to be " * 40
    trees = {"corpus/docs": "readme.txt", "src": "a.c", "more/docs": "more.txt", "old": "file", "new": "file"}
    for directory, name in trees.items():
        (tmp_path / directory).mkdir(parents=True)
        (tmp_path / directory / name).write_bytes(text)
    subprocess.run(["tar", "-C", tmp_path, "-cf", tmp_path / "sources.tar", "src"], check=True)
    (tmp_path / "work").mkdir()
    return tmp_path


def write_documents(directory: Path) -> None:
    """Writes the documents that the guide to statistics compares with an archive."""
    line = b'{"question": "to be or not?", "answer": "to be", "text": "an error"}\n'
    for name, content in {"gsm8k.jsonl": line, "tests.jsonl": line, "essay.txt": b"to be"}.items():
        (directory / name).write_bytes(content)
    (directory / "mmlu.jsonl.gz").write_bytes(gzip.compress(line))


@pytest.mark.parametrize("page", ["mount", "without-a-mount", "statistics"])
def test_commands_of_a_guide_succeed(page: str, home: Path) -> None:
    shell_blocks = blocks(ROOT / f"docs/howto/{page}.md", "")
    assert shell_blocks
    for block in shell_blocks:
        work = home / "work"
        shutil.rmtree(work)
        work.mkdir()
        shutil.copy(home / "sources.tar", work)
        write_documents(work)
        archives = [name for name in ("corpus", "old", "new") if f" {name}.gomp" in block]
        prepared = [f"gompfs pack -q ~/{name} {name}.gomp" for name in archives]
        commands = [line for line in block.splitlines() if not line.startswith("ssh ")]
        for shown, used in (("[PATH...]", ""), ("path/to/file", "docs/readme.txt"), ("sources.tar.zst", "sources.tar")):
            commands = [line.replace(shown, used) for line in commands]
        script = "\n".join(["set -e", *prepared, *commands])
        environment = session_environment() | {"HOME": str(home)}
        try:
            done = subprocess.run(
                ["bash", "-c", script], cwd=work, env=environment, capture_output=True, text=True, check=False
            )
        finally:
            for name in ("mnt", "all"):
                if os.path.ismount(work / name):
                    subprocess.run(["gompfs", "umount", "--lazy", work / name], env=environment, check=True)
        assert done.returncode == 0, (script, done.stdout, done.stderr)


def test_the_guide_to_packing_runs_from_start_to_end(home: Path) -> None:
    """Its commands follow each other in one directory: a later one failed because the archive existed."""
    shutil.copy(home / "sources.tar", home / "work")
    lines = "\n".join(blocks(ROOT / "docs/howto/pack.md", "")).replace("sources.tar.zst", "sources.tar").splitlines()
    script = "\n".join(["set -e", *(line for line in lines if not line.startswith("ssh "))])
    environment = session_environment() | {"HOME": str(home)}
    command = ["bash", "-c", script]
    done = subprocess.run(command, cwd=home / "work", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (script, done.stdout, done.stderr)


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_options_exist(page: Path) -> None:
    for name, *arguments in invocations(page):
        options = command_named(name).options
        known = {"-h", "--help", *(each for option in options for each in (*option.names, *option.opposites))}
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
