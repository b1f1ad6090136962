"""Search for patterns in files (native/search)."""

from collections.abc import Mapping, Sequence

from gompfs._native.blocks import BlockReader, ReadFailure
from gompfs._native.index import FileRows
from gompfs._native.parts import PartHeads

class PatternError(ValueError):
    """A pattern or glob cannot be used; the message says why."""

class SearchError(RuntimeError):
    """A search takes too many steps, or too much memory."""

class SearchStoppedError(RuntimeError):
    """A search was ended by its Cancellation."""

class Cancellation:
    """Ends a search from any thread."""

    def __init__(self) -> None: ...
    def cancel(self) -> None:
        """End the search. Its methods, also those that run now, soon raise SearchStoppedError."""

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called."""

def limit_memory(num_bytes: int) -> None:
    """Set how much memory all searches of the process may take together for what is large: lines and their matches.

    A search that needs more raises SearchError.
    """

class Matcher:
    """A compiled pattern. Any number of threads may use it."""

    def __init__(
        self,
        patterns: Sequence[bytes],
        *,
        fixed: bool,
        caseless: bool,
        smart_case: bool,
        words: bool,
        lines: bool,
        multi_line: bool,
        dot_all: bool,
        unicode: bool,
        pcre: bool,
        crlf: bool,
        replacement: bytes | None,
    ) -> None:
        """Compile patterns in ripgrep's syntax; a match of one of them is a match. Raises PatternError.

        `fixed`: they are literals. `smart_case`: as `caseless`, unless a pattern has an uppercase letter. `words` and
        `lines`: a match must not have a word character next to it; must be a whole line. `dot_all`: with `multi_line`,
        a dot also matches a line feed. `pcre`: they have the syntax of PCRE2. `crlf`: lines may end with a carriage
        return and a line feed. `replacement` replaces matches where the search prints them.
        """

    def scan_table(self, max_shared_bytes: int) -> tuple[str, bytes, int, bool] | None:
        """Returns what a GPU searches blocks for, see gompfs.gpu.block_scan.ScanTable.

        The kernel gets at most `max_shared_bytes` of shared memory. None if a block cannot be searched in this way.
        """

class Search:
    """A search through the files of an archive."""

    def __init__(
        self,
        reader: BlockReader,
        matcher: Matcher,
        rows: FileRows,
        roots: Sequence[tuple[bytes, int]],
        listing: Mapping[str, object],
        options: Mapping[str, object],
        num_threads: int,
        cancellation: Cancellation,
    ) -> None:
        """Search the files at and below `roots`: paths to print, and inode numbers.

        `listing` says which files are searched, see SearchQuery.listing; `options` are the members of SearchOptions in
        native/search/search_options.h. Raises PatternError for a glob, SearchError for too many roots or
        if ignore rules take too long, SearchStoppedError, and ValueError if the rows contradict each other.
        """

    @property
    def warnings(self) -> list[bytes]:
        """What is wrong with ignore files, each a line."""

    def skip_files(self, heads: PartHeads, word_rule: int, block_size: int, num_threads: int) -> None:
        """Leave out files that cannot have a match, because no part of them has the words of the pattern.

        `word_rule` is an index of gompfs.model.WORD_RULES. Raises SearchStoppedError.
        """

    @property
    def needs_all_files(self) -> bool:
        """Whether files without a match are of interest too."""

    def blocks(self, num_blocks: int, block_size: int) -> bytes:
        """Returns 1 for each of the first `num_blocks` blocks of the stream in which a file has bytes, else 0."""

    def skip_blocks(
        self,
        sizes: bytes,
        may_match: bytes,
        has_nul: bytes,
        num_lines: bytes,
        last_lines: bytes,
        block_size: int,
    ) -> None:
        """Do not read what has no matches, by what is known of all blocks; once, before the first `next`.

        For each block: its uncompressed size, whether it may have a byte of a line with a match, whether it has a NUL,
        the number of line feeds, the offset after the last one or 0. `may_match` and `has_nul` are bytes, the others 32
        bits wide. Nothing need be known of a block that may match.
        """

    def next(self) -> tuple[bytes, list[tuple[bytes, int, ReadFailure, str]]] | None:
        """Returns the next output, and (path, ino, reason, message) of the files that failed; None at the end.

        The message is empty if the file could not be read. Otherwise it says why the search of the file ended.
        Raises SearchStoppedError.
        """

    def totals(self) -> dict[str, int]:
        """Returns how much was searched and found so far."""
