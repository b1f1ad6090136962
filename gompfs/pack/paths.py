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
from gompfs.pack.sources import open_sources
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
