"""Every error that gompfs raises, in one tree.

::

    GompfsError
    +-- ArchiveFormatError (ValueError)      the file is no archive, or its structure is damaged
    |   +-- UnsupportedVersionError          written by a version that this one does not know
    |   +-- CorruptIndexError                the SQLite index does not match its checksum or contradicts itself
    +-- CorruptBlockError (OSError)          one block's bytes are damaged
    +-- EntryNotFoundError (FileNotFoundError)   no entry of that path or inode number
    +-- EntryTypeError (OSError)             an entry of another type than the operation needs
    |   +-- EntryIsDirectoryError (IsADirectoryError)       a directory where a file was asked for
    |   +-- EntryNotDirectoryError (NotADirectoryError)     the reverse
    |   +-- SymlinkLoopError                 symbolic links that lead on and on
    +-- EngineUnavailableError               the engine that was asked for cannot run here
    +-- PackError                            a source cannot be read, or the archive cannot be written
    |   +-- UnreadableFileError              a file may be left out, as its content cannot be read
    +-- ExtractError                         an entry cannot be written
    +-- MountError                           mounting or unmounting failed
    +-- StatsUnavailableError                analytics of a binary file, or with too little memory
    +-- OptionError (ValueError)             an option's value makes no sense

Each carries what is known of `archive`, `path` and `block`; the message names them.
"""

from __future__ import annotations

import os
from errno import EINVAL, EIO, EISDIR, ELOOP, ENOENT, ENOTDIR

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
    "display_path",
]


def display_path(path: str | bytes | os.PathLike[str]) -> str:
    """A path as text that can be printed on any terminal: undecodable and control bytes are escaped."""
    raw = os.fsencode(path)
    text = raw.decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


_OSERROR_NAMES = {"path": "filename", "message": "strerror"}


class GompfsError(Exception):
    """Base of all errors of gompfs.

    `archive` is the archive file, `path` the entry inside it or the source file, `block` the block number;
    each is None where it is not known. The text of the error names those that are.
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
        """An OSError has the path and the message under the names of its own too."""
        super().__setattr__(name, value)
        if isinstance(self, OSError) and name in _OSERROR_NAMES:
            super().__setattr__(_OSERROR_NAMES[name], value)

    def __str__(self) -> str:
        places = [place for place in (self.archive, self.path) if place]
        if self.block is not None:
            places.append(f"block {self.block}")
        return ": ".join([*places, self.message])


class ArchiveFormatError(GompfsError, ValueError):
    """The file is no gompfs archive, or its structure is damaged."""


class UnsupportedVersionError(ArchiveFormatError):
    """The archive was written in a format version that this release does not know."""


class CorruptIndexError(ArchiveFormatError):
    """The SQLite index does not match its checksum, or contradicts itself or the file."""


class CorruptBlockError(GompfsError, OSError):
    """One block's bytes are damaged; other blocks stay readable."""

    errno = EIO


class EntryNotFoundError(GompfsError, FileNotFoundError):
    """The archive holds no entry of that path or inode number."""

    errno = ENOENT


class EntryTypeError(GompfsError, OSError):
    """The entry is of another type than the operation needs (a device read as a file, say)."""

    errno = EINVAL


class EntryIsDirectoryError(EntryTypeError, IsADirectoryError):
    """The entry is a directory, and a file was asked for."""

    errno = EISDIR


class EntryNotDirectoryError(EntryTypeError, NotADirectoryError):
    """The entry is no directory, and one was asked for, or something below it."""

    errno = ENOTDIR


class SymlinkLoopError(EntryTypeError):
    """A path leads through too many symbolic links."""

    errno = ELOOP


class EngineUnavailableError(GompfsError):
    """The engine that was asked for cannot run on this machine."""


class PackError(GompfsError):
    """A source cannot be read, or the archive cannot be written."""


class UnreadableFileError(PackError):
    """The content of a file cannot be read, and the file may be left out of the archive."""


class ExtractError(GompfsError):
    """An entry cannot be written to the target directory."""


class MountError(GompfsError):
    """Mounting or unmounting failed."""


class StatsUnavailableError(GompfsError):
    """There are no analytics of a binary file, or they take too much memory."""


class OptionError(GompfsError, ValueError):
    """An option's value is not one of those that make sense."""
