"""Tells by what it is given which source reads it."""

from __future__ import annotations

import os
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, cast

from gompfs.errors import PackError
from gompfs.pack.sources.base import Source
from gompfs.pack.sources.directory import DirectorySource
from gompfs.pack.sources.exclude import Exclusions
from gompfs.pack.sources.tar import TarSource, decompressed
from gompfs.pack.sources.zip import ZipSource

STANDARD_INPUT = "-"


def open_source(spec: str | os.PathLike[str], *, alone: bool = True, exclude: Sequence[str] = ()) -> Source:
    """The source for a directory, a tar of any compression, a zip, `-` (a tar on standard input) or a file.

    A directory that is packed `alone` becomes the archive's root; beside others it keeps its own name.
    Raises PackError when there is nothing at `spec`.
    """
    exclusions = Exclusions(exclude)
    if os.fspath(spec) == STANDARD_INPUT:
        return TarSource(cast(BinaryIO, sys.stdin.buffer), "standard input", exclusions=exclusions)
    path = Path(spec)
    if not path.exists():
        raise PackError("no such file or directory", path=path)
    name = os.fsencode(path.resolve().name)
    if path.is_dir():
        return DirectorySource(path, prefix=b"" if alone else name, exclusions=exclusions)
    if zipfile.is_zipfile(path):
        return ZipSource(path, exclusions=exclusions)
    if _is_tar(path):
        return TarSource(cast(BinaryIO, path.open("rb", buffering=0)), str(path), exclusions=exclusions)
    return DirectorySource(path, prefix=name, exclusions=exclusions)


def _is_tar(path: Path) -> bool:
    """Whether a tar header comes first, below any compression; needs a name with .tar or .t?z in it."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if ".tar" not in suffixes and suffixes[-1:] not in ([".tgz"], [".tbz"], [".tbz2"], [".txz"], [".tzst"]):
        return False
    with path.open("rb", buffering=0) as file:
        try:
            block = decompressed(cast(BinaryIO, file)).read(tarfile.BLOCKSIZE)
            tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except Exception as error:  # each decompressor has errors of its own
            raise PackError(f"named like a tar archive, but it cannot be read: {error}", path=path) from None
    return True
