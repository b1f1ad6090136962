"""Directories in the form in which the kernel takes them, read ahead of whoever walks the tree."""

from __future__ import annotations

import logging
import stat
import threading
from collections import OrderedDict, deque
from queue import SimpleQueue

from gompfs.errors import GompfsError
from gompfs.mount.archive_set import ArchiveSet
from gompfs.mount.protocol import CACHE_SECONDS, pack_directory, pack_dots
from gompfs.mount.snapshots import Snapshots

log = logging.getLogger(__name__)

_MAX_ENTRIES = 400_000  # in all listings kept, about 100 MB


class Directories:
    """Packs listings with attributes, and keeps them; safe for any number of threads.

    A thread packs directories before somebody asks, below what was listed last: a walk of the tree then waits only
    for the kernel.
    """

    def __init__(self, content: Snapshots | ArchiveSet, block_size: int) -> None:
        """`block_size` is what files say is best to read at once, in bytes."""
        self._content = content
        self._block_size = block_size
        self._listings: OrderedDict[int, list[bytes]] = OrderedDict()
        self._num_entries = 0
        self._lock = threading.Lock()
        # A walk goes depth first: the latest subdirectories come first.
        self._wanted: deque[int] = deque()
        self._wake: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._read_ahead, name="gompfs-directories", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading ahead."""
        self._wanted.clear()
        self._wake.put(False)
        self._thread.join()

    def listing(self, node: int) -> list[bytes]:
        """The packed entries of a directory, . and .. first."""
        listing = self._listings.get(node)
        return self._list(node) if listing is None else listing

    def _list(self, node: int) -> list[bytes]:
        operations = self._content.of(node)
        children = operations.children(node)
        seconds = operations.cache_seconds(node)
        listing = pack_dots(node, with_attributes=True) + pack_directory(
            children, 2, self._block_size, seconds, with_attributes=True
        )
        if seconds == CACHE_SECONDS:
            self._keep(node, listing)
        if seconds:
            subdirectories = [inode.ino for _, inode in children if stat.S_ISDIR(inode.mode)]
            if subdirectories:
                self._wanted.extendleft(reversed(subdirectories))
                self._wake.put(True)
        return listing

    def _keep(self, node: int, listing: list[bytes]) -> None:
        with self._lock:
            if node not in self._listings:
                self._num_entries += len(listing)
            self._listings[node] = listing
            while self._num_entries > _MAX_ENTRIES and len(self._listings) > 1:
                self._num_entries -= len(self._listings.popitem(last=False)[1])

    def _read_ahead(self) -> None:
        while self._wake.get():
            while self._wanted and self._num_entries < _MAX_ENTRIES // 2:
                node = self._wanted.popleft()
                if node in self._listings:
                    continue
                try:
                    self._list(node)
                except (GompfsError, OSError) as error:
                    log.debug("a directory could not be read ahead: %s", error)
