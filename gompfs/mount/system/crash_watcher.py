"""Unmounts after a crash of the daemon, for `-o auto_unmount`.

The option of the same name of fusermount3 (seen in 3.14) does not work for mounts by ordinary users, nor in a chroot
whose root directory is not the root of a mount. So a shell process waits here until the daemon's end of a pipe is
closed.
"""

from __future__ import annotations

import os
import sys

from gompfs.errors import MountError
from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

_PIPE = 3  # the descriptor number of the pipe in the shell
_WAIT = f'trap "" HUP INT TERM; cd /; read -r _ <&{_PIPE} || exec "$@" {_PIPE}<&-'
_CLEAR = "import sys; from gompfs.mount.system.umount import clear_dead_mounts; clear_dead_mounts(sys.argv[1])"


class CrashWatcher:
    """A watcher process: it detaches the mount at `mountpoint` if its parent ends inside the `with` block."""

    def __init__(self, mountpoint: str) -> None:
        reading, self._pipe = os.pipe()
        package_parent = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
        clear = [sys.executable, "-c", _CLEAR, mountpoint]
        actions = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        try:
            self._process = os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", _WAIT, "gompfs-auto-unmount", *clear],
                {**os.environ, "PYTHONPATH": package_parent, "PYTHONSAFEPATH": "1"},
                file_actions=[*actions, (os.POSIX_SPAWN_DUP2, reading, _PIPE)],
                setsid=True,
            )
        except OSError as error:
            os.close(self._pipe)
            raise MountError(f"auto_unmount: /bin/sh cannot be started: {error.strerror}", path=mountpoint) from error
        finally:
            os.close(reading)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let the watcher end without unmounting: the mount is already gone."""
        os.write(self._pipe, b"\n")
        os.close(self._pipe)
        try:
            os.waitpid(self._process, 0)
        except ChildProcessError:
            pass  # SIGCHLD is ignored, so the kernel has already reaped the child
