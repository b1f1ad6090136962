"""Packs a directory as `gompfs pack` did in format version 1: `python -m tools.bench.pack_version_1 TREE ARCHIVE`."""

from __future__ import annotations

import sys
from pathlib import Path

from gompfs.engine import select_engine
from gompfs.options import PackOptions
from gompfs.pack import open_source, pack_archive


def main(tree: str, archive: str) -> None:
    """Pack with statistics, with the options that were the default."""
    options = PackOptions(version=1, words="whitespace", dependency_elimination=True)
    pack_archive([open_source(tree, alone=True)], Path(archive), options, engine=select_engine("cpu"))


if __name__ == "__main__":
    main(*sys.argv[1:])
