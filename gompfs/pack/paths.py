"""Packs files, directories and archives by path, for gompfs.pack_archive."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.errors import OptionError
from gompfs.options import PackOptions
from gompfs.pack.packer import PackReport, pack_archive
from gompfs.pack.sources import open_source
from gompfs.pack.sources.factory import STANDARD_INPUT


def pack_paths(
    paths: Sequence[str | os.PathLike[str]],
    target: Path,
    *,
    codec: str,
    level: int,
    exclude: Sequence[str | bytes],
    force: bool,
    check: bool,
    engine: str,
) -> PackReport:
    """See gompfs.pack_archive."""
    options = PackOptions(Codec.from_label(codec), level=level, force=force, check=check)
    if not paths:
        raise OptionError("nothing to pack")
    check_target(paths, target)
    sources = [open_source(path, alone=len(paths) == 1, exclude=exclude) for path in paths]
    return pack_archive(sources, target, options, engine=select_engine(engine))


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
