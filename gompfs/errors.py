"""Every error that gompfs raises, in one tree.

    GompfsError
    +-- ArchiveFormatError (ValueError)      the file is not an archive, or its structure is damaged
    |   +-- UnsupportedFormatError           a format version, or a feature, that this release does not have
    |   +-- CorruptIndexError                the index does not match its checksum or contradicts itself
    +-- CorruptBlockError (OSError)          one block's bytes are damaged
    +-- EntryNotFoundError (FileNotFoundError)   no entry has this path or inode number
    +-- EntryTypeError (OSError)             the entry does not have the type that the operation needs
    |   +-- EntryIsDirectoryError (IsADirectoryError)       a directory where a file is needed
    |   +-- EntryNotDirectoryError (NotADirectoryError)     another entry where a directory is needed
    |   +-- SymlinkLoopError                 a path with too many symbolic links
    +-- EngineUnavailableError               the requested engine cannot run on this machine
    +-- PackError                            a source cannot be read, or the archive cannot be written
    |   +-- UnreadableFileError              a file whose content cannot be read, and that may be left out
    +-- ExtractError                         an entry cannot be written
    +-- MountError                           mounting or unmounting failed
    +-- StatsUnavailableError                statistics of a binary file, or that need too much memory
    +-- OptionError (ValueError)             the value of an option is invalid

Each error has the attributes `archive`, `path` and `block`, as far as they are known. The message names them.
"""

from __future__ import annotations

import os
import sys
from errno import EBADMSG, EINVAL, EIO, EISDIR, ELOOP, ENODATA, ENOENT, ENOTDIR, EUCLEAN

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
    "UnsupportedFormatError",
    "display_path",
    "display_text",
    "is_disk_error",
]


def display_path(path: str | bytes | os.PathLike[str]) -> str:
    """Returns a path as text that is safe to print on a terminal: control characters and invalid UTF-8 are escaped."""
    return display_text(os.fsencode(path).decode("utf-8", "surrogateescape"))


def display_text(text: str) -> str:
    """Returns text that is safe to print on a terminal: characters that do not print are escaped.

    Surrogates stand for bytes that are not UTF-8, as those of os.fsdecode do. Text that is safe is returned as it is.
    """
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode()


def pip_install(extra: str) -> str:
    """Returns the command that installs an extra of gompfs where this gompfs is, whatever `pip` would be."""
    import shlex  # here, since it imports re

    return f"{shlex.quote(sys.executable)} -m pip install 'gompfs[{extra}]'"


# What file systems report for bytes that they cannot read, or that do not match their checksum.
_DISK_ERRORS = (EIO, EBADMSG, ENODATA, EUCLEAN)


def is_disk_error(error: OSError) -> bool:
    """Returns whether the operating system could not read some bytes of a file."""
    return error.errno in _DISK_ERRORS and not isinstance(error, GompfsError)


_OSERROR_NAMES = {"path": "filename", "message": "strerror"}


class GompfsError(Exception):
    """Base of all errors of gompfs.

    `archive` is the archive file, `path` the entry inside it or the source file, `block` the block number. Each is
    None if it is not known. `str(error)` names those that are known.
    """

    def __init__(
        self,
        message: str,
        *,
        archive: str | bytes | os.PathLike[str] | None = None,
        path: str | bytes | os.PathLike[str] | None = None,
        block: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.archive = None if archive is None else display_path(archive)
        self.path = None if path is None else display_path(path)
        self.block = block

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute. Errors that are also an OSError have path and message as `filename` and `strerror` too."""
        super().__setattr__(name, value)
        if isinstance(self, OSError) and name in _OSERROR_NAMES:
            super().__setattr__(_OSERROR_NAMES[name], value)

    def __str__(self) -> str:
        names = [name for name in (self.archive, self.path) if name]
        if self.block is not None:
            names.append(f"block {self.block}")
        return ": ".join([*names, self.message])


class ArchiveFormatError(GompfsError, ValueError):
    """The file is not a gompfs archive, or its structure is damaged."""


class UnsupportedFormatError(ArchiveFormatError):
    """The archive has a format version, or needs a feature, that this release does not have."""


class CorruptIndexError(ArchiveFormatError):
    """The index does not match its checksum, or contradicts itself or the file."""


class CorruptBlockError(GompfsError, OSError):
    """One block's bytes are damaged; other blocks stay readable."""

    errno = EIO


class EntryNotFoundError(GompfsError, FileNotFoundError):
    """The archive has no entry with this path or inode number."""

    errno = ENOENT


class EntryTypeError(GompfsError, OSError):
    """The entry does not have the type that the operation needs, as when a device is read as a file."""

    errno = EINVAL


class EntryIsDirectoryError(EntryTypeError, IsADirectoryError):
    """The entry is a directory, but a file is needed."""

    errno = EISDIR


class EntryNotDirectoryError(EntryTypeError, NotADirectoryError):
    """The entry is not a directory, but a directory is needed, or an entry below it was requested."""

    errno = ENOTDIR


class SymlinkLoopError(EntryTypeError):
    """A path leads through too many symbolic links."""

    errno = ELOOP


class EngineUnavailableError(GompfsError):
    """The requested engine cannot run on this machine."""


class PackError(GompfsError):
    """A source cannot be read, or the archive cannot be written."""


class UnreadableFileError(PackError):
    """The content of a file cannot be read, and the file may be left out of the archive."""


class ExtractError(GompfsError):
    """An entry cannot be written to the target directory."""


class MountError(GompfsError):
    """Mounting or unmounting failed."""


class StatsUnavailableError(GompfsError):
    """The statistics do not exist, as for binary files, or need too much memory."""


class OptionError(GompfsError, ValueError):
    """The value of an option is invalid."""
