"""gompfs: mount Gompresso archives as directories.

`gompfs.open(path)` opens an archive for reading its files by path, without a mount. `gompfs.pack_archive(paths,
target)` makes an archive. `gompfs.BufferCodec` compresses buffers in memory. The package also exports all errors:
GompfsError and its subclasses, which gompfs.errors describes.
"""

from __future__ import annotations

TYPE_CHECKING = False  # stands in for typing.TYPE_CHECKING: importing typing takes longer than the rest of this module
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from gompfs.arrays import BufferCodec
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
        UnsupportedFormatError,
    )
    from gompfs.files import ArchiveFiles
    from gompfs.pack import PackReport

__version__ = "0.1.0"
__all__ = [
    "ArchiveFormatError",
    "BufferCodec",
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
    "UnsupportedFormatError",
    "__version__",
    "open",
    "pack_archive",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    """Returns an exported class. The first access imports its module."""
    if name == "BufferCodec":
        from gompfs.arrays import BufferCodec

        return BufferCodec
    if name in __all__:
        from gompfs import errors

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def open(  # noqa: A001 - zipfile, tarfile and others use this name too
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    *,
    engine: str = "auto",
    verify: bool = False,
    cache_size: int = 64 << 20,
    gpu_memory: int | None = None,
    gpu_resident: str = "auto",
) -> ArchiveFiles:
    """Open an archive for reading. Raises GompfsError if it is damaged, OSError if the file cannot be opened.

    `engine` selects the decoder, with the values of the option `--engine`. With `verify`, decoded bytes are also
    compared with their checksums. `cache_size` is the capacity of the cache of decoded blocks, in bytes. `gpu_memory`
    limits what a GPU may use, in bytes (None: half of the free memory). `gpu_resident` says which compressed blocks
    stay in its memory: as many as fit (`auto`), none (`off`), or all (`on`), else the GPU is refused.
    """
    from os.path import getsize

    from gompfs.archive import Archive
    from gompfs.engine import select_engine
    from gompfs.files import ArchiveFiles
    from gompfs.options import GpuOptions

    gpu = GpuOptions(gpu_memory, gpu_resident, getsize(path) if gpu_resident == "on" else 0)
    archive = Archive(path, engine=select_engine(engine, gpu=gpu), verify=verify, cache_size=cache_size)
    return ArchiveFiles(archive, gpu)


def pack_archive(
    paths: Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    purpose: str | None = None,
    comment: str = "",
    codec: str | None = None,
    level: int | None = None,
    block_size: int | None = None,
    words: str = "identifiers",
    dictionary_size: int | None = None,
    dependency_elimination: bool = False,
    exclude: Sequence[str | bytes] = (),
    exclude_from: Sequence[str | os.PathLike[str]] = (),
    prefix: str | os.PathLike[str] | None = None,
    one_file_system: bool = False,
    skip_unreadable: bool = False,
    sort: str = "source",
    mtime_ns: int | None = None,
    owner: int | None = None,
    group: int | None = None,
    force: bool = False,
    check: bool = True,
    jobs: int = 0,
    engine: str = "auto",
) -> PackReport:
    """Pack files, directories, and members of tar and zip archives into a new archive at `target`.

    The arguments mean what the options of `gompfs pack` mean: one directory becomes the root, several keep their names;
    `exclude` has patterns as in .gitignore; with `force`, an existing archive is replaced; without `check`, what was
    written is not read back. `purpose` is what `--for` takes, and sets `codec`, `level` and `block_size` if they are
    None; without it, None stands for the defaults of the command. Sizes are in bytes; a `dictionary_size` of 0 means
    none, None that it depends on the sources. `comment` is noted by the archive. `mtime_ns`, `owner` and `group` are
    stored for all entries: nanoseconds, and numbers. The report returned has sizes and `warnings`, for example of files
    that were left out. Raises PackError, and OptionError for impossible arguments; `target` then is as before.
    """
    from pathlib import Path

    from gompfs.codec import Codec
    from gompfs.options import PackOptions
    from gompfs.pack import pack_paths

    chosen = {"codec": codec and Codec.from_label(codec), "level": level, "block_size": block_size}
    options = PackOptions.for_purpose(
        purpose,
        **{name: value for name, value in chosen.items() if value is not None},
        dependency_elimination=dependency_elimination,
        jobs=jobs,
        words=words,
        mtime_ns=mtime_ns,
        owner=owner,
        group=group,
        force=force,
        dictionary_size=dictionary_size,
        check=check,
        comment=comment,
    )
    return pack_paths(
        paths,
        Path(target),
        options,
        engine=engine,
        sort=sort,
        exclude=exclude,
        exclude_from=exclude_from,
        prefix=prefix,
        one_file_system=one_file_system,
        skip_unreadable=skip_unreadable,
    )
