"""Runs a search in one archive."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from gompfs._native.search import Cancellation, Matcher, PatternError, Search, SearchError, SearchStoppedError
from gompfs.archive import Archive
from gompfs.errors import CorruptIndexError, GompfsError, OptionError, display_path
from gompfs.light_types import TYPE_CHECKING, NamedTuple
from gompfs.model import WORD_RULES
from gompfs.search.query import SearchQuery
from gompfs.search.search_memory import SearchMemory

if TYPE_CHECKING:
    from gompfs.gpu.device.arrays import TextDevice
    from gompfs.search.gpu.archive_scan import ArchiveScan


class SearchTotals(NamedTuple):
    """How much was searched and found."""

    matches: int = 0
    matched_lines: int = 0
    files: int = 0
    files_with_matches: int = 0
    bytes: int = 0
    bytes_printed: int = 0
    """How long the lines or JSON messages were that were written. 0 for other outputs, as in ripgrep."""
    skipped_files: int = 0
    """Files that were not read, because they do not have the words that every match has."""
    skipped_bytes: int = 0
    scanned_bytes: int = 0
    """How much text a GPU has searched."""
    candidate_bytes: int = 0
    """How much of it may have had matches, and was searched again."""

    def plus(self, other: SearchTotals) -> SearchTotals:
        """Returns the sums."""
        return SearchTotals(*(left + right for left, right in zip(self, other, strict=True)))


class ArchiveSearch:
    """A search through files of an archive. Iterating runs it, and yields the output piece by piece."""

    def __init__(
        self,
        archive: Archive,
        query: SearchQuery,
        roots: Sequence[tuple[bytes, int]],
        matcher: Matcher | None = None,
        cancellation: Cancellation | None = None,
        memory: SearchMemory | None = None,
    ) -> None:
        """Search the files at and below `roots`: paths to print, and inode numbers.

        `matcher` is that of the query, if it exists already. With `cancellation` another thread can end the search.
        `memory` is that of the archive, if searches on devices should find there what others have left.
        Raises OptionError, CorruptIndexError and SearchStoppedError.
        """
        self._archive = archive
        self._memory = memory or SearchMemory(archive)
        self._cancellation = cancellation or Cancellation()
        self.failures: list[GompfsError] = []
        """Files that could not be read, or in which the pattern takes too long."""
        matcher = matcher or query.matcher()
        options = query.native_options()
        self._scan: ArchiveScan | None = None
        accelerator = archive.engine.accelerator
        # A device cannot compare text with its checksums.
        devices = accelerator.search(archive.size) if accelerator and not archive.verifies_content else ()
        if _may_skip_files(archive, query):
            archive.announce_text()
        try:
            with _words_loading(archive):
                self._search = Search(
                    archive.blocks.reader,
                    matcher,
                    archive.file_rows(),
                    roots,
                    options,
                    archive.engine.num_threads,
                    self._cancellation,
                )
            self._skip_files(query, in_grammar=not devices)
            if archive.stored.announcements is not None:
                archive.stored.announcements.stream(self._search.blocks(archive.num_blocks, archive.block_size))
            if devices and not query.is_decoded:
                self._skip_blocks(devices, matcher)
        except (PatternError, SearchError) as error:
            raise OptionError(str(error)) from None
        except ValueError as error:
            raise CorruptIndexError(f"the index is damaged: {error}", archive=archive.path) from None

    def _skip_files(self, query: SearchQuery, *, in_grammar: bool) -> None:
        archive = self._archive
        if _may_skip_files(archive, query):
            rule = WORD_RULES.index(archive.meta["words"])
            threads = archive.engine.num_threads
            self._search.skip_files(archive.stored.heads, rule, archive.block_size, threads, in_grammar=in_grammar)

    def _skip_blocks(self, devices: Sequence[TextDevice], matcher: Matcher) -> None:
        """Has devices find the blocks that may have matches."""
        from gompfs.search.gpu.archive_scan import ArchiveScan
        from gompfs.search.gpu.block_scan import ScanTable

        archive = self._archive
        shared_memory = min(device.shared_memory for device in devices)
        table = None if self._search.needs_all_files else matcher.scan_table(shared_memory)
        if table is None:
            return
        self._scan = scan = ArchiveScan(archive, self._memory.texts(devices), ScanTable(*table))
        scan.run(self._search.blocks(archive.num_blocks, archive.block_size), self._cancellation)
        if self._cancellation.is_cancelled:
            raise SearchStoppedError
        self._search.skip_blocks(
            sizes=scan.sizes.tobytes(),
            may_match=scan.may_match.tobytes(),
            has_nul=scan.has_nul.tobytes(),
            num_lines=scan.num_lines.tobytes(),
            last_lines=scan.last_lines.tobytes(),
            block_size=archive.block_size,
        )

    def __iter__(self) -> Iterator[bytes]:
        """Yields the output. Raises SearchStoppedError."""
        return filter(None, self.steps())

    def steps(self) -> Iterator[bytes]:
        """As __iter__, but also yields b"" after a while without output."""
        while True:
            found = self._search.next()
            if found is None:
                return
            output, failed = found
            for path, ino, failure, message in failed:
                if message:
                    self.failures.append(OptionError(message, archive=self._archive.path, path=path))
                    continue
                unreadable = self._archive.read_error(ino, failure)
                unreadable.path = unreadable.path or display_path(path)
                self.failures.append(unreadable)
            yield output

    @property
    def warnings(self) -> list[str]:
        """Errors in ignore files."""
        return [display_path(warning) for warning in self._search.warnings]

    @property
    def totals(self) -> SearchTotals:
        """How much was searched and found so far."""
        totals = SearchTotals(**self._search.totals())
        if self._scan is None:
            return totals
        return totals._replace(scanned_bytes=self._scan.num_bytes, candidate_bytes=self._scan.num_bytes_found)


def _may_skip_files(archive: Archive, query: SearchQuery) -> bool:
    return not query.read_all and not query.is_decoded and archive.meta.get("words", "") in WORD_RULES


@contextmanager
def _words_loading(archive: Archive) -> Iterator[None]:
    """Has the words of the archive read on a thread, while the index is read: that takes as long."""

    def load() -> None:
        with suppress(OSError, GompfsError):  # a later use of the words raises the error
            archive.stored.heads.load_words()

    thread = threading.Thread(target=load, name="gompfs-words")
    thread.start()
    try:
        yield
    finally:
        thread.join()
