"""The archive that a mount shows. With -o follow, the mount switches to a new snapshot when the archive's file changes.

A node id contains the number of its snapshot (see ReaderTable in native/fuse). So nodes of different snapshots
are different to the kernel, and everything that it caches about them stays valid; files that are open stay readable.
The exception is the root, which has the same node id in all snapshots: the kernel caches its names for one second only.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from types import TracebackType

from gompfs._native.fuse import MAX_SNAPSHOTS, SNAPSHOT_SHIFT, ReaderTable
from gompfs.archive import Archive
from gompfs.errors import GompfsError, MountError
from gompfs.light_types import TYPE_CHECKING
from gompfs.log import Logger
from gompfs.model import ROOT_INO, Inode
from gompfs.mount.tree.content import Content
from gompfs.mount.tree.operations import Operations
from gompfs.options import MountOptions

if TYPE_CHECKING:
    from typing import Self

log = Logger(__name__)

_MAX_OLD = 4  # older snapshots that stay readable
_OLD_CACHE_SIZE = 32 << 20
_POLL_SECONDS = 0.5


class Snapshots(Content):
    """Maps node ids to operations. Thread-safe."""

    def __init__(self, path: str, open_archive: Callable[[str], Archive], options: MountOptions) -> None:
        """Show the archive at `path`, which `open_archive` opens. Raises what `open_archive` and Tree raise."""
        self._path = path
        self._open_archive = open_archive
        self._options = options
        self.readers = ReaderTable()
        self._number = 0
        self._operations: OrderedDict[int, Operations] = OrderedDict()
        self._forgotten: list[Operations] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._seen = _identify(path)
        archive = open_archive(path)
        try:
            self._show(archive, 0)
        except BaseException:
            archive.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        for operations in [*self._forgotten, *self._operations.values()]:
            _close(operations)

    @property
    def current(self) -> Operations:
        """The operations on the archive that the mount shows now."""
        return self._operations[self._number]

    @property
    def only(self) -> Operations | None:
        """The operations on the archive, if every node id is an inode number of it for as long as the mount lasts.

        Otherwise None.
        """
        is_whole = not self._options.follow and not self._options.subdir
        return self.current if is_whole else None

    def of(self, node: int) -> Operations:
        """Returns the operations on the snapshot of a node.

        Raises OSError (ESTALE) if the snapshot has been dropped.
        """
        if node == ROOT_INO or not self._options.follow:
            return self.current
        operations = self._operations.get(node >> SNAPSHOT_SHIFT & MAX_SNAPSHOTS - 1)
        if operations is None:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return operations

    def statistics(self) -> list[Inode]:
        """See Content.statistics."""
        return [self.current.statistics()]

    def has_xattrs(self) -> bool:
        """Returns whether any entry has extended attributes, or may have some in a later snapshot."""
        return self._options.follow or self.current.has_xattrs()

    def has_acls(self) -> bool:
        """Returns whether any entry has an access ACL, or may have one in a later snapshot."""
        return self._options.follow or self.current.has_acls()

    def follow(self) -> None:
        """Start checking every half second whether the file has changed, if the options ask for it."""
        if self._options.follow:
            self._thread = threading.Thread(target=self._watch, name="gompfs-follow", daemon=True)
            self._thread.start()

    def _watch(self) -> None:
        last = self._seen
        while not self._stop.wait(_POLL_SECONDS):
            while self._forgotten:
                _close(self._forgotten.pop())  # half a second after it was dropped: no request uses it any more
            found = _identify(self._path)
            # If the file still changes, it is being written.
            if found == last and found not in (None, self._seen):
                self._seen = found
                try:
                    self._look()
                except (GompfsError, OSError) as error:
                    log.warning("the mount still shows the old content: %s", error)
            last = found

    def _look(self) -> None:
        """Open the file, and show it as a new snapshot if its content is a new one."""
        archive = self._open_archive(self._path)
        before = self.current
        shown = before.archive
        try:
            if (archive.superblock, archive.footer) == (shown.superblock, shown.footer):
                archive.close()
                return
            # Numbers are not reused: the kernel still caches attributes of nodes with the old numbers.
            if self._number + 1 == MAX_SNAPSHOTS:
                reason = f"the mount has shown {MAX_SNAPSHOTS} archives, which is the limit; mount it again"
                raise MountError(reason, path=self._path)
            self._show(archive, self._number + 1)
        except BaseException:
            archive.close()
            raise
        shown.blocks.shrink(_OLD_CACHE_SIZE)
        before.virtual_content.answering.drop("the mount shows a newer generation")
        log.info("the mount now shows generation %d of %s", archive.footer.generation, self._path)

    def _show(self, archive: Archive, number: int) -> None:
        warn(archive)
        self._operations[number] = Operations(archive, self._options, number)
        self.readers.insert(number, self._operations[number].served)
        archive.blocks.start_reading_ahead()
        self._number = number
        if len(self._operations) > 1 + _MAX_OLD:
            oldest, operations = self._operations.popitem(last=False)
            self.readers.erase(oldest)
            self._forgotten.append(operations)


def warn(archive: Archive) -> None:
    """Log the warnings of an archive that was opened."""
    for warning in archive.warnings:
        log.warning("%s", warning)


def _close(operations: Operations) -> None:
    operations.virtual_content.close()
    operations.archive.close()


def _identify(path: str) -> tuple[int, ...] | None:
    """Returns values that change when the file is replaced or written to, or None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
