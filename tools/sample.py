"""Makes the sample tree that tools/demo packs: two books, the C++ and CUDA sources of gompfs, and Python's library.

The library is that of the interpreter that runs this script, without its tests: about 700 files of 11 MB, which every
system that runs gompfs has. So the sample is large and varied enough to show a real ratio, and the repository need not
carry it. `python3 tools/sample.py DIRECTORY` makes the tree at DIRECTORY.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_LEFT_OUT = {"__pycache__", "dist-packages", "encodings", "lib-dynload", "site-packages", "test", "tests"}


def _library_sources(library: Path) -> Iterator[Path]:
    """Yields the paths of the library's modules, relative to its directory."""
    for directory, names, files in os.walk(library):
        names[:] = sorted(set(names) - _LEFT_OUT)
        here = Path(directory).relative_to(library)
        yield from (here / name for name in sorted(files) if name.endswith(".py"))


def make_sample(target: Path) -> None:
    """Creates the sample tree at `target`, which must not exist."""
    shutil.copytree(ROOT / "examples" / "corpus", target / "books")
    for directory in ("native", "kernels"):
        shutil.copytree(ROOT / directory, target / "gompfs" / directory)
    library = Path(sysconfig.get_path("stdlib"))
    for relative in _library_sources(library):
        copy = target / "python" / relative
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(library / relative, copy)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tools/sample.py DIRECTORY")
    make_sample(Path(sys.argv[1]))
