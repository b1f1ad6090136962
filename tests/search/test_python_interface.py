"""The method `grep` of `gompfs.open`, and searches that meet damage."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ripgrep
from tree_helpers import pack

import gompfs
from gompfs.cli.application import run
from gompfs.errors import CorruptBlockError, EntryNotFoundError, OptionError

FILES = {"docs/a": b"one foo\ntwo\nfoo and foo\n", "docs/b.c": b"caf\xe9 foo\n", "c": b"Foo\n"}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_bytes(content)
    pack(tmp_path / "tree.gomp", tmp_path / "tree")
    return tmp_path / "tree.gomp"


def test_matches(archive: Path) -> None:
    with gompfs.open(archive) as files:
        assert [tuple(match) for match in files.grep("foo")] == [
            (b"docs/a", 1, 0, b"one foo\n", [(4, 7)], False),
            (b"docs/a", 3, 12, b"foo and foo\n", [(0, 3), (8, 11)], False),
            (b"docs/b.c", 1, 0, b"caf\xe9 foo\n", [(5, 8)], False),
        ]
        assert [match.path for match in files.grep(b"foo", ignore_case=True, max_count=1)] == [
            b"c",
            b"docs/a",
            b"docs/b.c",
        ]
        assert [match.path for match in files.grep("two", "caf", path="/docs/", glob=["*.c"])] == [b"docs/b.c"]
        assert [match.line for match in files.grep("foo\ntwo", multiline=True, fixed_strings=True)] == [
            b"one foo\ntwo\n"
        ]
        assert list(files.grep("nowhere")) == []


MORE_FILES = {
    **FILES,
    "docs/deep/er/d.py": b"import foo\n\nfoo.foo(Foo)\n\n\n# the end of foo",
    "docs/e.h": b"food\nfoo\nfoo\n" * 3,
    "data": b"foo before\n\0foo after a NUL\nfoo\n",
    "\u00e4.txt": "F\u00d6O f\u00f6o\nfoo\u00f6\n".encode(),
}


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ({}, []),
        ({"smart_case": True}, ["-S"]),
        ({"patterns": ["Foo"], "smart_case": True}, ["-S", "-e", "Foo"]),
        ({"patterns": ["f\u00f6o"], "ignore_case": True}, ["-i", "-e", "f\u00f6o"]),
        ({"word_regexp": True}, ["-w"]),
        ({"line_regexp": True}, ["-x"]),
        ({"invert_match": True}, ["-v"]),
        ({"patterns": ["(?s)foo.*foo"], "multiline": True}, ["-U", "-e", "(?s)foo.*foo"]),
        ({"text": True}, ["-a"]),
        ({"encoding": "latin1"}, ["-E", "latin1"]),
        ({"ignore_file": "rules"}, ["--ignore-file=rules"]),
        ({"max_count": 2}, ["-m2"]),
        ({"max_count": 0}, ["-m0"]),
        ({"before_context": 1, "after_context": 2}, ["-B1", "-A2"]),
        ({"patterns": ["Foo"], "before_context": 9, "max_count": 1}, ["-B9", "-m1", "-e", "Foo"]),
        ({"glob": "*.c"}, ["-g*.c"]),
        ({"glob": ["!*.c", b"!c"]}, ["-g!*.c", "-g!c"]),
        ({"type": "py"}, ["-tpy"]),
        ({"type": ["c", "py"], "type_not": "h"}, ["-tc", "-tpy", "-Th"]),
        ({"max_depth": 1}, ["--max-depth=1"]),
        ({"max_depth": 2}, ["--max-depth=2"]),
        ({"context": 1}, ["-C1"]),
        ({"sort": "none"}, []),
    ],
    ids=str,
)
def test_arguments_mean_what_options_of_ripgrep_mean(
    arguments: dict[str, Any], options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules").write_text("docs/e.h\n")
    options = [option.replace("=rules", f"={tmp_path}/rules") for option in options]
    for name, content in MORE_FILES.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_bytes(content)
    pack(tmp_path / "tree.gomp", tmp_path / "tree")
    arguments = dict(arguments)
    patterns = arguments.pop("patterns", None)
    expected = list(ripgrep_matches(tmp_path / "tree", [*options, *(["-e", "foo"] if patterns is None else [])]))
    with gompfs.open(tmp_path / "tree.gomp") as files:
        found = [tuple(match) for match in files.grep(*(patterns or ["foo"]), **arguments)]
    assert (sorted(found) if arguments.get("sort") == "none" else found) == expected


def ripgrep_matches(tree: Path, options: list[str]) -> Iterator[tuple[Any, ...]]:
    """Yields the fields of LineMatch."""
    command = [ripgrep.PROGRAM, "--no-config", "--json", "-uu", "--sort=path", *options]
    done = subprocess.run(command, cwd=tree, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.stderr == b""

    def bytes_of(value: dict[str, str]) -> bytes:
        return value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])

    for message in map(json.loads, done.stdout.splitlines()):
        kind, data = message["type"], message["data"]
        if kind in ("match", "context"):
            spans = [(match["start"], match["end"]) for match in data["submatches"]]
            path, line = bytes_of(data["path"]), bytes_of(data["lines"])
            yield path, data["line_number"], data["absolute_offset"], line, spans, kind == "context"


def test_errors(archive: Path) -> None:
    with gompfs.open(archive) as files:
        with pytest.raises(OptionError):
            files.grep("(")
        with pytest.raises(OptionError):
            files.grep("x", glob=["["])
        with pytest.raises(OptionError, match="unknown file type 'pyt'"):
            files.grep("x", type="pyt")
        with pytest.raises(OptionError, match="sort must be"):
            files.grep("x", sort="size")
        for wrong in ("words", "color", "patterns", "only_matching"):
            with pytest.raises(TypeError, match=f"grep\\(\\) has no option '{wrong}'"):
                files.grep("x", **{wrong: True})
        for name in ("max_count", "before_context", "context", "max_depth"):
            with pytest.raises(OptionError, match=f"{name} must not be negative"):
                files.grep("x", **{name: -1})
        with pytest.raises(EntryNotFoundError):
            files.grep("x", path="none")


def test_a_damaged_block(archive: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Files with damage are reported, and the status is 2."""
    with gompfs.open(archive) as files:
        offset = files.archive.segments[0].blocks.archive_offsets[0]
    content = bytearray(archive.read_bytes())
    content[offset + 40] ^= 1
    archive.write_bytes(content)
    with gompfs.open(archive) as files, pytest.raises(CorruptBlockError):
        list(files.grep("foo"))
    assert run(["grep", "foo", str(archive)]) == 2
    errors = capfdbinary.readouterr().err.splitlines()
    assert len(errors) == len(FILES)
    assert all(b"block 0" in line for line in errors)
