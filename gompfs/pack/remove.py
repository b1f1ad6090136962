"""Removes entries from an archive: a generation whose index lacks them. Their bytes stay in the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gompfs.archive import Archive
from gompfs.archive.entries import names_in
from gompfs.errors import EntryNotFoundError, PackError
from gompfs.pack.generation import new_generation
from gompfs.pack.history import note_of


def remove_from_archive(archive: Path, paths: Sequence[str | bytes], *, comment: str = "") -> int:
    """Remove the entries at `paths`, directories with all that is in them. Returns the number of names removed.

    A symbolic link at the end of a path is removed itself. Raises PackError, EntryNotFoundError, or ArchiveFormatError
    for a damaged archive; then the archive is as it was.
    """
    note = note_of("remove", comment)
    with new_generation(archive, check=True, num_threads=1) as grown:
        places = [_place_of(grown.base, path) for path in paths]
        num_removed = sum(grown.index.remove_names(*place) for place in places)
        grown.index.add_generation(note._replace(number=grown.number, num_removed=num_removed))
    return num_removed


def _place_of(archive: Archive, path: str | bytes) -> tuple[int, bytes]:
    """Returns the inode number of the directory that an entry is in, and its name there."""
    names = names_in(path)
    if not names or b".." in names:
        raise PackError("the root cannot be removed, and a path must have no `..`", archive=archive.path, path=path)
    parent = archive.resolve(b"/".join(names[:-1]), follow=True)
    if archive.index.child(parent.ino, names[-1]) is None:
        raise EntryNotFoundError("no such file or directory", archive=archive.path, path=path)
    return parent.ino, names[-1]
