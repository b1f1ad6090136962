"""Directory listings, read ahead for programs that walk the tree."""

from __future__ import annotations

import stat
import threading
from collections.abc import Sequence

from gompfs._native.blocks import StoredSizes
from gompfs._native.fuse import Listing, ListingTable
from gompfs.errors import GompfsError
from gompfs.log import Logger
from gompfs.model import Inode
from gompfs.mount.tree.content import CACHE_SECONDS, Content

log = Logger(__name__)

_MAX_BYTES = 128 << 20  # limit for all cached listings; enough for 1.8 million entries
_MIN_ENTRIES, _MAX_ENTRIES = 64, 1 << 14  # entries that one query reads from the index


class Directories:
    """Builds listings with attributes and caches them in `listings`. Thread-safe.

    C++ answers requests for cached listings without the interpreter. Listings are read in batches, in the order of the
    index, which is the order in which a program walks the tree. When the first listing of a batch is requested, a
    thread reads the next batch, which is twice as large.
    """

    def __init__(self, content: Content) -> None:
        self.listings = ListingTable(_MAX_BYTES)
        self._operations = content.of
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read_ahead, name="gompfs-directories", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading listings ahead."""
        self.listings.close()
        self._thread.join()

    def listing(self, node: int) -> Listing:
        """Returns the entries of a directory. Raises the same errors as NodeOperations.children."""
        operations = self._operations(node)
        is_early = not operations.knows_stored_sizes  # do not wait for the stored sizes of all files
        if not is_early:
            self._read(node, _MIN_ENTRIES)
            cached = self.listings.use(node)
            if cached is not None:
                return cached
        children, cache_seconds = operations.children(node), operations.cache_seconds(node)
        # If cache_seconds is 0, replies hold no attributes.
        sizes = self._stored_sizes(children) if cache_seconds else StoredSizes()
        listing = Listing(node, children, cache_seconds, sizes)
        if cache_seconds == CACHE_SECONDS:
            self.listings.insert(node, listing)
        if is_early:
            self.listings.want(node, _MIN_ENTRIES)
        return listing

    def _stored_sizes(self, children: Sequence[tuple[bytes, Inode]]) -> StoredSizes:
        """Returns the stored sizes of the children that have holes, by node."""
        files = {inode.ino: inode for _, inode in children if stat.S_ISREG(inode.mode)}
        stored = ((node, self._operations(node).stored_size(inode)) for node, inode in files.items())
        sizes = StoredSizes()
        sizes.add(sorted((node, size) for node, size in stored if size < files[node].size))
        return sizes

    def _read(self, node: int, max_entries: int) -> None:
        """Cache the listings of a directory and of those after it. Caches nothing if the index is damaged there."""
        with self._lock:
            try:
                operations = self._operations(node)
                stored_sizes = operations.stored_sizes()
                if node in self.listings:
                    return
                rows = operations.directories(node, max_entries)
                if rows is not None:
                    mapping, cache_seconds = operations.mapping, operations.cache_seconds(node)
                    following = 0 if rows.is_last else min(2 * max_entries, _MAX_ENTRIES)
                    more = following, stored_sizes
                    self.listings.insert_columns(rows.columns, rows.first, rows.end, mapping, cache_seconds, *more)
            except (GompfsError, OSError, ValueError) as error:
                log.debug("directories could not be prefetched: %s", error)

    def _read_ahead(self) -> None:
        while wanted := self.listings.wait_wanted():
            self._read(*wanted)
