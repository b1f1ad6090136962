"""gompfs: mount Gompresso archives as directories.

`gompfs.open(path)` gives the files of an archive, by path, without a mount. All errors of gompfs are here too:
GompfsError and its subclasses, which gompfs.errors describes.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's, which takes longer to import than all the rest of this
if TYPE_CHECKING:
    import os

    from gompfs.errors import (
        ArchiveFormatError,
        CorruptBlockError,
        CorruptIndexError,
        EngineUnavailableError,
        EntryIsDirectoryError,
        EntryNotDirectoryError,
        EntryNotFoundError,
        EntryTypeError,
        ExtractError,
        GompfsError,
        MountError,
        OptionError,
        PackError,
        StatsUnavailableError,
        SymlinkLoopError,
        UnreadableFileError,
        UnsupportedVersionError,
    )
    from gompfs.files import ArchiveFiles

__version__ = "0.1.0"
__all__ = [
    "ArchiveFormatError",
    "CorruptBlockError",
    "CorruptIndexError",
    "EngineUnavailableError",
    "EntryIsDirectoryError",
    "EntryNotDirectoryError",
    "EntryNotFoundError",
    "EntryTypeError",
    "ExtractError",
    "GompfsError",
    "MountError",
    "OptionError",
    "PackError",
    "StatsUnavailableError",
    "SymlinkLoopError",
    "UnreadableFileError",
    "UnsupportedVersionError",
    "__version__",
    "open",
]


def __getattr__(name: str) -> object:
    """An error by its name: gompfs.errors is imported when the first one is asked for."""
    if name in __all__:
        from gompfs import errors

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def open(  # noqa: A001 - the field's name for it
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
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
