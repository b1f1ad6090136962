"""Archives with statistics, and coreutils as the oracle for them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from word_rules import ONE_WORD_PER_LINE

from gompfs.cli.application import run
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source, pack_archive

BINARY_PROBE_SIZE = 8192

# The end of a file ends a word. Leading whitespace of a file gives blank lines, which are dropped.
_COUNT_WORDS = r"""
    while IFS= read -r -d '' path; do cat -- "$path"; echo; done \
    | %s | sed '/^$/d' | sort | uniq -c | sed -E 's/^ *([0-9]+) (.*)$/\2\t\1/'
"""
_BY_COUNT = r"sort -t $'\t' -k2,2nr -k1,1"


def run_gompfs(*arguments: str | Path, status: int = 0) -> bytes:
    """Returns the standard output of a gompfs command, or its standard error if the expected status is not 0.

    The command runs in this process, since a process of its own would take longer to start than most commands take.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        with _redirected("stdout", 1, output), _redirected("stderr", 2, errors):
            ended = run(list(map(os.fspath, arguments)))
        output.seek(0)
        errors.seek(0)
        printed = errors.read()
        assert ended == status, printed
        return printed if status else output.read()


@contextmanager
def _redirected(name: str, descriptor: int, file: BinaryIO) -> Iterator[None]:
    """Writes to a file what is written to a standard stream of Python, or to its descriptor."""
    before, kept = getattr(sys, name), os.dup(descriptor)
    os.dup2(file.fileno(), descriptor)
    with open(descriptor, "w", closefd=False) as stream:
        setattr(sys, name, stream)
        try:
            yield
        finally:
            stream.flush()
            setattr(sys, name, before)
            os.dup2(kept, descriptor)
            os.close(kept)


def shell(script: str, given: bytes) -> bytes:
    """Returns what a bash script prints in the C locale."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script],
        input=given,
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
        env={**os.environ, "LC_ALL": "C"},
    )
    return done.stdout


def is_text(path: Path) -> bool:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        has_holes = size > 0 and os.lseek(file.fileno(), 0, os.SEEK_HOLE) < size
        file.seek(0)
        return not has_holes and b"\0" not in file.read(BINARY_PROBE_SIZE)


def files_under(root: Path) -> list[Path]:
    """Returns regular files, each once: hard links are one file."""
    by_inode = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                by_inode.setdefault(path.stat().st_ino, path)
    return list(by_inode.values())


def count_with_coreutils(paths: Sequence[Path], word_rule: str = "whitespace") -> tuple[bytes, bytes]:
    """Returns the expected files `wordcount` and `sort` for the text files among `paths`."""
    listed = b"".join(os.fsencode(path) + b"\0" for path in paths if is_text(path))
    by_word = shell(_COUNT_WORDS % ONE_WORD_PER_LINE[word_rule], listed)
    return shell(_BY_COUNT, by_word), by_word


def pack(target: Path, *specs: Path, kind: str = "parts", **options: object) -> Path:
    """Packs directories, files and tars, with text in `parts` or in `blocks` of gompresso-bit."""
    pack_archive([open_source(spec) for spec in specs], target, _options(kind, options), engine=select_engine("cpu"))
    return target


def add(target: Path, *specs: Path, kind: str = "parts", **options: object) -> None:
    """Adds to an archive with the options of `pack`."""
    add_to_archive(target, [open_source(spec) for spec in specs], _options(kind, options), engine=select_engine("cpu"))


def _options(kind: str, options: dict[str, object]) -> PackOptions:
    of_kind = {"parts": {"codec": Codec.GOMPRESSO_TADOC, "part_size": 3000}, "blocks": {"codec": Codec.GOMPRESSO_BIT}}
    return PackOptions(**{"words": "whitespace", **of_kind[kind], **options})  # type: ignore[arg-type]
