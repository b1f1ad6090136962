"""Directories in the form in which the kernel takes them, read ahead of whoever walks the tree."""

from __future__ import annotations

import logging
import stat
import threading
from collections import deque
from queue import SimpleQueue

from gompfs._reading import Listing, ListingTable
from gompfs.errors import GompfsError
from gompfs.mount.operations import Operations

log = logging.getLogger(__name__)

_MAX_ENTRIES = 400_000  # in all listings kept, about 100 MB


class Directories:
    """Makes listings with attributes, and keeps them; safe for any number of threads.

    A thread lists directories before somebody asks, below what was listed last: a walk of the tree then waits only
    for the kernel. What is in `listings` is answered without the interpreter.
    """

    def __init__(self, operations: Operations) -> None:
        self.listings = ListingTable(_MAX_ENTRIES)
        self._operations = operations
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

    def list(self, node: int) -> Listing:
        """The entries of a directory, kept where their attributes last."""
        children = self._operations.children(node)
        cache_seconds = self._operations.cache_seconds(node)
        listing = Listing(node, cache_seconds)
        listing.add(children)
        if cache_seconds:
            self.listings.insert(node, listing)
            subdirectories = [inode.ino for _, inode in children if stat.S_ISDIR(inode.mode)]
            if subdirectories:
                self._wanted.extendleft(reversed(subdirectories))
                self._wake.put(True)
        return listing

    def _read_ahead(self) -> None:
        while self._wake.get():
            while self._wanted and self.listings.num_entries < _MAX_ENTRIES // 2:
                node = self._wanted.popleft()
                if node in self.listings:
                    continue
                try:
                    self.list(node)
                except GompfsError as error:
                    log.debug("a directory could not be read ahead: %s", error)
