"""A progress bar with rate and remaining time on stderr, shown only if stderr is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gompfs.errors import display_text
from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_UPDATE_SECONDS = 0.1


class ProgressBar:
    """Counts bytes. Updates the bar, which rich draws, at most ten times a second."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task
        self._completed = 0
        self._next_update = 0.0

    def advance(self, size: int) -> None:
        """Report that `size` more bytes are done."""
        self.update(self._completed + size)

    def update(self, completed: int) -> None:
        """Report that `completed` bytes are done in total."""
        self._completed = completed
        now = time.monotonic()
        if now >= self._next_update:
            self._next_update = now + _UPDATE_SECONDS
            self._progress.update(self._task, completed=completed)


@contextmanager
def progress_bar(label: str, total: Callable[[], int | None], *, quiet: bool = False) -> Iterator[ProgressBar | None]:
    """Yields a bar of `total()` bytes (None: unknown), or None if stderr is not a terminal or `quiet` is set.

    `total` may have to walk a tree, so it is called only if there is a bar.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.progress import TransferSpeedColumn as Speed

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        Speed(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield ProgressBar(progress, progress.add_task(display_text(label), total=total()))
