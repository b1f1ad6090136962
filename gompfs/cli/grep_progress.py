"""How far a search is, on a line of the terminal that is erased before anything else is printed."""

from __future__ import annotations

import os
import stat
import sys
import time
from typing import TYPE_CHECKING

from gompfs.cli.output import human_size

if TYPE_CHECKING:
    from gompfs.search import SearchTotals

_FIRST_SECONDS = 1.0  # shorter searches show nothing
_UPDATE_SECONDS = 0.2
_ERASE = "\r\x1b[K"


class SearchProgress:
    """Shows the totals of a search on stderr, if that is a terminal.

    Nothing is shown if stdout is a pipe: it may lead to a pager, which draws on the same terminal.
    """

    def __init__(self) -> None:
        self._is_shown = False
        self._next_update = time.monotonic() + _FIRST_SECONDS
        self._is_enabled = sys.stderr.isatty() and (sys.stdout.isatty() or _is_file(sys.stdout.fileno()))

    def update(self, totals: SearchTotals) -> None:
        """Show how much was searched, if that was not shown just now."""
        now = time.monotonic()
        if not self._is_enabled or now < self._next_update:
            return
        self._next_update = now + _UPDATE_SECONDS
        self._is_shown = True
        skipped = f", {human_size(totals.skipped_bytes)} skipped" if totals.skipped_bytes else ""
        sys.stderr.write(f"{_ERASE}{human_size(totals.bytes)} in {totals.files:,} files searched{skipped}")
        sys.stderr.flush()

    def erase(self) -> None:
        """Erase what is shown."""
        if self._is_shown:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
            self._is_shown = False


def _is_file(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)
