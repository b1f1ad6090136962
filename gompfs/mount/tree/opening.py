"""Opens what a mount shows."""

from __future__ import annotations

import os
from collections.abc import Sequence

from gompfs.archive import Archive
from gompfs.engine import select_engine
from gompfs.errors import OptionError
from gompfs.format import LocalFile
from gompfs.mount.tree.archive_set import ArchiveSet
from gompfs.mount.tree.content import Content
from gompfs.mount.tree.snapshots import Snapshots
from gompfs.options import MountOptions
from gompfs.remote import is_url


def open_content(paths: Sequence[str], options: MountOptions) -> Content:
    """Open what the mount shows. All archives share one engine, and the cache size is divided among them."""
    if options.passthrough_size and (options.several or options.follow or options.subdir):
        raise OptionError("passthrough_size works only with one archive, without subdir and follow")
    if options.passthrough_size and options.api == "high":
        raise OptionError("passthrough_size needs api=low")
    if options.offset and options.several:
        raise OptionError("offset works only with one archive")
    if any(map(is_url, paths)) and (options.follow or options.offset):
        raise OptionError("follow and offset work only with a local archive")
    sizes = (os.path.getsize(path) for path in paths if not is_url(path))
    engine = select_engine(options.engine, gpu=options.gpu_options(sum(sizes)))
    engine.prepare(None if is_url(paths[0]) else paths[0])

    def open_archive(path: str) -> Archive:
        archive = Archive(
            path,
            file=LocalFile.open(path, options.offset) if options.offset else None,
            engine=engine,
            verify=options.verify,
            cache_size=options.cache_size // len(paths),
            decode_ahead=options.decode_ahead,
        )
        if archive.stored.announcements is not None:
            archive.stored.announcements.words()
        return archive

    if options.several is None:
        return Snapshots(paths[0], open_archive, options)
    return ArchiveSet(paths, open_archive, options)
