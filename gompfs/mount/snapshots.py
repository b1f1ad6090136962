"""The archives that a mount shows: one, or with -o follow what its file is now, and what it was for who has it open.

The number of a node says which snapshot it is of (see ReaderTable in kernels/cpu/reading), so nodes of different
snapshots are different to the kernel, and all that it keeps of them stays true. Only what it keeps of the root,
which is the same node in all of them, does not last: names there are asked for again after a second.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from types import TracebackType

from gompfs._reading import MAX_SNAPSHOTS, SNAPSHOT_SHIFT, ReaderTable
from gompfs.archive import Archive
from gompfs.errors import GompfsError, MountError
from gompfs.model import ROOT_INO
from gompfs.mount.operations import Operations
from gompfs.mount.virtual_files import forget_grammars, keep_grammars
from gompfs.options import MountOptions

log = logging.getLogger(__name__)

_MAX_OLD = 4  # old snapshots that can be read
_OLD_CACHE_SIZE = 32 << 20
_POLL_SECONDS = 0.5


class Snapshots:
    """Operations on what is mounted, by node; safe for any number of threads."""

    def __init__(self, path: str, open_archive: Callable[[str], Archive], options: MountOptions) -> None:
        """Show what `open_archive` opens, from the file at `path`; raises its errors, and those of Tree."""
        self._path = path
        self._open_archive = open_archive
        self._options = options
        self.readers = ReaderTable()
        self._number = 0
        self._operations: OrderedDict[int, Operations] = OrderedDict()
        self._forgotten: list[Archive] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._seen = _identify(path)
        archive = open_archive(path)
        try:
            self._show(archive, 0)
        except BaseException:
            archive.close()
            raise

    def __enter__(self) -> Snapshots:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        for archive in [*self._forgotten, *(operations.archive for operations in self._operations.values())]:
            _close(archive)

    @property
    def current(self) -> Operations:
        """Operations on what the mount shows now."""
        return self._operations[self._number]

    @property
    def only(self) -> Archive | None:
        """The archive, where all nodes are its inodes, and stay so."""
        is_whole = not self._options.follow and not self._options.subdir
        return self.current.archive if is_whole else None

    def of(self, node: int) -> Operations:
        """Operations on the snapshot that a node is of; raises OSError for one that is gone."""
        if node == ROOT_INO or not self._options.follow:
            return self.current
        operations = self._operations.get(node >> SNAPSHOT_SHIFT & MAX_SNAPSHOTS - 1)
        if operations is None:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return operations

    def has_xattrs(self) -> bool:
        """Whether any entry has extended attributes, or may have some later."""
        return self._options.follow or self.current.has_xattrs()

    def follow(self) -> None:
        """Look every half second whether the file is another one, if the options ask for that."""
        if self._options.follow:
            self._thread = threading.Thread(target=self._watch, name="gompfs-follow", daemon=True)
            self._thread.start()

    def _watch(self) -> None:
        last = self._seen
        while not self._stop.wait(_POLL_SECONDS):
            while self._forgotten:
                _close(self._forgotten.pop())  # half a second later: no request is at work with it
            found = _identify(self._path)
            # One that still changes is being written.
            if found == last and found not in (None, self._seen):
                self._seen = found
                try:
                    self._look()
                except (GompfsError, OSError) as error:
                    log.warning("the mount stays as it was: %s", error)
            last = found

    def _look(self) -> None:
        """Show what the file holds now, if that is something else."""
        archive = self._open_archive(self._path)
        shown = self.current.archive
        try:
            if (archive.superblock, archive.footer) == (shown.superblock, shown.footer):
                archive.close()
                return
            # Numbers are not used again: what was said of their nodes is kept.
            if self._number + 1 == MAX_SNAPSHOTS:
                raise MountError(f"it has shown {MAX_SNAPSHOTS} archives; mount it anew", path=self._path)
            self._show(archive, self._number + 1)
        except BaseException:
            archive.close()
            raise
        shown.blocks.shrink(_OLD_CACHE_SIZE)
        log.info("the mount shows generation %d of %s", archive.footer.generation, self._path)

    def _show(self, archive: Archive, number: int) -> None:
        warn(archive)
        self._operations[number] = Operations(archive, self._options, number)
        keep_grammars(archive)
        self.readers.insert(number, archive.blocks.reader)
        archive.blocks.start_reading_ahead()
        self._number = number
        if len(self._operations) > 1 + _MAX_OLD:
            oldest, operations = self._operations.popitem(last=False)
            self.readers.erase(oldest)
            self._forgotten.append(operations.archive)


def warn(archive: Archive) -> None:
    """Log what there is to say of an archive that was opened."""
    for warning in archive.warnings:
        log.warning("%s", warning)


def _close(archive: Archive) -> None:
    forget_grammars(archive)
    archive.close()


def _identify(path: str) -> tuple[int, ...] | None:
    """What is another when the file was replaced or written to; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
