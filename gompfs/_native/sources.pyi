"""Local files and directories, for packing (native/sources)."""

from collections.abc import Callable
from typing import ClassVar, TypeAlias

_Status: TypeAlias = tuple[int, int, int, int, int, int, int, int]
"""(mode, uid, gid, seconds and nanoseconds of the modification time, size, device, inode number)"""

class OpenDirectory:
    """A directory that is open as long as this object, or a result that was announced for it, lives."""

    def __init__(self, descriptor: int) -> None:
        """Closes `descriptor` later."""

    @property
    def descriptor(self) -> int:
        """The descriptor, -1 if the directory could not be opened."""

class LoadedFiles:
    """Regular files of one directory, in the order of their names, whose contents are in memory.

    They have no other names and no holes, and did not change while they were read.
    """

    size: int
    """The size of all contents in bytes."""

    def __len__(self) -> int: ...
    def describe(self) -> list[tuple[bytes, _Status, dict[bytes, bytes], memoryview, bytes]]:
        """Returns name, status, extended attributes, content and SHA-256 of each file."""

    def xattr_rows(self, first_ino: int) -> list[tuple[int, bytes, bytes]]:
        """Returns rows of the table xattr."""

    def split_off(self, number: int) -> LoadedFiles:
        """Returns the files from the one of a number on, and removes them here."""

    def inode_rows(
        self, first_ino: int, owner: int | None, group: int | None, mtime_ns: int | None
    ) -> list[tuple[object, ...]]:
        """Returns rows of the table inode: numbers from `first_ino` on, and values that replace those of the files."""

    def dirent_rows(self, parent: int, first_ino: int) -> list[tuple[object, ...]]:
        """Returns rows of the table dirent."""

class Contents:
    """The contents of several files."""

    size: int
    """The size of all contents in bytes."""

    def __len__(self) -> int: ...

class ContentCopier:
    """Copies contents on threads of its own."""

    def copy(self, contents: Contents, offset: int, out: memoryview) -> None:
        """Has the bytes from `offset` on copied, soon. Raises IndexError if there are fewer than `out` has."""

    def wait(self) -> None:
        """Waits until everything is copied."""

class PlacedFiles:
    """Where the contents of some files go. Empty files are left out."""

    new_in_stream: Contents
    """The contents that must be appended to the stream."""
    new_in_text: Contents
    """The contents that must be added as text files."""
    num_duplicates: int
    in_stream: list[tuple[int, int, int]]
    """Inode number, address and size of each file whose content is in the stream."""
    in_text: list[tuple[int, int]]
    """Inode number, and number of a text file."""
    binary: list[int]
    """The inode numbers of files that are not text. Empty without text files."""

class KnownContents:
    """The contents that are stored, at an address of the stream or as the text file of a number."""

    def find(self, size: int, sha256: bytes) -> tuple[bool, int] | None:
        """Returns whether a content is a text file, and its number or address; or None if it is not known."""

    def add(self, size: int, sha256: bytes, is_text: bool, where: int) -> None:
        """Adds a content."""

    def has_size(self, size: int) -> bool:
        """Returns whether a content of this size was added."""

    def place(self, files: LoadedFiles, first_ino: int, address: int, text_file: int | None) -> PlacedFiles:
        """Places the contents of files, and adds those that are new.

        The next byte of the stream gets `address`, the next text file the number `text_file`. If that is None, all
        contents go to the stream.
        """

class PieceHashes:
    """The SHA-256 of each piece of a content that comes in order. The last piece may be shorter."""

    PIECE_SIZE: ClassVar[int]
    """The bytes of a piece; the last one may have fewer."""

    digests: bytes
    """The hashes of the pieces that have ended, 32 bytes for each."""

    def append(self, content: bytes | memoryview, num_threads: int) -> None:
        """Hashes the next bytes, on up to `num_threads` threads."""

    def finish(self) -> None:
        """Ends the last piece. Nothing can be added afterwards."""

def read_range(descriptor: int, file_offset: int, out: memoryview, num_threads: int) -> int:
    """Fills `out` with the bytes of an open file, on up to `num_threads` threads.

    Returns how many bytes are missing because the file is shorter; they are zeros. Raises OSError.
    """

OddFile: TypeAlias = tuple[bytes, int, _Status, bool, bool, int, dict[bytes, bytes], memoryview | None, bytes | None]
"""(name, errno, status, has_xattrs, has_changed, descriptor, xattrs, content, SHA-256)

`errno` is 0 if the file could be opened. `has_xattrs` is set if there are extended attributes that are not in `xattrs`,
or if they cannot be listed. `has_changed` says whether the file changed while it was read. The caller closes
`descriptor` unless it is -1. There is no content if the file is not regular, has several names or holes, is too large,
or could not be read.
"""

class AnnouncedFiles:
    """Files of a directory that a FileLoader opens and reads."""

    def take(self) -> LoadedFiles | OddFile | None:
        """Returns the next files, or one that cannot be in a LoadedFiles, or None after the last.

        A LoadedFiles has 4 MiB, or one file more. Where it ends depends on the files alone.
        """

class AnnouncedDirectory:
    """A directory that a FileLoader opens and lists."""

    def take(self) -> tuple[int, _Status, bool, OpenDirectory, list[tuple[bytes, int]]]:
        """Returns (errno, status, has_xattrs, directory, names in byte order with their kinds). Call it once.

        A kind is 0 for a directory, 1 for a regular file and 2 for anything else.
        """

class TreeContent:
    """The regular files below a directory, as if their contents were one file.

    They come depth first, the names of each directory in byte order, and only under the first name of each file. What
    cannot be read is left out.
    """

    size: int
    """The size of all files in bytes, as it was during the walk."""

    def __init__(
        self,
        root: bytes,
        one_file_system: bool,
        skipped: list[tuple[int, int]],
        excludes: Callable[[bytes, bool], bool] | None,
        max_threads: int,
    ) -> None:
        """Walks the tree. With `one_file_system`, directories of other file systems are empty.

        Leaves out files with a device and inode number in `skipped`, and entries for which `excludes(path,
        is_directory)` is true.
        """

    def read(self, offset: int, size: int) -> bytes:
        """Returns a range of the content, without bytes that cannot be read any more. Raises IndexError."""

class FileLoader:
    """Opens, reads and lists files ahead of a thread that walks a tree. Results can be taken in any order."""

    def __init__(self, max_file_size: int, capacity: int, max_threads: int, skipped: list[tuple[int, int]]) -> None:
        """Files of more than `max_file_size` bytes are only opened. Up to `capacity` bytes are read ahead.

        Files with a device and inode number in `skipped` are never in a LoadedFiles.
        """

    def load(self, directory: OpenDirectory, names: list[bytes]) -> AnnouncedFiles:
        """Announce files of a directory. Symlinks are not followed."""

    def list(self, parent: OpenDirectory | None, name: bytes, device: int | None = None) -> AnnouncedDirectory:
        """Announce a directory. Without a parent, `name` is a path, which may lead to it through a symlink.

        With `device`, a directory of another file system counts as empty.
        """
