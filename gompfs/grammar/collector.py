"""Passes the text of files to a grammar builder, in order and in batches."""

from __future__ import annotations

from collections.abc import Iterator

from gompfs.grammar.builder import GrammarBuilder
from gompfs.grammar.grammar import Grammar

PROBE_SIZE = 8192
_BATCH_BYTES = 8 << 20


def is_text(head: bytes | memoryview) -> bool:
    """Returns whether a file that begins with `head` is text: no NUL in its first 8 KiB."""
    return b"\0" not in bytes(head[:PROBE_SIZE])


class GrammarCollector:
    """Collects whole files, or one file at a time in pieces. Binary files are skipped and listed in `binary_files`."""

    def __init__(self, builder: GrammarBuilder) -> None:
        self._builder = builder
        self._batch: list[tuple[int, bytes | memoryview]] = []
        self._batch_size = 0
        self._ino = 0
        self._head: bytes | None = None
        self._in_text = False
        self.binary_files: list[int] = []

    def add_file(self, ino: int, content: bytes | memoryview) -> None:
        """Adds a whole file."""
        if not is_text(content):
            self.binary_files.append(ino)
            return
        self._batch.append((ino, content))
        self._batch_size += len(content)
        if self._batch_size >= _BATCH_BYTES:
            self._flush()

    def leave_out(self, ino: int) -> None:
        """Lists a file as binary without reading it."""
        self.binary_files.append(ino)

    def begin_file(self, ino: int) -> None:
        """Begins a file that comes in pieces."""
        self._flush()
        self._ino = ino
        self._head = b""
        self._in_text = False

    def add_bytes(self, piece: bytes | memoryview) -> None:
        """Adds the next piece of the file."""
        if self._head is not None:
            self._head += piece
            if len(self._head) < PROBE_SIZE:
                return
            piece = self._judge(self._head)
        if self._in_text:
            self._builder.add_bytes(piece)

    def end_file(self) -> None:
        """Ends the file."""
        if self._head is not None:
            rest = self._judge(self._head)
            if self._in_text:
                self._builder.add_bytes(rest)
        if self._in_text:
            self._builder.end_file()

    def finish(self) -> Iterator[memoryview]:
        """Returns the grammar section of all text, in pieces."""
        self._flush()
        return self._builder.finish()

    def take(self) -> Grammar:
        """Returns the grammar without rules of the text added since the last call; see GrammarBuilder.take."""
        self._flush()
        return self._builder.take()

    def _judge(self, head: bytes) -> bytes:
        self._head = None
        self._in_text = is_text(head)
        if self._in_text:
            self._builder.begin_file(self._ino)
        else:
            self.binary_files.append(self._ino)
        return head

    def _flush(self) -> None:
        if self._batch:
            self._builder.add_files(self._batch)
            self._batch = []
            self._batch_size = 0
