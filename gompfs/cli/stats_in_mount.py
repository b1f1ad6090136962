"""Reads statistics of a mounted archive from its virtual files, so that the daemon computes them.

The kernel checks who may read these files, and the daemon keeps what it has computed, so nothing else has to be asked.
What has no virtual file needs the archive: n-grams of another length, words of a term vector without the others, ...
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager

from gompfs.cli.grep_targets import is_archive
from gompfs.errors import EntryNotFoundError, EntryTypeError, MountError, StatsUnavailableError, display_path
from gompfs.light_types import TYPE_CHECKING
from gompfs.statistics.report import FirstLines, Report
from gompfs.statistics.tasks import NAMES_OF_FILE, OF_FILE_DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO

    from gompfs.archive import Archive
    from gompfs.cli.grep_targets import Target
    from gompfs.statistics.tasks import Task

_STATS = ".gompfs/stats"
_PIECE_SIZE = 1 << 20
_MAX_INFO_SIZE = 1 << 20


class StatisticInMount(Report):
    """The content of a virtual file. Making it raises MountError if the daemon fails or ends."""

    def __init__(self, path: str, file: FileIO) -> None:
        """`path` is that of the open `file`."""
        self._path = path
        self._file = file

    @property
    def size(self) -> int:
        """See Report.size."""
        return os.fstat(self._file.fileno()).st_size

    def __iter__(self) -> Iterator[bytes]:
        offset = 0
        while True:
            try:
                piece = os.pread(self._file.fileno(), _PIECE_SIZE, offset)
            except OSError as error:
                raise MountError(error.strerror or str(error), path=self._path) from None
            if not piece:
                return
            offset += len(piece)
            yield piece


class NeedsArchiveError(Exception):
    """The virtual files do not answer the question. The text says why, as the second half of a sentence."""


def path_of_file(target: Target, path: str | None) -> str | None:
    """Returns the path in the archive of the file whose statistics are asked for; None for those of all files.

    `path` is relative to the target. Raises EntryTypeError for what is neither a file nor the mount point, OSError for
    what does not exist, and NeedsArchiveError if the path in the archive is not known.
    """
    assert target.mountpoint is not None
    name = target.name if path is None else os.path.join(target.name, path)
    mode = os.stat(name).st_mode
    place, root = os.path.realpath(name), os.path.realpath(target.mountpoint)
    if place == root and path is None:
        return None
    if not stat.S_ISREG(mode):
        what = "not a regular file" if path is not None else "statistics are of the mount as a whole, or of one file"
        raise EntryTypeError(what, path=name)
    if not place.startswith(root.rstrip("/") + "/"):
        raise NeedsArchiveError("the path leads out of the mount, or it is in a bind mount")
    return os.path.join(_shown_directory(target), os.path.relpath(place, root))


@contextmanager
def statistic_in_mount(target: Target, name: str, task: Task, path: str | None, top: int) -> Iterator[Report]:
    """The text of a statistic of all files, or of the file `path` of the archive (see path_of_file).

    `top`, if it is not 0, is the option --top. Raises EntryNotFoundError and StatsUnavailableError for what has no such
    statistic in the archive either, and NeedsArchiveError.
    """
    if path is not None:
        if task.argument or name not in NAMES_OF_FILE:
            raise NeedsArchiveError(f"{name} of one file has no file in a mount")
        name = f"{OF_FILE_DIRECTORY}/{path}/{name}"
    if top and not task.top_limits_lines:
        raise NeedsArchiveError(f"--top limits what is in a line of {task.name}")
    if any(part in ("", ".", "..") for part in name.split("/")) or (task.argument and name.count("/") > 1):
        raise NeedsArchiveError(f"{name} is no name of a file")
    try:
        # The kernel asks for the size of a file when it is opened, and so the daemon computes it.
        file = open(_virtual(target, name), "rb", buffering=0)  # noqa: SIM115  closed below
    except FileNotFoundError:
        _check_is_there(target)
        if task.argument:
            raise EntryNotFoundError("no file contains this", archive=target.archive, path=display_path(name)) from None
        if path is not None:
            raise StatsUnavailableError(
                "a binary file has no statistics", archive=target.archive, path=display_path(path)
            ) from None
        raise NeedsArchiveError(f"the mount does not have {name}") from None
    except PermissionError:
        raise NeedsArchiveError("you may not read these statistics in the mount (see -o stats=public)") from None
    except OSError as error:
        raise NeedsArchiveError(f"the mount cannot compute {name}: {error.strerror}") from None
    with file:
        report = StatisticInMount(file.name, file)
        yield FirstLines(report, top) if top else report


def check_archive_of(target: Target, why: str) -> None:
    """Raises MountError if the archive of a mount cannot be opened, though it is needed. `why` says for what."""
    if os.path.exists(target.archive) and not os.access(target.archive, os.R_OK):
        raise MountError(f"{why}, and you may not read {display_path(target.archive)}", path=target.name)
    if not is_archive(target.archive):
        raise MountError(
            f"{why}, and {display_path(target.archive)} is not an archive that could be opened instead; "
            "name the archive",
            path=target.name,
        )


def path_in_archive(target: Target, archive: Archive, path: str | None) -> str | None:
    """Returns which file to count, as --file would name it: `path` is relative to the target. None: all files.

    Raises MountError if the mount shows another archive.
    """
    base = os.fsdecode(target.path_in(archive))
    if path is not None:
        return os.path.join(base, path)
    return None if stat.S_ISDIR(os.stat(target.name).st_mode) else base


def _virtual(target: Target, name: str) -> str:
    assert target.mountpoint is not None
    return os.path.join(target.mountpoint, _STATS, name)


def _check_is_there(target: Target) -> None:
    """Raises NeedsArchiveError if the mount has no statistics of one archive."""
    if os.path.exists(_virtual(target, "info")):
        return
    if os.path.exists(_virtual(target, "")):
        raise NeedsArchiveError("this is a mount of several archives")
    raise NeedsArchiveError("the mount has no statistics (stats=off)")


def _shown_directory(target: Target) -> str:
    """Returns the path in the archive of the directory that the mount shows, "" for the root.

    Raises NeedsArchiveError if it is not known.
    """
    try:
        with open(_virtual(target, "info"), "rb") as file:
            lines = file.read(_MAX_INFO_SIZE).splitlines()
    except OSError as error:
        if error.errno == errno.ENOENT:
            _check_is_there(target)
        raise NeedsArchiveError("the facts about the mount cannot be read") from None
    shown = next((line.partition(b"\t")[2] for line in lines if line.startswith(b"directory\t")), b"")
    if b"\\" in shown:
        raise NeedsArchiveError("the mount shows a directory with a special name")
    return os.fsdecode(shown)
