"""Runs fusermount3, the set-user-id program of the package fuse3 that lets ordinary users mount and unmount."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence

from gompfs.errors import MountError

_NAME = "fusermount3"
_DIRECTORIES = ("/usr/local/bin", "/usr/bin", "/bin")  # searched in addition to $PATH
_SOCKET_VARIABLE = "_FUSE_COMMFD"
_SOCKET = 3  # the descriptor number of the socket in fusermount3
_MTAB = "/etc/mtab"


def has_fusermount() -> bool:
    """Returns whether fusermount3 is installed."""
    return _find() is not None


def fusermount_mount(mountpoint: str, options: Mapping[str, str | bool]) -> int:
    """Mount. Returns the open /dev/fuse descriptor, which fusermount3 sends over a socket. Raises MountError."""
    import socket

    texts = (name if value is True else f"{name}={value}" for name, value in options.items())
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours:
        with theirs:
            pid, messages = _start(["-o", ",".join(texts), "--", mountpoint], mountpoint, theirs.fileno())
        try:
            _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
            if not descriptors:
                reason = _wait(pid, messages, mountpoint) or f"{_NAME} did not send the descriptor of /dev/fuse"
                raise MountError(reason, path=mountpoint)
            _wait(pid, messages, mountpoint)
        finally:
            os.close(messages)
    device = descriptors[0]
    os.set_inheritable(device, False)
    return device


def fusermount_unmount(mountpoint: str, *, lazy: bool) -> None:
    """Unmount. `lazy` detaches a mount that is in use. Raises MountError."""
    if not os.path.exists(_MTAB):
        reason = f"{_NAME} needs {_MTAB}, which is missing; as root: ln -s /proc/self/mounts {_MTAB}"
        raise MountError(reason, path=mountpoint)
    pid, messages = _start(["-u", *(["-z"] if lazy else []), "--", mountpoint], mountpoint)
    try:
        reason = _wait(pid, messages, mountpoint)
    finally:
        os.close(messages)
    if reason:
        is_busy = os.strerror(errno.EBUSY) in reason
        raise MountError("target is busy" if is_busy else reason, path=mountpoint)


def _find() -> str | None:
    candidates = (os.path.join(directory, _NAME) for directory in (*os.get_exec_path(), *_DIRECTORIES))
    return next((path for path in candidates if os.access(path, os.X_OK)), None)


def _start(arguments: Sequence[str], mountpoint: str, socket: int | None = None) -> tuple[int, int]:
    """Start fusermount3. Returns its process id, and a pipe from its standard error. Raises MountError."""
    path = _find()
    if path is None:
        raise MountError(f"{_NAME} is missing (Debian, Ubuntu: apt-get install fuse3)", path=mountpoint)
    reading, writing = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, writing, 2)]
    environment = dict(os.environ)
    if socket is not None:
        actions.append((os.POSIX_SPAWN_DUP2, socket, _SOCKET))
        environment[_SOCKET_VARIABLE] = str(_SOCKET)
    try:
        return os.posix_spawn(path, [_NAME, *arguments], environment, file_actions=actions), reading
    except OSError as error:
        os.close(reading)
        raise MountError(f"{path} cannot be started: {error.strerror}", path=mountpoint) from error
    finally:
        os.close(writing)


def _wait(pid: int, messages: int, mountpoint: str) -> str:
    """Wait until fusermount3 ends. Returns its error message, or "" if it succeeded."""
    with os.fdopen(os.dup(messages), "rb") as file:
        text = os.fsdecode(file.read())
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:  # SIGCHLD is ignored: there is no status, but an error message means that it failed
        status = 1 if text else 0
    if status == 0:
        return ""
    # The caller adds the mount point to the message.
    lines = text.replace(f" {mountpoint}", "").splitlines() or [f"it ended with status {status}"]
    return "; ".join(line if line.startswith(_NAME) else f"{_NAME}: {line}" for line in lines)
