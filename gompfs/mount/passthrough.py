"""Whole files that the kernel reads by itself: decoded at open into memory, which becomes the file's backing file.

FUSE passthrough, Linux 6.9 and later. A file that is open this way is not asked for again, from its first byte to its
last one. The kernel insists that all who have a file open at once have it open the same way, with the same backing
file: so it is counted here who has which file open.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import mmap
import os
import stat
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from gompfs.archive import Archive
from gompfs.errors import GompfsError, MountError, display_path
from gompfs.model import Inode
from gompfs.mount.memory_files import MemoryFiles
from gompfs.mount.protocol import Feature, open_reply
from gompfs.mount.virtual_files import NotReadyError, tell_passthrough

log = logging.getLogger(__name__)

LEAST_SIZE = 1 << 20
"""Files below, in bytes, come with one read or two: to make a backing file of each would take longer."""
_PART = 256 << 20  # decoded between two looks at whether the mount ends
_BATCHES_AT_ONCE = 2  # one is written while the other is decoded
_MAX_PIECES = os.sysconf("SC_IOV_MAX")
_BACKING_OPEN, _BACKING_CLOSE = 0x4010E501, 0x4004E502  # the ioctls FUSE_DEV_IOC_BACKING_OPEN and _CLOSE
_BACKING_MAP = struct.Struct("<iIQ")  # descriptor, flags, padding
_BACKING_ID = struct.Struct("<i")
_NOT_COUNTED, _COUNTED = 0, 1  # the handles of open files


@dataclass
class _File:
    """A file that somebody has open, or that is kept for the next one."""

    size: int
    backing_id: int | None = None
    """None while it is being decoded, and where it is read block by block."""
    is_ready: bool = False
    num_open: int = 0
    waiting: list[Callable[[], None]] = field(default_factory=list)


class PassthroughFiles:
    """The backing files of one mount, in `capacity` bytes of memory; safe for any number of threads.

    Those that nobody has open any more are kept, and given up for others when memory is needed, the one that was
    opened longest ago first.
    """

    def __init__(self, archive: Archive, device: int, capacity: int) -> None:
        """`device` is the mount's connection to the kernel. Raises OSError where the kernel takes no backing files."""
        self._archive = archive
        self._device = device
        self._capacity = capacity
        self._lock = threading.Lock()
        self._files: OrderedDict[int, _File] = OrderedDict()
        self._refused: set[int] = set()
        self._num_bytes = 0
        self._threads: set[threading.Thread] = set()
        self._is_closed = False
        self._memory = MemoryFiles()
        try:
            with self._memory.create(0) as descriptor:
                self._forget(self._register(descriptor))
        except OSError:
            self._memory.close()
            raise

    @property
    def least_size(self) -> int:
        """Smaller files, in bytes, are not passed through."""
        return LEAST_SIZE

    def close(self) -> None:
        """Stop decoding; the kernel lets go of the backing files when the connection ends."""
        with self._lock:
            self._is_closed = True
            threads = list(self._threads)
        for thread in threads:
            thread.join()
        self._memory.close()

    def open(self, inode: Inode | None) -> bytes:
        """The answer to OPEN, of an archive's file or any other; raises NotReadyError while it is being decoded."""
        if inode is None or not stat.S_ISREG(inode.mode) or not LEAST_SIZE <= inode.size <= self._capacity:
            return open_reply(_NOT_COUNTED)
        node = inode.ino
        with self._lock:
            file = self._files.get(node)
            if file is None:
                file = self._files[node] = _File(inode.size)
                if node in self._refused or not self._make_room(inode.size):
                    file.is_ready = True
                else:
                    self._num_bytes += inode.size
                    thread = threading.Thread(target=self._fill, args=(node, file), name="gompfs-passthrough")
                    self._threads.add(thread)
                    thread.start()
            if not file.is_ready:
                raise NotReadyError(lambda callback: self._call_when_ready(file, callback))
            file.num_open += 1
            self._files.move_to_end(node)
            return open_reply(_COUNTED, file.backing_id)

    def release(self, node: int, handle: int) -> None:
        """Somebody has closed what `open` gave a handle for."""
        if handle == _NOT_COUNTED:
            return
        with self._lock:
            file = self._files[node]
            file.num_open -= 1
            if file.num_open == 0 and file.backing_id is None:
                del self._files[node]

    def describe(self) -> str:
        """How many files are passed through, for people."""
        with self._lock:
            num_files = sum(file.backing_id is not None for file in self._files.values())
            pages = "large" if self._memory.has_large_pages else "small"
            return f"on, {num_files} files in {self._num_bytes} of {self._capacity} bytes, {pages} pages"

    def _call_when_ready(self, file: _File, callback: Callable[[], None]) -> None:
        with self._lock:
            if not file.is_ready:
                file.waiting.append(callback)
                return
        callback()

    def _make_room(self, size: int) -> bool:
        """Give up files that nobody has open, if that makes room for `size` bytes; called with the lock held."""
        unused = [node for node, file in self._files.items() if file.backing_id is not None and file.num_open == 0]
        if self._num_bytes - sum(self._files[node].size for node in unused) + size > self._capacity:
            return False
        for node in unused:
            if self._num_bytes + size <= self._capacity:
                break
            file = self._files.pop(node)
            self._num_bytes -= file.size
            if file.backing_id is not None:
                self._forget(file.backing_id)
        return True

    def _fill(self, node: int, file: _File) -> None:
        """Decode a file and make it known to the kernel; where that cannot be done, it is read block by block."""
        backing_id = None
        try:
            with self._memory.create(file.size) as descriptor:
                self._decode(node, file.size, descriptor)
                backing_id = self._register(descriptor)
        except GompfsError as error:
            # Who reads the damaged block meets it too, and all others read on.
            log.debug("%s is not passed through: %s", display_path(self._archive.path_of(node)), error)
        except Exception as error:  # those who wait must hear of it, whatever it is
            log.warning("%s is not passed through: %s", display_path(self._archive.path_of(node)), error)
        with self._lock:
            file.backing_id, file.is_ready = backing_id, True
            if backing_id is None:
                self._num_bytes -= file.size
                self._refused.add(node)
            waiting, file.waiting = file.waiting, []
            self._threads.discard(threading.current_thread())
        for callback in waiting:
            callback()

    def _decode(self, node: int, size: int, descriptor: int) -> None:
        """Write the content of a file. Raises CorruptBlockError and others of Archive.read, OSError."""
        with mmap.mmap(descriptor, size) as mapped, memoryview(mapped) as content:
            for start in range(0, size, _PART):
                if self._is_closed:
                    raise MountError("the mount ends")
                with content[start : start + _PART] as part:
                    if not self._archive.decode_into(node, start, part):
                        self._copy(node, start, start + len(part), descriptor)

    def _copy(self, node: int, first: int, end: int, descriptor: int) -> None:
        """Write a part of a file as the engine decodes it."""
        batch = self._archive.engine.batch_bytes

        def copy(start: int) -> None:
            pieces = self._archive.read_pieces(node, start, min(batch, end - start), keep=False)
            for first in range(0, len(pieces), _MAX_PIECES):
                some = pieces[first : first + _MAX_PIECES]
                if os.pwritev(descriptor, some, start) != (num_bytes := sum(map(len, some))):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                start += num_bytes

        with ThreadPoolExecutor(_BATCHES_AT_ONCE, thread_name_prefix="gompfs-passthrough") as executor:
            for _ in executor.map(copy, range(first, end, batch)):
                pass

    def _register(self, descriptor: int) -> int:
        return int(fcntl.ioctl(self._device, _BACKING_OPEN, bytearray(_BACKING_MAP.pack(descriptor, 0, 0))))

    def _forget(self, backing_id: int) -> None:
        fcntl.ioctl(self._device, _BACKING_CLOSE, _BACKING_ID.pack(backing_id))


def start_passthrough(archive: Archive, device: int, capacity: int, features: Feature) -> PassthroughFiles | None:
    """What opens files of a mount, in `capacity` bytes of memory; None where the kernel has or permits none."""
    files = None
    if Feature.PASSTHROUGH not in features:
        state = "no: the kernel does not offer it (Linux 6.9 does)"
    else:
        try:
            files = PassthroughFiles(archive, device, capacity)
        except OSError as error:
            state = f"no: {error.strerror} (it needs CAP_SYS_ADMIN)"
    if files is None:
        log.warning("files are not passed through: %s", state)
    tell_passthrough(archive, files.describe if files is not None else lambda: state)
    return files
