"""Decides which of the virtual files that lookups create are kept: those that were used last.

A user can make any number of them, each as large as the text of the archive. So there are limits for their number, for
their bytes, and for how many of them have a temporary file, which takes a descriptor.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from gompfs.mount.virtual_files import VirtualFile

_MAX_FILES = 256
MAX_TEMPORARY_FILES = 32
MAX_BYTES = 128 << 20
_MAX_BYTES_IN_USE = 1 << 30
"""Files that were read a short time ago are kept above MAX_BYTES, up to this."""
_SECONDS_IN_USE = 10.0


class AnswerCache:
    """Virtual files by their paths. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: OrderedDict[bytes, VirtualFile] = OrderedDict()

    def use(self, path: bytes, file: VirtualFile) -> list[bytes]:
        """Notes that a file is used now, and returns the paths of others, which are not kept any more."""
        with self._lock:
            self._files[path] = file
            self._files.move_to_end(path)
            num_files, num_bytes = len(self._files), sum(each.num_bytes for each in self._files.values())
            num_temporary = sum(each.has_temporary_file for each in self._files.values())
            used_before = time.monotonic() - _SECONDS_IN_USE
            dropped = []
            for old, each in self._files.items():
                is_unused = each.used_at < used_before
                too_many = num_bytes > (MAX_BYTES if is_unused else _MAX_BYTES_IN_USE)
                too_many |= num_files > _MAX_FILES or num_temporary > MAX_TEMPORARY_FILES
                if too_many and old != path:
                    dropped.append(old)
                    num_files, num_bytes = num_files - 1, num_bytes - each.num_bytes
                    num_temporary -= each.has_temporary_file
            for old in dropped:
                del self._files[old]
            return dropped
