"""FUSE passthrough: the kernel reads whole files by itself, from a decoded copy in memory (the backing file).

Needs Linux 6.9. A file is decoded when it is opened; the kernel then sends no read requests for it at all. While a file
is open, the kernel requires that every other open of it uses the same mode and the same backing file, so this module
counts how often each file is open.
"""

from __future__ import annotations

import mmap
import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from gompfs._native.fuse import register_backing_file, unregister_backing_file
from gompfs.archive import Archive
from gompfs.errors import GompfsError, MountError, display_path
from gompfs.log import Logger
from gompfs.model import Inode
from gompfs.mount.not_ready import NotReadyError
from gompfs.mount.system.memory_files import MemoryFiles

log = Logger(__name__)

_PART = 256 << 20  # bytes after which the decoder checks whether the mount ends
_BATCHES_AT_ONCE = 2  # one is written while the other is decoded
_MAX_PIECES = os.sysconf("SC_IOV_MAX")


class OpenFile(NamedTuple):
    """How the kernel opens a file. It reports the closing of files that are counted."""

    is_counted: bool
    backing_id: int | None = None
    """The backing file that the kernel reads from, or None if it asks the daemon."""


@dataclass
class _File:
    """A file that is open, or whose backing file is cached for the next open."""

    size: int
    backing_id: int | None = None
    """None while the file is being decoded, and if it is read block by block instead."""
    is_ready: bool = False
    num_open: int = 0
    waiting: list[Callable[[], None]] = field(default_factory=list)


class PassthroughFiles:
    """The backing files of one mount, in at most `capacity` bytes of memory. Thread-safe.

    Backing files of closed files are cached. When memory is needed, the ones that were opened longest ago are evicted.
    """

    least_size = 1 << 20
    """In bytes. A smaller file takes one or two reads, which is faster than creating a backing file."""

    def __init__(self, archive: Archive, device: int, capacity: int) -> None:
        """`device` is the mount's /dev/fuse descriptor. Raises OSError if the kernel refuses backing files."""
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
                unregister_backing_file(device, register_backing_file(device, descriptor))
        except OSError:
            self._memory.close()
            raise

    def close(self) -> None:
        """Stop decoding. The kernel releases the backing files when the connection ends."""
        with self._lock:
            self._is_closed = True
            threads = list(self._threads)
        for thread in threads:
            thread.join()
        self._memory.close()

    def open(self, inode: Inode | None) -> OpenFile:
        """Open a file. `inode` is None for a virtual file.

        Raises NotReadyError while the file is being decoded.
        """
        if inode is None or not stat.S_ISREG(inode.mode) or not self.least_size <= inode.size <= self._capacity:
            return OpenFile(is_counted=False)
        node = inode.ino
        with self._lock:
            file = self._files.get(node)
            if file is None:
                file = self._files[node] = _File(inode.size)
                if node in self._refused or not self._free_memory(inode.size):
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
            return OpenFile(is_counted=True, backing_id=file.backing_id)

    def release(self, node: int) -> None:
        """Close a file that is counted."""
        with self._lock:
            file = self._files[node]
            file.num_open -= 1
            if file.num_open == 0 and file.backing_id is None:
                del self._files[node]

    def describe(self) -> str:
        """Returns the state as text for users: how many files are passed through, and their memory."""
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

    def _free_memory(self, size: int) -> bool:
        """Evict backing files of closed files to free `size` bytes. The caller holds the lock.

        Returns False, and evicts none, if all of them are not enough.
        """
        unused = [node for node, file in self._files.items() if file.backing_id is not None and file.num_open == 0]
        if self._num_bytes - sum(self._files[node].size for node in unused) + size > self._capacity:
            return False
        for node in unused:
            if self._num_bytes + size <= self._capacity:
                break
            file = self._files.pop(node)
            self._num_bytes -= file.size
            if file.backing_id is not None:
                unregister_backing_file(self._device, file.backing_id)
        return True

    def _fill(self, node: int, file: _File) -> None:
        """Decode a file and register it with the kernel. If that fails, the file is read block by block instead."""
        backing_id = None
        try:
            with self._memory.create(file.size) as descriptor:
                self._decode(node, file.size, descriptor)
                backing_id = register_backing_file(self._device, descriptor)
        except GompfsError as error:
            # A read of the damaged block will report the error. Reads of all other blocks succeed.
            log.debug("%s is not passed through: %s", display_path(self._archive.path_of(node)), error)
        except Exception as error:  # opens that wait for the file must be answered in any case
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
        """Write the content of a file. Raises OSError, MountError if the mount ends, and the errors of Archive.read."""
        with mmap.mmap(descriptor, size) as mapped, memoryview(mapped) as content:
            for start in range(0, size, _PART):
                if self._is_closed:
                    raise MountError("the mount ends")
                with content[start : start + _PART] as part:
                    self._decode_part(node, start, part)

    def _decode_part(self, node: int, file_offset: int, part: memoryview) -> None:
        """Decode a part of a file: at once on the CPU, or in batches of another engine, some of them at a time."""
        engine = self._archive.engine
        if engine.decodes_on_cpu(len(part)):
            self._archive.decode_into(node, file_offset, part)
            return
        batch = engine.batch_bytes

        def decode(start: int) -> None:
            with part[start : start + batch] as out:
                self._archive.decode_into(node, file_offset + start, out)

        with ThreadPoolExecutor(_BATCHES_AT_ONCE, thread_name_prefix="gompfs-passthrough") as executor:
            for _ in executor.map(decode, range(0, len(part), batch)):
                pass


def start_passthrough(
    archive: Archive, device: int, capacity: int, has_passthrough: bool
) -> tuple[PassthroughFiles | None, Callable[[], str]]:
    """Returns the passthrough files of a mount, and a function that returns the state of passthrough as text for users.

    The files are None if the kernel does not support passthrough, as `has_passthrough` says, or does not permit it.
    `capacity` is the memory for backing files in bytes.
    """
    if not has_passthrough:
        state = "no: the kernel does not support it (Linux 6.9 or newer needed)"
    else:
        try:
            files = PassthroughFiles(archive, device, capacity)
        except OSError as error:
            state = f"no: {error.strerror} (it needs CAP_SYS_ADMIN)"
        else:
            return files, files.describe
    log.warning("files are not passed through: %s", state)
    return None, lambda: state
