"""An automounter for one mount, written from the kernel's documentation (autofs.rst).

    python automount.py DIRECTORY COMMAND...

COMMAND must mount something at DIRECTORY. It runs when a process reads DIRECTORY/file. All processes that use DIRECTORY
wait until COMMAND has ended, except those in the process group of this program.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
from collections.abc import Sequence

_READY, _FAIL, _CATATONIC = 0x9360, 0x9361, 0x9362  # AUTOFS_IOC_...
_PATIENCE = 20  # seconds


def mount_on_demand(directory: str, command: Sequence[str]) -> None:
    """Prints what the reader reads. Raises CalledProcessError or TimeoutExpired."""
    requests, kernel = os.pipe()
    options = f"fd={kernel},pgrp={os.getpgrp()},minproto=5,maxproto=5,direct"
    subprocess.run(["mount", "-t", "autofs", "-o", options, "none", directory], check=True, pass_fds=[kernel])
    place = os.open(directory, os.O_RDONLY)
    reader = subprocess.Popen(["cat", f"{directory}/file"], process_group=0)
    _, _, token = struct.unpack_from("iiI", os.read(requests, 4096))  # struct autofs_v5_packet
    answer = _FAIL
    try:
        subprocess.run(command, check=True, timeout=_PATIENCE)
        answer = _READY
    finally:
        fcntl.ioctl(place, answer, token)
        fcntl.ioctl(place, _CATATONIC)  # no process waits from now on
        os.close(place)
        reader.wait(timeout=_PATIENCE)


if __name__ == "__main__":
    mount_on_demand(sys.argv[1], sys.argv[2:])
