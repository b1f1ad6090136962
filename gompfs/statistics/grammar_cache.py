"""The grammars of an archive: made of its parts, and cached for a while by mounts, which get many requests."""

from __future__ import annotations

import threading
import time

from gompfs.light_types import TYPE_CHECKING
from gompfs.model import TEXT_KINDS, WORD_SECTION, Segment

if TYPE_CHECKING:
    from gompfs.archive import Archive
    from gompfs.text.grammar import Grammar

_KEPT_SECONDS = 20.0


class GrammarCache:
    """The grammars of an archive, loaded on first use and cached until they are unused for 20 seconds. Thread-safe."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._lock = threading.Lock()
        self._grammars: list[Grammar] | None = None
        self._used_at = 0.0

    def get(self) -> list[Grammar]:
        """Returns the grammars. A thread that calls it while another loads them waits."""
        with self._lock:
            self._used_at = time.monotonic()
            if self._grammars is None:
                self._grammars = load_grammars(self._archive)
                self._drop_in(_KEPT_SECONDS)
            return list(self._grammars)

    def drop(self) -> None:
        """Free the cached grammars."""
        with self._lock:
            self._grammars = None

    def _drop_in(self, seconds: float) -> None:
        timer = threading.Timer(seconds, self._drop_if_unused)
        timer.daemon = True
        timer.start()

    def _drop_if_unused(self) -> None:
        with self._lock:
            left = self._used_at + _KEPT_SECONDS - time.monotonic()
            if left > 0 and self._grammars is not None:
                self._drop_in(left)
            else:
                self._grammars = None


def load_grammars(archive: Archive) -> list[Grammar]:
    """Returns the grammar of each segment whose text is stored in parts."""
    from gompfs.statistics.text_in_parts import text_in_parts

    return [text_in_parts(archive, segment).grammar() for segment in archive.segments if has_text_parts(segment)]


def segments_with_grammars(archive: Archive) -> set[int]:
    """Returns the numbers of the segments whose text is stored in parts, if they have any."""
    in_parts = {segment.number for segment in archive.segments if has_text_parts(segment)}
    return in_parts | {section.segment for section in archive.sections if section.kind == WORD_SECTION}


def has_text_outside_parts(archive: Archive) -> bool:
    """Returns whether there may be text that is not stored in parts, or whose files lie in several segments."""
    return not len(archive.segments) == len(segments_with_grammars(archive)) <= 1


def has_text_parts(segment: Segment) -> bool:
    """Returns whether the text of a segment is stored in parts, which are its grammar."""
    return not TEXT_KINDS.isdisjoint(segment.parts.kinds)
