"""Runs a mount in the foreground, or as a daemon that reports errors at start-up to the command that started it."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence

from gompfs.errors import GompfsError, MountError, display_path
from gompfs.light_types import TYPE_CHECKING, replaced
from gompfs.log import Logger, log_to_stderr, set_up, set_up_with, shut_down
from gompfs.mount.system.crash_watcher import CrashWatcher
from gompfs.mount.system.kernel_tuning import set_read_ahead
from gompfs.mount.system.mount_table import resolve_mountpoint
from gompfs.mount.system.notify import notify
from gompfs.mount.system.umount import check_mountpoint
from gompfs.options import MountOptions, join_source
from gompfs.remote import is_url, shown_url

if TYPE_CHECKING:
    from gompfs.mount.fuse.high_level import HighLevelSession
    from gompfs.mount.fuse.session import Session

log = Logger("gompfs")

_READY = b"+"


def mount_archives(
    archives: Sequence[str], mountpoint: str, options: MountOptions, *, foreground: bool = False
) -> None:
    """Mount an archive at `mountpoint`, or several as `options.several` says.

    Returns when the mount answers requests; in the foreground, when it has been unmounted. Raises GompfsError for an
    archive that cannot be read, MountError if mounting fails.
    """
    if options.log is not None:
        options = replaced(options, log=os.path.abspath(options.log))
    archives = [archive if is_url(archive) else os.path.abspath(archive) for archive in archives]
    mountpoint = resolve_mountpoint(mountpoint)
    if foreground:
        set_up_with(log_to_stderr)
        _run_service(archives, mountpoint, options)
        return
    check_mountpoint(mountpoint)
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.close(read_end)
        _run_daemon(archives, mountpoint, options, write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        message = pipe.read()
    if message != _READY:
        reason = os.fsdecode(message) or "the daemon ended before the mount was ready"
        if any(reason.startswith(f"{display_path(shown_url(archive))}: ") for archive in archives):
            raise MountError(reason)
        raise MountError(reason.removeprefix(f"{display_path(mountpoint)}: "), path=mountpoint)


def _run_service(archives: Sequence[str], mountpoint: str, options: MountOptions) -> None:
    """Serve in the foreground, and report the state to systemd if it started this process."""

    def ready() -> None:
        shown = display_path(":".join(map(shown_url, archives)))
        notify(READY="1", STATUS=f"{shown} is mounted at {display_path(mountpoint)}")

    try:
        _log_to_file(options.log)
        check_mountpoint(mountpoint)
        _serve(archives, mountpoint, options, ready, lambda: notify(STOPPING="1"))
    except BaseException as error:
        notify(STATUS=_describe(error))
        raise
    notify(STATUS="unmounted")


def _run_daemon(archives: Sequence[str], mountpoint: str, options: MountOptions, pipe: int) -> None:
    """Body of the daemon process. Never returns. Errors go to syslog and, until the mount is up, to the parent."""
    status = 1
    is_ready = False
    try:
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        set_up_with(_log_to_syslog)
        _log_to_file(options.log)

        def ready() -> None:
            nonlocal is_ready
            # Not earlier: an automount that waits for this mount admits only processes of the caller's process group.
            os.setsid()
            os.write(pipe, _READY)
            os.close(pipe)
            is_ready = True

        _serve(archives, mountpoint, options, ready)
        status = 0
    except BaseException as error:
        log.error("%s", _describe(error))
        if not is_ready:
            os.write(pipe, os.fsencode(_describe(error)))
    finally:
        shut_down()
        os._exit(status)


def _describe(error: BaseException) -> str:
    if isinstance(error, OSError) and not isinstance(error, GompfsError) and error.filename is not None:
        return f"{display_path(error.filename)}: {error.strerror}"
    return str(error)


def _log_to_syslog() -> None:
    """Log to syslog. The import of logging.handlers, which has a handler for it, takes longer than mounting."""
    import logging
    import syslog

    class SyslogHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            priority = syslog.LOG_ERR if record.levelno >= logging.ERROR else syslog.LOG_INFO
            if logging.INFO < record.levelno < logging.ERROR:
                priority = syslog.LOG_WARNING
            syslog.syslog(syslog.LOG_DAEMON | priority, self.format(record).replace("\0", "\\0"))

    syslog.openlog("gompfs", syslog.LOG_PID, syslog.LOG_DAEMON)
    logging.getLogger().addHandler(SyslogHandler())
    logging.getLogger().setLevel(logging.INFO)


def _log_to_file(path: str | None) -> None:
    """Log to a file too, if there is one. Raises OSError if it cannot be opened."""
    if path is None:
        return
    import logging
    from logging.handlers import WatchedFileHandler  # takes longer to import than mounting does

    set_up()
    handler = WatchedFileHandler(path)
    handler.setFormatter(logging.Formatter(f"%(asctime)s gompfs[{os.getpid()}]: %(message)s"))
    logging.getLogger().addHandler(handler)


def _serve(
    archives: Sequence[str],
    mountpoint: str,
    options: MountOptions,
    on_ready: Callable[[], None],
    on_stopping: Callable[[], None] = lambda: None,
) -> None:
    from gompfs.mount.tree.opening import open_content

    # A mount creates many small objects and frees few: with the default thresholds, the garbage collector takes a tenth
    # of the time of a walk.
    gc.set_threshold(100_000, 50, 50)
    # A thread that decodes must not make the threads that answer requests wait 5 ms, the default, for the interpreter.
    sys.setswitchinterval(1e-4)
    watched = CrashWatcher(mountpoint) if options.auto_unmount else contextlib.nullcontext()
    with open_content(archives, options) as content, _made_directory(mountpoint), watched:
        session = _session(mountpoint, join_source(list(map(shown_url, archives)), options.several), options)

        def ready() -> None:
            set_read_ahead(mountpoint, options.readahead)
            content.follow()
            on_ready()

        try:
            session.serve(content, ready)
        finally:
            on_stopping()
            session.close()


@contextlib.contextmanager
def _made_directory(mountpoint: str) -> Iterator[None]:
    """Create the mount point if it does not exist. If created here, it is removed at the end."""
    try:
        os.mkdir(mountpoint)
    except FileExistsError:
        yield
        return
    try:
        yield
    finally:
        try:
            os.rmdir(mountpoint)
        except OSError as error:
            log.warning("%s: the mount point could not be removed: %s", display_path(mountpoint), error.strerror)


def _session(mountpoint: str, source: str, options: MountOptions) -> Session | HighLevelSession:
    """Returns the connection to the kernel that `options.api` selects."""
    if options.api == "high":
        from gompfs.mount.fuse.high_level import HighLevelSession

        return HighLevelSession(mountpoint, source, options)
    from gompfs.mount.fuse.session import Session

    return Session(mountpoint, source, options)
