"""Packs files, directories and archives by path, for gompfs.pack_archive."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gompfs.engine import select_engine
from gompfs.errors import OptionError
from gompfs.options import PackOptions
from gompfs.pack.packer import PackReport, pack_archive
from gompfs.pack.sources import Source, open_source
from gompfs.pack.sources.factory import STANDARD_INPUT


def pack_paths(
    paths: Sequence[str | os.PathLike[str]],
    target: Path,
    options: PackOptions,
    *,
    engine: str,
    sort: str,
    **how: Any,
) -> PackReport:
    """See gompfs.pack_archive. `how` has the arguments of open_source."""
    if not paths:
        raise OptionError("nothing to pack")
    check_target(paths, target)
    sources = open_sources(paths, sort=sort, **how)
    return pack_archive(sources, target, options, engine=select_engine(engine, options.jobs))


def open_sources(paths: Sequence[str | os.PathLike[str]], *, sort: str, **how: Any) -> list[Source]:
    """Returns the sources for `paths`, in their order (`sort` is "source"), or by their names ("name").

    `how` has the arguments of open_source. Raises OptionError if a source has an order of its own, and as open_source.
    """
    if sort == "name":
        paths = sorted(paths, key=lambda path: os.path.basename(os.path.abspath(os.fsencode(path))))
    elif sort != "source":
        raise OptionError(f"sort must be 'source' or 'name', not {sort!r}")
    sources = [open_source(path, alone=len(paths) == 1, **how) for path in paths]
    for source in sources:
        if sort == "name" and not source.sorted:
            raise OptionError(
                "--sort name is not possible: the entries of this source keep their own order", path=source.name
            )
    return sources


def check_target(paths: Sequence[str | os.PathLike[str]], target: Path) -> None:
    """Raises OptionError if the archive is standard output or one of its own sources."""
    if str(target) == "-":
        raise OptionError(
            "an archive cannot be written to standard output, because its first bytes are written last; "
            "for a file named -, write ./-"
        )
    try:
        archive = target.stat()
    except OSError:
        return
    for path in paths:
        try:
            source = os.fstat(0) if os.fspath(path) == STANDARD_INPUT else os.stat(path)
        except OSError:
            continue
        if os.path.samestat(source, archive):
            raise OptionError("ARCHIVE is one of the SOURCEs", path=target)
