"""The virtual files: the analytics of an archive, computed on first open and kept."""

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
    from gompfs.analytics import Report, SortOrder, Traversal
    from gompfs.archive.text import ContentText
    from gompfs.grammar import Grammar


class KeptGrammars:
    """The grammars of an archive, loaded when somebody asks, and kept for a while: small questions come in rows."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._lock = threading.Lock()
        self._grammars: list[Grammar] | None = None
        self._used_at = 0.0

    def get(self) -> list[Grammar]:
        """The grammars; whoever asks while they are loaded waits."""
        with self._lock:
            self._used_at = time.monotonic()
            if self._grammars is None:
                self._grammars = _load_grammars(self._archive)
                self._drop_in(_KEPT_SECONDS)
            return list(self._grammars)

    def drop(self) -> None:
        """Let go of them."""
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
    """Let grammars be kept for a while, as in a mount, of which much is asked."""
    _kept[archive] = KeptGrammars(archive)


def forget_grammars(archive: Archive) -> None:
    """Let go of them, and keep none any more."""
    _kept.pop(archive).drop()


_fuse_apis: WeakKeyDictionary[Archive, str] = WeakKeyDictionary()


def tell_fuse_api(archive: Archive, api: str) -> None:
    """Let `info` say by which interface of FUSE an archive is mounted."""
    _fuse_apis[archive] = api


_passthrough: WeakKeyDictionary[Archive, Callable[[], str]] = WeakKeyDictionary()


def tell_passthrough(archive: Archive, describe: Callable[[], str]) -> None:
    """Let `info` say whether files of a mounted archive are passed through, as `describe` tells when it is asked."""
    _passthrough[archive] = describe


def describe_passthrough(archive: Archive) -> str | None:
    """Whether files are passed through, for people; None for an archive that is not mounted."""
    describe = _passthrough.get(archive)
    return None if describe is None else describe()


def load_analytics() -> None:
    """Import what the first question would wait for otherwise."""
    import gompfs.analytics.device_statistics  # noqa: F401


def load_grammars(archive: Archive) -> list[Grammar]:
    """The grammars that the archive holds."""
    kept = _kept.get(archive)
    return _load_grammars(archive) if kept is None else kept.get()


def _load_grammars(archive: Archive) -> list[Grammar]:
    from gompfs.grammar import Grammar

    return [Grammar.from_bytes(archive.read_section(section)) for section in _grammar_sections(archive)]


def _grammar_sections(archive: Archive) -> list[Section]:
    return [section for section in archive.sections if section.kind == GRAMMAR_SECTION]


def _content(archive: Archive, grammars: Sequence[Grammar], query: StatsQuery) -> ContentText:
    """The text of the files that count and that none of `grammars`, all that the archive holds, has."""
    from gompfs.archive.text import ContentText

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
    return StatsUnavailableError("a binary file has no stats", archive=archive.path, path=archive.path_of(ino))


@dataclass(frozen=True)
class StatsQuery:
    """What of a statistic is asked for; the virtual files have the defaults."""

    ino: int | None = None
    """Of this file alone, which must be one of the archive."""
    num_words: int = 3
    """How long the sequences are, 1 to 5 words."""
    top: int = 0
    """How many words of a term vector, files of a sequence, or else lines; 0 for all, or for 10 words by tf-idf."""
    words: tuple[bytes, ...] = ()
    """What is searched for, 1 to 5 words in a row."""
    begin: int = 0
    """The number of the first word that is asked for, from 0."""
    end: int | None = None
    """The number behind the last one; None for all that there are."""
    path: bytes | None = None
    """The path that the file `ino` has in the text, as others may be secret; None for any path of it."""

    def __post_init__(self) -> None:
        for name, number in (("top", self.top), ("begin", self.begin), ("end", self.end)):
            if number is not None and not 0 <= number < 1 << 63:
                raise OptionError(f"{name} must be 0 or more and fit into 63 bits, not {number}")


_EVERYTHING = StatsQuery()


def wordcount(archive: Archive, query: StatsQuery = _EVERYTHING) -> Report:
    """`word<TAB>count` lines, by count descending, then by word."""
    from gompfs.analytics import SortOrder

    return _word_count_report(archive, query, SortOrder.BY_COUNT)


def sort(archive: Archive, query: StatsQuery = _EVERYTHING) -> Report:
    """`word<TAB>count` lines by word."""
    from gompfs.analytics import SortOrder

    return _word_count_report(archive, query, SortOrder.BY_WORD)


def _traversal(archive: Archive, grammars: Sequence[Grammar]) -> Traversal:
    """On the device that the archive's engine has for so much work, or on the CPU."""
    from gompfs.analytics import Traversal

    num_symbols = sum(grammar.num_symbols for grammar in grammars)
    return Traversal(device=archive.engine.array_device(num_symbols))


def inverted_index(archive: Archive, query: StatsQuery = _EVERYTHING) -> Report:
    """`word<TAB>path<TAB>path...` lines by word."""
    from gompfs.analytics import inverted_index_report

    grammars, paths = _text(archive, query)
    return inverted_index_report(grammars, paths, top=query.top, traversal=_traversal(archive, grammars))


def term_vector(archive: Archive, query: StatsQuery = _EVERYTHING) -> Report:
    """`path<TAB>count word<TAB>count word...` lines by path, words by count descending, then by word."""
    from gompfs.analytics import term_vector_report

    grammars, paths = _text(archive, query)
    return term_vector_report(grammars, paths, top=query.top, traversal=_traversal(archive, grammars))


def sequence_count(archive: Archive, query: StatsQuery = _EVERYTHING) -> Report:
    """`w1 w2 w3<TAB>count` lines, by count descending, then by the words."""
    from gompfs.analytics import sequence_count_report

    grammars, paths = _text(archive, query)
    how = _traversal(archive, grammars)
    return sequence_count_report(grammars, paths, num_words=query.num_words, top=query.top, traversal=how)


def ranked_inverted_index(archive: Archive, query: StatsQuery = _EVERYTHING) -> Report:
    """`w1 w2 w3<TAB>count path<TAB>count path...` lines by the words, files by count descending, then by path."""
    from gompfs.analytics import ranked_inverted_index_report

    grammars, paths = _text(archive, query)
    how = _traversal(archive, grammars)
    return ranked_inverted_index_report(grammars, paths, num_words=query.num_words, top=query.top, traversal=how)


def tfidf(archive: Archive, query: StatsQuery = _EVERYTHING) -> Report:
    """`path<TAB>score word<TAB>score word...` lines by path, words by score descending, then by word.

    Also of one file the scores say what tells it from all others.
    """
    from gompfs.analytics import DEFAULT_TOP, FixedReport, escape_path, tfidf_report

    grammars, paths = _text(archive, query, with_others=True)
    how = _traversal(archive, grammars)
    report = tfidf_report(grammars, paths, top=query.top or DEFAULT_TOP, traversal=how)
    if query.ino is None:
        return report
    beginning = escape_path(paths.get(query.ino, b"")) + b"\t"
    lines = (line for piece in report for line in piece.splitlines(keepends=True))
    return FixedReport(b"".join(line for line in lines if line.startswith(beginning)))


def phrase(archive: Archive, query: StatsQuery) -> Report:
    """`path<TAB>count` lines of the files that have some words in a row, by count descending, then by path."""
    from gompfs.analytics import phrase_report

    grammars, paths = _text(archive, query)
    return phrase_report(grammars, paths, query.words, top=query.top)


def words(archive: Archive, query: StatsQuery) -> Report:
    """The words of a file from one number up to another, one a line."""
    from gompfs.analytics import END, words_report

    if query.ino is None:
        raise OptionError("words are those of a file")
    grammars, _ = _text(archive, query)
    return words_report(grammars, query.ino, query.begin, END if query.end is None else query.end)


def _word_count_report(archive: Archive, query: StatsQuery, order: SortOrder) -> Report:
    from concurrent.futures import ThreadPoolExecutor

    from gompfs.analytics import Traversal, word_count_report
    from gompfs.analytics.device_statistics import count_words
    from gompfs.archive.arrays import inode_numbers
    from gompfs.grammar import CountedWords

    sections = _grammar_sections(archive)
    how = Traversal(device=archive.engine.array_device(0))  # one that was asked for: the CPU counts while it reads
    if how.device is None and query.ino is None and len(sections) == len(archive.segments):
        with ThreadPoolExecutor(1, thread_name_prefix="gompfs-inode-numbers") as executor:
            counted = executor.submit(inode_numbers, archive)  # while a section is read
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
    """The files that count: not those that a later segment or a later member of a tar replaced."""
    if query.ino is None:
        return archive.inode_numbers()
    if query.ino in archive.binary_files():
        raise _no_stats_of_binary_file(archive, query.ino)
    return {query.ino}


def _text(
    archive: Archive, query: StatsQuery, *, with_others: bool = False
) -> tuple[list[Grammar], dict[int, bytes]]:
    """All grammars, and the files that count and are in them, with one path of each; others too where that is asked."""
    from gompfs.analytics import check_memory

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
    return f"computed from the grammar, and from the content of {missing} of {num_segments} segments, which have none"


def info(archive: Archive) -> bytes:
    """What the archive is, one fact a line, and which files the analytics leave out."""
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
"""What there is of each file alone, in `files/PATH`."""
SEARCHES = {b"phrase": "phrase/W1 W2 W3", b"word": "word/WORD"}
"""What can be searched for, and how that is written."""
WORDS = "words"


def check_name(name: str, *others: str) -> str:
    """The kind of a statistic (see kind_of), or one of `others`; raises OptionError where there is none."""
    kind = kind_of(name)
    if kind in (*map(bytes.decode, STATISTICS), WORDS, *others):
        return kind
    for search, form in SEARCHES.items():
        if kind == search.decode() and kind != name:
            return kind
        if name.rstrip("/") == search.decode():
            raise OptionError(f"{name} needs what to search for: {form}")
    if name == "metrics":
        raise OptionError("metrics are those of a mount: they are in its stats/metrics")
    known = ", ".join([*map(bytes.decode, STATISTICS), *SEARCHES.values(), "files/PATH/NAME", WORDS, *others])
    raise OptionError(f"no statistic {name!r}; there are {known}, and in a mount metrics")


def kind_of(name: str) -> str:
    """The name of a statistic without what is asked for by it: `word`, `phrase`, or the task of a file."""
    first, _, rest = name.partition("/")
    last = rest.rpartition("/")[2]
    if rest and first in map(bytes.decode, SEARCHES):
        return first
    return last if first == "files" and last.encode() in FILE_TASKS else name


def compute(name: bytes, archive: Archive, query: StatsQuery = _EVERYTHING) -> Report:
    """The content of a virtual file, or what `query` asks for; raises GompfsError.

    `name` is a path in `stats`: a task, `info`, `metrics`, `word/WORD`, `phrase/W1 W2 W3` or `files/PATH/TASK`; or it
    is `words`, which is not there.
    """
    from gompfs.analytics import FixedReport
    from gompfs.mount.arenas import share_arenas

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
"""What there is of every archive; a mount has its metrics too."""
VIRTUAL_FILES = sorted([*_FACTS, *TASKS])
# The others are there for who names them: `ls -l` must not count all sequences of a large archive.
LISTED_FILES = frozenset({*_FACTS, b"sort", b"wordcount"})
_VOLATILE = _FACTS.keys()
_VOLATILE_SECONDS = 1.0  # long enough for a reader to come to the end of what it began, or to hear of an error


class NotReadyError(Exception):
    """What was asked for is still being computed: ask again when `call_later` calls."""

    def __init__(self, call_later: Callable[[Callable[[], None]], None]) -> None:
        """`call_later` calls once when more is known, from another thread or at once."""
        super().__init__("it is being computed")
        self.call_later = call_later


class VirtualFile:
    """One virtual file, computed once, when somebody first asks; safe for any number of threads.

    A thread of its own computes it, and none waits for that: what is not there yet raises NotReadyError. Where the
    size is known before the text, the beginning can be read while the rest is made. A failure counts for all who
    have asked, and who asks later begins anew.
    """

    def __init__(self, name: bytes, archive: Archive) -> None:
        self._name = name
        self._archive = archive
        self._lock = threading.Lock()
        self._spool = Spool()
        self._size: int | None = None
        self._error: Exception | None = None
        self._is_running = False
        self._ended_at = 0.0  # 0 before it was ever computed
        self._step = 0  # a number that changes whenever more is known
        self._waiting: list[Callable[[], None]] = []

    @property
    def mtime_ns(self) -> int | None:
        """When the content was computed, for one that changes: the kernel then drops what it keeps of it."""
        return int(self._ended_at * 1e9) if self._name in _VOLATILE else None

    def size(self) -> int:
        """The content's size in bytes. Raises NotReadyError, GompfsError, OSError."""
        with self._lock:
            self._begin()
            if self._size is None:
                raise NotReadyError(partial(self._call_after, self._step))
            return self._size

    def read(self, file_offset: int, size: int) -> bytes:
        """Up to `size` bytes of the content. Raises NotReadyError, GompfsError, OSError."""
        with self._lock:
            self._begin()
            if self._size is None or self._spool.size < min(file_offset + size, self._size):
                raise NotReadyError(partial(self._call_after, self._step))
            spool = self._spool
        return spool.read(file_offset, size)

    def close(self) -> None:
        """Let go of the content, which somebody may still be waiting for."""
        with self._lock:
            if not self._is_running:
                self._spool.close()

    def _call_after(self, step: int, callback: Callable[[], None]) -> None:
        """Call when more is known than at `step`."""
        with self._lock:
            if self._step == step:
                self._waiting.append(callback)
                return
        callback()

    def _begin(self) -> None:
        """Start computing where there is no content, or one that is too old. Raises what the last try raised."""
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
