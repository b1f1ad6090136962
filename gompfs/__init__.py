"""gompfs: mount Gompresso archives as directories.

`gompfs.open(path)` gives the files of an archive, by path, without a mount.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's, which takes longer to import than all the rest of this
if TYPE_CHECKING:
    import os

    from gompfs.files import ArchiveFiles

__version__ = "0.1.0"
__all__ = ["__version__", "open"]


def open(  # noqa: A001 - the field's name for it
    path: str | os.PathLike[str],
    *,
    engine: str = "auto",
    verify: bool = False,
    cache_size: int = 256 << 20,
) -> ArchiveFiles:
    """Open an archive for reading; raises GompfsError for one that is damaged, OSError for no file.

    `engine` decodes the blocks, as `--engine` of the commands has it; `verify` checks decoded bytes against their
    checksums too; `cache_size` bounds the decoded blocks that are kept, in bytes.
    """
    from gompfs.archive import Archive
    from gompfs.engine import select_engine
    from gompfs.files import ArchiveFiles

    return ArchiveFiles(Archive(path, engine=select_engine(engine), verify=verify, cache_size=cache_size))
