"""`gompfs grep`: searches the files of archives for patterns, with the options and the output of ripgrep."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator

from gompfs.cli.application import drop_unwritten_output, print_error
from gompfs.cli.command_line import PATH, UsageError, argument, command
from gompfs.cli.grep_options import advice, grep_options, patterns_of, query_of_options
from gompfs.cli.grep_targets import Target, names_target, target_of
from gompfs.cli.output import human_size
from gompfs.cli.parameters import opened
from gompfs.errors import GompfsError, display_path
from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from gompfs.archive import Archive
    from gompfs.search.in_mount import SearchInMount
    from gompfs.search.query import SearchQuery
    from gompfs.search.search import ArchiveSearch, SearchTotals

_CACHE_SIZE = 8 << 20
_FIRST_SECONDS = 1.0  # shorter searches show nothing
_UPDATE_SECONDS = 0.2
_ERASE = "\r\x1b[K"
_REPLACES = "-r TEXT replaces matches, as in rg; directories are always searched recursively"
_LETTERS_OF_GREP = frozenset("nilHhwcoEF")
_MAX_LETTERS = 3
_EXIT_NO_MATCH = 1
_EXIT_ERROR = 2


@command("grep", advice=advice, passes_given=True)
@argument("arguments", metavar="[PATTERN] ARCHIVE... [PATH...]", several=True, required=False, type=PATH)
@grep_options
def grep_command(arguments: tuple[str, ...], given: frozenset[str], **options: Any) -> int:
    """Search files in each ARCHIVE for lines that match PATTERN.

    With PATHs, only the files at and below each PATH are searched. Patterns, options and output are those of
    ripgrep (rg). Archives are searched whole, as by rg -uu: hidden files are not skipped, and .gitignore is not read.
    With --ignore, files named by .gitignore, .ignore and .rgignore files in the archive are left out, as by
    rg --hidden; a .gitignore counts only in a git repository, where .git is in the archive too. PATTERN is left
    out if -e, -f or --files is given. ARCHIVE may also be a path in a mount of an archive: then the daemon of the
    mount searches, unless --engine, --jobs or --ignore is given. With several archives, printed paths begin with
    the path of the archive. With --dask, all arguments after PATTERN are archives. The exit status is 0 if there was
    a match, 1 if there was none, and 2 if there was an error.
    """
    try:
        if options["type_list"]:
            from gompfs.search.file_types import type_lines

            sys.stdout.write("".join(f"{line}\n" for line in type_lines()))
            sys.stdout.flush()
            return 0
        asks_daemons = given.isdisjoint(("engine", "jobs"))
        status = _Grep(arguments, options, asks_daemons=asks_daemons).run()
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (GompfsError, OSError) as error:
        from gompfs.cli.suggestions import with_advice

        drop_unwritten_output()
        place = f"{display_path(error.filename)}: " if isinstance(error, OSError) and error.filename else ""
        print_error(with_advice(str(error)) if isinstance(error, GompfsError) else f"{place}{error.strerror}")
        status = _EXIT_ERROR
    replacement = options["replace"]
    are_letters = replacement and len(replacement) <= _MAX_LETTERS and _LETTERS_OF_GREP.issuperset(replacement)
    if status == 0 and sys.stderr.isatty() and are_letters:
        print_error(f"note: matches were replaced by {replacement!r}; {_REPLACES}")
    return status


class _Grep:
    """One run of the command."""

    def __init__(self, arguments: tuple[str, ...], options: dict[str, Any], *, asks_daemons: bool) -> None:
        """With `asks_daemons`, what is in a mount is searched by its daemon, if that is able to."""
        self._options = options
        self._asks_daemons = asks_daemons
        self._started = time.perf_counter()
        rest = list(arguments)
        if options["files"]:
            self._patterns = [b""]
        elif options["regexp"] or options["file"]:
            self._patterns = patterns_of(options)
        elif not rest:
            raise UsageError("Missing argument 'PATTERN'.")
        else:
            self._patterns = [os.fsencode(rest.pop(0))]
        if not rest:
            hint = f" ({_REPLACES})" if options["replace"] is not None else ""
            raise UsageError(f"Missing argument 'ARCHIVE...'{hint}.")
        if options["scheduler"] is not None:
            if options["ignore"] or options["ignore_file"]:
                raise UsageError("--ignore and --ignore-file cannot be used with --dask")
            self._targets = [Target(name, name) for name in rest]
            rest = []
        else:
            self._targets = [target_of(rest.pop(0))]
        while rest and names_target(rest[0]):
            self._targets.append(target_of(rest.pop(0)))
        self._paths = rest
        self._output = sys.stdout.buffer
        self._has_found = self._has_errors = False

    def run(self) -> int:
        """Search all archives. Returns the exit status."""
        from gompfs.search.search import SearchTotals

        totals = SearchTotals()
        options = self._options
        can_match = options["max_count"] != 0 and (self._patterns or options["invert_match"])
        if can_match or options["files"]:
            for of_archive in self._totals_of_archives():
                totals = totals.plus(of_archive)
                if self._is_done():
                    break
            self._check_searched(totals)
            self._print_totals(totals)
        # As in ripgrep, counts of a file that turns out to be binary are not printed, nor do they make the status 0.
        has_counts = not options["quiet"] and (options["count"] or options["count_matches"])
        if not (has_counts or options["files"] or options["files_without_match"]):
            self._has_found = totals.files_with_matches != 0
        if self._has_errors and not (options["quiet"] and self._has_found):
            return _EXIT_ERROR
        return 0 if self._has_found else _EXIT_NO_MATCH

    def _is_done(self) -> bool:
        """Returns whether the exit status is known, and nothing else is asked."""
        return self._options["quiet"] and self._has_found and not (self._options["stats"] or self._options["json"])

    def _check_searched(self, totals: SearchTotals) -> None:
        """As in ripgrep, if no PATH was given, it is an error that all files are left out."""
        is_whole = not self._paths and all(target.mountpoint is None for target in self._targets)
        has_files = totals.files or totals.skipped_files or self._has_errors
        if is_whole and not has_files and not self._options["files"]:
            self._print_failures(["no file was searched: the options leave out all files"])

    def _totals_of_archives(self) -> Iterator[SearchTotals]:
        """Prints what is found in each archive, and yields how much that was."""
        if self._options["scheduler"] is not None:
            yield from self._search_on_cluster()
            return
        for target in self._targets:
            if (totals := self._search_in_mount(target)) is not None:
                yield totals
                continue
            target.check_readable()
            engine, num_threads = self._options["engine"], self._options["jobs"]
            # In the order of the stream, each block is needed for a moment: fresh memory for more takes time.
            cache_size = None if self._options["sort"] == "path" else _CACHE_SIZE
            with opened(
                target.archive, engine=engine, num_threads=num_threads, keeps_columns=True, cache_size=cache_size
            ) as archive:
                yield self._search(archive, target)

    def _search_on_cluster(self) -> Iterator[SearchTotals]:
        from gompfs.cli.cluster import search_on_cluster

        query = query_of_options(self._options, self._patterns, has_paths=True)
        scheduler, archives = self._options["scheduler"], [target.name for target in self._targets]
        engine, num_threads = self._options["engine"], self._options["jobs"] or 1
        for found in search_on_cluster(scheduler, archives, query, engine=engine, num_threads=num_threads):
            if found.text:
                self._print_output(found.text, query, is_next=self._has_found)
            self._print_failures(found.failures)
            yield found.totals

    def _search_in_mount(self, target: Target) -> SearchTotals | None:
        """Asks the daemon of the mount to search. Returns None if it cannot, or if a PATH is not found in the mount."""
        # The daemon sends no warnings about ignore files.
        has_rules = self._options["ignore"] or self._options["ignore_file"]
        if target.mountpoint is None or not self._asks_daemons or has_rules:
            return None
        from gompfs.search.in_mount import search_in_mount

        paths = self._paths or [""]
        entries = target.entries(paths)
        if entries is None:
            return None
        query = self._query([status.st_mode for status in entries])
        roots = [(self._printed(target, path), status.st_ino) for path, status in zip(paths, entries, strict=True)]
        search = search_in_mount(target.mountpoint, query, roots)
        return None if search is None else self._print_search(search, query)

    def _search(self, archive: Archive, target: Target) -> SearchTotals:
        from gompfs.search.search import ArchiveSearch, SearchTotals

        roots = self._roots(archive, target)
        query = self._query([archive.inode(ino).mode for _, ino in roots])
        if not roots:
            return SearchTotals()
        search = ArchiveSearch(archive, query, roots)
        for warning in search.warnings:
            print_error(f"warning: {warning}")
        return self._print_search(search, query)

    def _query(self, modes: list[int]) -> SearchQuery:
        """Returns the query for what has these modes."""
        is_one_file = len(self._targets) == 1 and len(modes) == 1 and stat.S_ISREG(modes[0])
        return query_of_options(self._options, self._patterns, has_paths=not is_one_file)

    def _print_search(self, search: ArchiveSearch | SearchInMount, query: SearchQuery) -> SearchTotals:
        self._print_outputs(search, query)
        self._print_failures(map(str, search.failures))
        return search.totals

    def _print_failures(self, failures: Iterable[str]) -> None:
        for failure in failures:
            self._has_errors = True
            print_error(failure)

    def _print_outputs(self, search: ArchiveSearch | SearchInMount, query: SearchQuery) -> None:
        """Run a search. With --quiet, stop when something was found."""
        progress = _Progress()
        is_next = self._has_found
        try:
            for output in search.steps():
                if output:
                    progress.erase()
                    self._print_output(output, query, is_next=is_next)
                    is_next = False
                    if self._is_done():
                        return
                progress.update(search.totals)
        finally:
            progress.erase()

    def _print_output(self, output: bytes, query: SearchQuery, *, is_next: bool) -> None:
        """Prints output, and before it a separator if it `is_next` after that of another archive."""
        self._has_found = True
        if not self._options["quiet"]:
            self._output.write((_separator(query) if is_next else b"") + output)
            self._output.flush()

    def _roots(self, archive: Archive, target: Target) -> list[tuple[bytes, int]]:
        """Returns the printed paths and the inodes of what is searched. Reports a PATH that does not exist."""
        base = os.fsdecode(target.path_in(archive))
        roots = []
        for path in self._paths or [""]:
            try:
                ino = archive.resolve(os.path.join(base, path), follow=True).ino
                roots.append((self._printed(target, path), ino))
            except GompfsError as error:
                self._print_failures([str(error)])
        return roots

    def _printed(self, target: Target, path: str) -> bytes:
        """Returns how the paths begin that are printed for files at and below a PATH: as it was given."""
        if target.mountpoint is None and len(self._targets) == 1:
            return os.fsencode(path)
        name = os.fsencode(target.name)
        return name + (b"" if not path or name.endswith(b"/") else b"/") + os.fsencode(path)

    def _print_totals(self, totals: SearchTotals) -> None:
        seconds = time.perf_counter() - self._started
        if self._options["json"]:
            self._output.write(_json_summary(totals, seconds))
        elif self._options["stats"]:
            scanned = (
                f"{totals.scanned_bytes} bytes searched on the GPU\n"
                f"{totals.candidate_bytes} bytes of them in blocks that may have matches\n"
            )
            self._output.write(
                (
                    f"\n{totals.matches} matches\n{totals.matched_lines} matched lines\n"
                    f"{totals.files_with_matches} files contained matches\n{totals.files} files searched\n"
                    f"{totals.bytes_printed} bytes printed\n"
                    f"{totals.bytes} bytes searched\n{totals.skipped_files} files skipped\n"
                    f"{totals.skipped_bytes} bytes skipped\n"
                    f"{scanned if totals.scanned_bytes else ''}{seconds:.6f} seconds\n"
                ).encode()
            )


def _separator(query: SearchQuery) -> bytes:
    """Returns what is printed between the outputs of two archives, as it is between files."""
    if query.json or query.count or query.count_matches or query.files_with_matches or query.files_without_match:
        return b""
    if query.files or query.quiet:
        return b""
    has_context = any((query.before_context, query.after_context, query.context))
    return b"\n" if query.heading else b"--\n" if has_context else b""


def _json_summary(totals: SearchTotals, seconds: float) -> bytes:
    """Returns ripgrep's last message, with the members that are known here."""
    import json

    elapsed = {"human": f"{seconds:.6f}s", "nanos": int(seconds % 1 * 1e9), "secs": int(seconds)}
    stats = {
        "bytes_printed": totals.bytes_printed,
        "bytes_searched": totals.bytes,
        "elapsed": elapsed,
        "matched_lines": totals.matched_lines,
        "matches": totals.matches,
        "searches": totals.files,
        "searches_with_match": totals.files_with_matches,
    }
    summary = {"data": {"elapsed_total": elapsed, "stats": stats}, "type": "summary"}
    return json.dumps(summary, separators=(",", ":")).encode() + b"\n"


class _Progress:
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
