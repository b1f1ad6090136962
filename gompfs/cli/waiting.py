"""Shows how long a statistic has been computed, on a line of the terminal that is erased before the output."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

from gompfs.cli.output import human_duration
from gompfs.light_types import TYPE_CHECKING
from gompfs.statistics.report import Report

if TYPE_CHECKING:
    from types import TracebackType

_FIRST_SECONDS = 1.0  # shorter waits show nothing
_UPDATE_SECONDS = 0.5
_ERASE = "\r\x1b[K"


class Waiting:
    """A context that shows the time on stderr while its body runs, until the output begins, if stderr is a terminal.

    It cannot show progress, because one call computes the whole statistic.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._show, name="gompfs-waiting", daemon=True)

    def __enter__(self) -> Waiting:
        if sys.stderr.isatty():
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def until_it_begins(self, report: Report) -> Report:
        """Returns the report. When the first piece of its text has been made, the line is erased."""
        return _Watched(report, self)

    def end(self) -> None:
        """Erase the line, and show nothing more."""
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join()

    def _show(self) -> None:
        started = time.monotonic()
        seconds = _FIRST_SECONDS
        is_shown = False
        while not self._ends.wait(seconds):
            passed = human_duration(round(time.monotonic() - started))
            sys.stderr.write(f"{_ERASE}computing {self._label}: {passed}")
            sys.stderr.flush()
            is_shown, seconds = True, _UPDATE_SECONDS
        if is_shown:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()


class _Watched(Report):
    """A report whose first piece ends a Waiting."""

    def __init__(self, report: Report, waiting: Waiting) -> None:
        self._report = report
        self._waiting = waiting

    @property
    def size(self) -> int | None:
        """See Report.size."""
        return self._report.size

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._report:
            self._waiting.end()
            yield piece
