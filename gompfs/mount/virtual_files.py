"""The virtual files: statistics of an archive, each computed when it is first opened, then cached."""

from __future__ import annotations

import stat
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from gompfs.archive import Archive
from gompfs.errors import EntryTypeError, GompfsError, OptionError, StatsUnavailableError, display_path
from gompfs.model import GRAMMAR_SECTION, Section
from gompfs.mount.metrics import metrics
from gompfs.mount.spool import Spool

if TYPE_CHECKING:
    from gompfs.grammar import Grammar
    from gompfs.statistics import Report, SortOrder, Traversal
    from gompfs.statistics.content import ContentText


class KeptGrammars:
    """The grammars of an archive, loaded on first use and cached until they are unused for 20 seconds."""

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
                self._grammars = _load_grammars(self._archive)
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


_KEPT_SECONDS = 20.0
_kept: WeakKeyDictionary[Archive, KeptGrammars] = WeakKeyDictionary()


def keep_grammars(archive: Archive) -> None:
    """Let load_grammars cache the grammars of an archive for a while, as mounts do: they get many requests."""
    _kept[archive] = KeptGrammars(archive)


def forget_grammars(archive: Archive) -> None:
    """Free the cached grammars of an archive, and cache none any more."""
    _kept.pop(archive).drop()


_fuse_apis: WeakKeyDictionary[Archive, str] = WeakKeyDictionary()


def tell_fuse_api(archive: Archive, api: str) -> None:
    """Record the FUSE interface by which an archive is mounted, for `info`."""
    _fuse_apis[archive] = api


_passthrough: WeakKeyDictionary[Archive, Callable[[], str]] = WeakKeyDictionary()


def tell_passthrough(archive: Archive, describe: Callable[[], str]) -> None:
    """Record the function that `info` calls for the state of passthrough of a mounted archive."""
    _passthrough[archive] = describe


def describe_passthrough(archive: Archive) -> str | None:
    """Returns the state of passthrough as text for users, or None for an archive that is not mounted."""
    describe = _passthrough.get(archive)
    return None if describe is None else describe()


def load_statistics() -> None:
    """Import the modules that the first statistic would have to wait for otherwise."""
    import gompfs.statistics.device_postings  # noqa: F401


def load_grammars(archive: Archive) -> list[Grammar]:
    """Returns the grammars that the archive holds."""
    kept = _kept.get(archive)
    return _load_grammars(archive) if kept is None else kept.get()


def _load_grammars(archive: Archive) -> list[Grammar]:
    from gompfs.grammar import Grammar

    return [Grammar.from_bytes(archive.read_section(section)) for section in _grammar_sections(archive)]


def _grammar_sections(archive: Archive) -> list[Section]:
    return [section for section in archive.sections if section.kind == GRAMMAR_SECTION]


def _content(archive: Archive, grammars: Sequence[Grammar], query: StatsQuery) -> ContentText:
    """Returns the text of the files that the query counts and that no grammar covers.

    `grammars` are all grammars of the archive.
    """
    from gompfs.statistics.content import ContentText

    if len(grammars) == len(archive.segments):
        return ContentText(archive, ())
    known = _inos(grammars).union(archive.binary_files())
    return ContentText(archive, _counted_inos(archive, query) - known)


def _check_is_text(archive: Archive, content: ContentText, query: StatsQuery) -> None:
    if query.ino in content.binary_files:
        raise _no_stats_of_binary_file(archive, query.ino)


def _inos(grammars: Sequence[Grammar]) -> set[int]:
    return set().union(*(grammar.inos() for grammar in grammars))


def _no_stats_of_binary_file(archive: Archive, ino: int) -> StatsUnavailableError:
    return StatsUnavailableError("a binary file has no statistics", archive=archive.path, path=archive.path_of(ino))


@dataclass(frozen=True)
class StatsQuery:
    """The parameters of a statistic. The virtual files use the defaults."""

    ino: int | None = None
    """Inode number of the only file to count; None for all files."""
    num_words: int = 3
    """The length of the n-grams, 1 to 5 words."""
    top: int = 0
    """Limit for the words of a term vector, the files of an n-gram, or the lines. 0: no limit; tf-idf: 10 words."""
    words: tuple[bytes, ...] = ()
    """The words to search for, 1 to 5 in a row."""
    begin: int = 0
    """Index of the first word to return, from 0."""
    end: int | None = None
    """Index after the last word to return; None for the end of the file."""
    path: bytes | None = None
    """The path to print for the file `ino`, since its other paths may be secret; None for any path of it."""

    def __post_init__(self) -> None:
        for name, number in (("top", self.top), ("begin", self.begin), ("end", self.end)):
            if number is not None and not 0 <= number < 1 << 63:
                raise OptionError(f"{name} must be 0 or more and fit into 63 bits, not {number}")


_EVERYTHING = StatsQuery()


def wordcount(archive: Archive, query: StatsQuery = _EVERYTHING) -> Report:
    """Returns `word<TAB>count` lines, by count descending, then by word."""
    from gompfs.statistics import SortOrder

    return _word_count_report(archive, query, SortOrder.BY_COUNT)


def sort(archive: Archive, query: StatsQuery = _EVERYTHING) -> Report:
    """Returns `word<TAB>count` lines by word."""
    from gompfs.statistics import SortOrder

    return _word_count_report(archive, query, SortOrder.BY_WORD)


def _traversal(archive: Archive, grammars: Sequence[Grammar]) -> Traversal:
    """Returns a traversal on the device that the engine chooses for this amount of work, or on the CPU."""
    from gompfs.statistics import Traversal

    num_symbols = sum(grammar.num_symbols for grammar in grammars)
    accelerator = archive.engine.accelerator
    return Traversal(device=accelerator.arrays(num_symbols) if accelerator else None)


def inverted_index(archive: Archive, query: StatsQuery = _EVERYTHING) -> Report:
    """Returns `word<TAB>path<TAB>path...` lines by word."""
    from gompfs.statistics import inverted_index_report

    grammars, paths = _text(archive, query)
    return inverted_index_report(grammars, paths, top=query.top, traversal=_traversal(archive, grammars))


def term_vector(archive: Archive, query: StatsQuery = _EVERYTHING) -> Report:
    """Returns `path<TAB>count word<TAB>count word...` lines by path, words by count descending, then by word."""
    from gompfs.statistics import term_vector_report

    grammars, paths = _text(archive, query)
    return term_vector_report(grammars, paths, top=query.top, traversal=_traversal(archive, grammars))


def sequence_count(archive: Archive, query: StatsQuery = _EVERYTHING) -> Report:
    """Returns `w1 w2 w3<TAB>count` lines, by count descending, then by the words."""
    from gompfs.statistics import sequence_count_report

    grammars, paths = _text(archive, query)
    how = _traversal(archive, grammars)
    return sequence_count_report(grammars, paths, num_words=query.num_words, top=query.top, traversal=how)


def ranked_inverted_index(archive: Archive, query: StatsQuery = _EVERYTHING) -> Report:
    """Returns `w1 w2 w3<TAB>count path<TAB>count path...` lines by the words.

    The files of a line are by count descending, then by path.
    """
    from gompfs.statistics import ranked_inverted_index_report

    grammars, paths = _text(archive, query)
    how = _traversal(archive, grammars)
    return ranked_inverted_index_report(grammars, paths, num_words=query.num_words, top=query.top, traversal=how)


def tfidf(archive: Archive, query: StatsQuery = _EVERYTHING) -> Report:
    """Returns `path<TAB>score word<TAB>score word...` lines by path, words by score descending, then by word.

    For a single file too, the scores compare it with all other files.
    """
    from gompfs.statistics import DEFAULT_TOP, FixedReport, escape_path, tfidf_report

    grammars, paths = _text(archive, query, with_others=True)
    how = _traversal(archive, grammars)
    report = tfidf_report(grammars, paths, top=query.top or DEFAULT_TOP, traversal=how)
    if query.ino is None:
        return report
    beginning = escape_path(paths.get(query.ino, b"")) + b"\t"
    lines = (line for piece in report for line in piece.splitlines(keepends=True))
    return FixedReport(b"".join(line for line in lines if line.startswith(beginning)))


def phrase(archive: Archive, query: StatsQuery) -> Report:
    """Returns `path<TAB>count` lines of the files with the words in a row, by count descending, then by path."""
    from gompfs.statistics import phrase_report

    grammars, paths = _text(archive, query)
    return phrase_report(grammars, paths, query.words, top=query.top)


def words(archive: Archive, query: StatsQuery) -> Report:
    """Returns the words of a file from index `begin` up to `end`, one per line."""
    from gompfs.statistics import END, words_report

    if query.ino is None:
        raise OptionError("words needs a file")
    grammars, _ = _text(archive, query)
    return words_report(grammars, query.ino, query.begin, END if query.end is None else query.end)


def _word_count_report(archive: Archive, query: StatsQuery, order: SortOrder) -> Report:
    from concurrent.futures import ThreadPoolExecutor

    from gompfs.archive.arrays import inode_numbers
    from gompfs.grammar import CountedWords
    from gompfs.statistics import word_count_report
    from gompfs.statistics.device_postings import count_words

    sections = _grammar_sections(archive)
    # A device only if the user asked for it: otherwise the CPU counts while it reads.
    how = _traversal(archive, [])
    if how.device is None and query.ino is None and len(sections) == len(archive.segments):
        with ThreadPoolExecutor(1, thread_name_prefix="gompfs-inode-numbers") as executor:
            counted = executor.submit(inode_numbers, archive)  # runs while a section is read
            texts = map(archive.read_section, sections)
            sources = [CountedWords.from_section(text, counted.result()) for text in texts]
    else:
        inos = _counted_inos(archive, query)
        grammars = load_grammars(archive)
        content = _content(archive, grammars, query)
        if how.device is None:
            sources = [CountedWords(grammar, grammar.word_counts(inos)) for grammar in grammars]
        else:
            sources = [count_words(grammar, how, inos) for grammar in grammars]
        sources += [CountedWords(*words) for words in content.word_counts()]
        _check_is_text(archive, content, query)
    return word_count_report(sources, order, top=query.top)


def _counted_inos(archive: Archive, query: StatsQuery) -> set[int]:
    """Returns the inode numbers of the files to count.

    Files that a later segment or member of a tar replaced are not counted.
    """
    if query.ino is None:
        return archive.inode_numbers()
    if query.ino in archive.binary_files():
        raise _no_stats_of_binary_file(archive, query.ino)
    return {query.ino}


def _text(
    archive: Archive, query: StatsQuery, *, with_others: bool = False
) -> tuple[list[Grammar], dict[int, bytes]]:
    """Returns all grammars, and one path of each counted file that is in them, by inode number.

    With `with_others`, the files that the query does not count are included.
    """
    from gompfs.statistics import check_memory

    counted = _counted_inos(archive, query)
    scope = replace(query, ino=None) if with_others else query
    grammars = load_grammars(archive)
    num_bytes = sum(grammar.num_bytes for grammar in grammars)
    content = _content(archive, grammars, scope)
    for grammar in content.grammars():
        grammars.append(grammar)
        num_bytes += grammar.num_bytes
        check_memory(num_bytes)
    _check_is_text(archive, content, query)
    inos = _inos(grammars) & (archive.inode_numbers() if with_others else counted)
    if scope.ino is not None:
        return grammars, {ino: archive.path_of(ino) if query.path is None else query.path for ino in inos}
    return grammars, {ino: path for ino, path in archive.paths().items() if ino in inos}


def _source_of_stats(archive: Archive) -> str:
    num_segments = len(archive.segments)
    missing = num_segments - len(_grammar_sections(archive))
    if missing == 0:
        return "computed from the grammar"
    if missing == num_segments:
        return "computed from the content, no grammar"
    return f"computed from the grammar, and from the content of {missing} of {num_segments} segments without grammar"


def info(archive: Archive) -> bytes:
    """Returns the facts about the archive, one per line, and the binary files, which statistics leave out."""
    num_inodes, size = archive.totals()
    compressed = sum(segment.places.compressed_size for segment in archive.segments)
    grammar = sum(s.places.compressed_size for s in archive.sections if s.kind == GRAMMAR_SECTION)
    facts: dict[str, object] = {
        "archive": display_path(archive.path),
        "uuid": archive.superblock.uuid,
        "format_version": archive.superblock.version,
        "generation": archive.footer.generation,
        "segments": len(archive.segments),
        "entries": num_inodes,
        "uncompressed_size": size,
        "archive_size": archive.size,
        "blocks": archive.num_blocks,
        "block_size": archive.block_size,
        "blocks_compressed_size": compressed,
        "grammar_compressed_size": grammar,
        "stats": _source_of_stats(archive),
        "engine": archive.engine.name,
        "engine_reason": archive.engine.reason,
        "engine_threads": archive.engine.num_threads,
        "cache_hits": archive.blocks.hits,
        "cache_misses": archive.blocks.misses,
    }
    if archive in _fuse_apis:
        facts["fuse_api"] = _fuse_apis[archive]
    passthrough = describe_passthrough(archive)
    if passthrough is not None:
        facts["passthrough"] = passthrough
    lines = [f"{name}\t{value}" for name, value in facts.items()]
    paths = archive.paths() if archive.binary_files() else {}
    lines += [f"binary_file\t{display_path(paths[ino])}" for ino in archive.binary_files() if ino in paths]
    return ("\n".join(lines) + "\n").encode()


TASKS: dict[bytes, Callable[[Archive, StatsQuery], Report]] = {
    b"inverted_index": inverted_index,
    b"ranked_inverted_index": ranked_inverted_index,
    b"sequence_count": sequence_count,
    b"sort": sort,
    b"term_vector": term_vector,
    b"tfidf": tfidf,
    b"wordcount": wordcount,
}
FILE_TASKS = (b"sequence_count", b"sort", b"term_vector", b"wordcount")
"""The statistics that each file has in `files/PATH`."""
SEARCHES = {b"phrase": "phrase/W1 W2 W3", b"word": "word/WORD"}
"""The kinds of searches, each with its syntax."""
WORDS = "words"


def check_name(name: str, *others: str) -> str:
    """Returns the kind of a statistic (see kind_of), or `name` if it is one of `others`.

    Raises OptionError if unknown.
    """
    kind = kind_of(name)
    if kind in (*map(bytes.decode, STATISTICS), WORDS, *others):
        return kind
    for search, form in SEARCHES.items():
        if kind == search.decode() and kind != name:
            return kind
        if name.rstrip("/") == search.decode():
            raise OptionError(f"{name} needs something to search for: {form}")
    if name == "metrics":
        raise OptionError("metrics exist only in a mount, as stats/metrics")
    known = ", ".join([*map(bytes.decode, STATISTICS), *SEARCHES.values(), "files/PATH/NAME", WORDS, *others])
    raise OptionError(f"unknown statistic {name!r}; use one of {known}, or in a mount metrics")


def kind_of(name: str) -> str:
    """Returns the name of a statistic without its arguments: `word`, `phrase`, or the statistic of a file."""
    first, _, rest = name.partition("/")
    last = rest.rpartition("/")[2]
    if rest and first in map(bytes.decode, SEARCHES):
        return first
    return last if first == "files" and last.encode() in FILE_TASKS else name


def compute(name: bytes, archive: Archive, query: StatsQuery = _EVERYTHING) -> Report:
    """Returns the content of a virtual file, or the answer to `query`. Raises GompfsError.

    `name` is a path in `stats`: a task, `info`, `metrics`, `word/WORD`, `phrase/W1 W2 W3` or `files/PATH/TASK`; or
    `words`, which no mount shows.
    """
    from gompfs.mount.system.arenas import share_arenas
    from gompfs.statistics import FixedReport

    share_arenas()
    kind, _, rest = name.partition(b"/")
    try:
        if kind in SEARCHES and rest:
            return phrase(archive, replace(query, words=tuple(rest.split(b" ")) if kind == b"phrase" else (rest,)))
        if kind == b"files":
            path, _, name = rest.rpartition(b"/")
            inode = archive.resolve(path)
            if not stat.S_ISREG(inode.mode):
                raise EntryTypeError("not a regular file", path=display_path(path))
            query = replace(query, ino=inode.ino, path=path)
        if name == b"words":
            return words(archive, query)
        return TASKS[name](archive, query) if name in TASKS else FixedReport(_FACTS[name](archive))
    except GompfsError as error:
        error.archive = error.archive or str(archive.path)
        raise


_FACTS: dict[bytes, Callable[[Archive], bytes]] = {b"info": info, b"metrics": metrics}
STATISTICS = sorted([b"info", *TASKS])
"""The statistics of every archive. A mount also has `metrics`."""
VIRTUAL_FILES = sorted([*_FACTS, *TASKS])
# The other files can be opened by name but are not listed: `ls -l` must not count all n-grams of a large archive.
LISTED_FILES = frozenset({*_FACTS, b"sort", b"wordcount"})
_VOLATILE = _FACTS.keys()
_VOLATILE_SECONDS = 1.0  # long enough to read a file to its end, or to get its error


class NotReadyError(Exception):
    """The content is still being computed: try again when the callback given to `call_later` is called."""

    def __init__(self, call_later: Callable[[Callable[[], None]], None]) -> None:
        """`call_later` takes a callback and calls it once, from another thread or at once, when more is known."""
        super().__init__("it is being computed")
        self.call_later = call_later


class VirtualFile:
    """One virtual file, computed once, on first use. Thread-safe.

    A thread of its own computes the content, and no request blocks on it: a request for bytes that are not there yet
    raises NotReadyError. If the size is known before the text, the beginning can be read while the rest is computed. If
    the computation fails, all waiting requests get its error; a request more than a second later starts it again.
    """

    def __init__(self, name: bytes, archive: Archive) -> None:
        self._name = name
        self._archive = archive
        self._lock = threading.Lock()
        self._spool = Spool()
        self._size: int | None = None
        self._error: Exception | None = None
        self._is_running = False
        self._ended_at = 0.0  # 0: never computed yet
        self._step = 0  # incremented when more of the text, its size or an error is known
        self._waiting: list[Callable[[], None]] = []

    @property
    def mtime_ns(self) -> int | None:
        """When the content was computed, for files whose content changes, so that the kernel drops its cached pages.

        None for all other files.
        """
        return int(self._ended_at * 1e9) if self._name in _VOLATILE else None

    def size(self) -> int:
        """Returns the content's size in bytes. Raises NotReadyError, GompfsError, OSError."""
        with self._lock:
            self._begin()
            if self._size is None:
                raise NotReadyError(partial(self._call_after, self._step))
            return self._size

    def read(self, file_offset: int, size: int) -> bytes:
        """Returns up to `size` bytes of the content. Raises NotReadyError, GompfsError, OSError."""
        with self._lock:
            self._begin()
            if self._size is None or self._spool.size < min(file_offset + size, self._size):
                raise NotReadyError(partial(self._call_after, self._step))
            spool = self._spool
        return spool.read(file_offset, size)

    def close(self) -> None:
        """Free the content, unless it is still being computed: a request may be waiting for it."""
        with self._lock:
            if not self._is_running:
                self._spool.close()

    def _call_after(self, step: int, callback: Callable[[], None]) -> None:
        """Call `callback` when more is known than at `step`."""
        with self._lock:
            if self._step == step:
                self._waiting.append(callback)
                return
        callback()

    def _begin(self) -> None:
        """Start computing if there is no content, or if it is too old. Raises the error of the last try."""
        is_old = time.time() - self._ended_at > _VOLATILE_SECONDS
        if self._is_running:
            return
        if self._error is not None and not is_old:
            raise self._error
        if self._ended_at == 0 or self._error is not None or (is_old and self._name in _VOLATILE):
            self._spool, self._size, self._error, self._is_running = Spool(), None, None, True
            threading.Thread(target=self._compute, name="gompfs-statistics", daemon=True).start()

    def _compute(self) -> None:
        try:
            report = compute(self._name, self._archive)
            self._advance(size=report.size)
            for piece in report:
                self._spool.append(piece)
                self._advance(size=report.size)
            self._advance(size=self._spool.size, is_running=False)
        except Exception as error:
            self._spool.close()
            self._advance(size=None, is_running=False, error=error)

    def _advance(self, *, size: int | None, is_running: bool = True, error: Exception | None = None) -> None:
        with self._lock:
            self._size, self._is_running, self._error = size, is_running, error
            if not is_running:
                self._ended_at = time.time()
            self._step += 1
            waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()
