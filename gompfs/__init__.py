"""gompfs: mount Gompresso archives as directories.

`gompfs.open(path)` gives an Archive to read entries and file contents from without a mount.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gompfs.archive import Archive

__version__ = "0.1.0"
__all__ = ["__version__", "open"]


def open(path: str | os.PathLike[str], *, engine: str = "auto") -> Archive:  # noqa: A001 - the field's name for it
    """Open an archive for reading; raises GompfsError for one that is damaged, OSError for no file."""
    from gompfs.archive import Archive
    from gompfs.engine import select_engine

    return Archive(path, engine=select_engine(engine))
