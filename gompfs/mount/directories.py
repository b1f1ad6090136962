"""Listings of directories, made ahead of whoever walks the tree."""

from __future__ import annotations

import logging
import stat
import threading
from collections.abc import Sequence

from gompfs._reading import ListingTable, StoredSizes, pack_listing
from gompfs.errors import GompfsError
from gompfs.model import Inode
from gompfs.mount.archive_set import ArchiveSet
from gompfs.mount.protocol import CACHE_SECONDS
from gompfs.mount.snapshots import Snapshots

log = logging.getLogger(__name__)

_MAX_BYTES = 128 << 20  # of all listings kept: 1.8 million entries
_MIN_ENTRIES, _MAX_ENTRIES = 64, 1 << 14  # that are read from the index at once


class Directories:
    """Makes listings with attributes, and keeps them in `listings`; safe for any number of threads.

    Those that are kept are answered without the interpreter. They come in batches, in the order of the index, which
    is that of a walk: when the first of a batch is asked for, a thread makes the next one, twice as large.
    """

    def __init__(self, content: Snapshots | ArchiveSet) -> None:
        self.listings = ListingTable(_MAX_BYTES)
        self._operations = content.of
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read_ahead, name="gompfs-directories", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading ahead."""
        self.listings.close()
        self._thread.join()

    def entries(self, node: int, position: int, room: int) -> bytes:
        """The entries of a directory from a position on that have room in a reply; raises as Operations.children."""
        operations = self._operations(node)
        is_early = not operations.knows_stored_sizes  # the first listing does not wait for the sizes of all files
        if not is_early:
            self._read(node, _MIN_ENTRIES)
            entries = self.listings.entries(node, position, room)
            if entries is not None:
                return entries
        children, cache_seconds = operations.children(node), operations.cache_seconds(node)
        sizes = self._stored_sizes(children) if cache_seconds else StoredSizes()  # without it, no attributes are told
        if cache_seconds == CACHE_SECONDS:
            self.listings.insert(node, children, cache_seconds, sizes)
        if is_early:
            self.listings.want(node, _MIN_ENTRIES)
        return pack_listing(node, children, cache_seconds, position, room, sizes)

    def _stored_sizes(self, children: Sequence[tuple[bytes, Inode]]) -> StoredSizes:
        """The stored sizes of those children that have holes, by node."""
        files = {inode.ino: inode for _, inode in children if stat.S_ISREG(inode.mode)}
        stored = ((node, self._operations(node).stored_size(inode)) for node, inode in files.items())
        sizes = StoredSizes()
        sizes.add(sorted((node, size) for node, size in stored if size < files[node].size))
        return sizes

    def _read(self, node: int, max_entries: int) -> None:
        """Keep the listings of a directory and of those behind it; nothing where the index is damaged there."""
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
                log.debug("directories could not be read ahead: %s", error)

    def _read_ahead(self) -> None:
        while wanted := self.listings.wait_wanted():
            self._read(*wanted)
