"""Local files and directories, for packing (native/sources)."""

from typing import TypeAlias

_Status: TypeAlias = tuple[int, int, int, int, int, int, int, int]
"""(mode, uid, gid, seconds and nanoseconds of the modification time, size, device, inode number)"""

class OpenDirectory:
    """A directory that is open as long as this object, or a result that was announced for it, lives."""

    def __init__(self, descriptor: int) -> None:
        """Closes `descriptor` later."""

    @property
    def descriptor(self) -> int:
        """The descriptor, -1 if the directory could not be opened."""

class AnnouncedFile:
    """A file that a FileLoader opens and reads."""

    def take(self) -> tuple[int, _Status, bool, bool, int, memoryview | None, bytes | None]:
        """Returns (errno, status, has_xattrs, has_changed, descriptor, content, SHA-256). Call it once.

        `errno` is 0 if the file could be opened. `has_xattrs` is also set if extended attributes cannot be listed.
        `has_changed` says whether the file changed while it was read. The caller closes `descriptor` unless it is -1.
        There is no content if the file is not regular, has several names or holes, is too large, or could not be read.
        """

class AnnouncedDirectory:
    """A directory that a FileLoader opens and lists."""

    def take(self) -> tuple[int, _Status, bool, OpenDirectory, list[tuple[bytes, int]]]:
        """Returns (errno, status, has_xattrs, directory, names in byte order with their kinds). Call it once.

        A kind is 0 for a directory, 1 for a regular file and 2 for anything else.
        """

class FileLoader:
    """Opens, reads and lists files ahead of a thread that walks a tree. Results can be taken in any order."""

    def __init__(self, max_file_size: int, capacity: int, max_threads: int) -> None:
        """Files of more than `max_file_size` bytes are only opened. Up to `capacity` bytes are read ahead."""

    def load(self, directory: OpenDirectory, name: bytes) -> AnnouncedFile:
        """Announce a file of a directory. A symlink is not followed."""

    def list(self, parent: OpenDirectory | None, name: bytes, device: int | None = None) -> AnnouncedDirectory:
        """Announce a directory. Without a parent, `name` is a path, which may lead to it through a symlink.

        With `device`, a directory of another file system counts as empty.
        """
