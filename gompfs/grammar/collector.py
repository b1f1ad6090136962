"""Hands the text of files to a grammar builder, in order and in batches."""

from __future__ import annotations

from collections.abc import Iterator

from gompfs.grammar.builder import GrammarBuilder
from gompfs.grammar.grammar import Grammar

_BINARY_PROBE_SIZE = 8192
_BATCH_BYTES = 8 << 20


def is_text(head: bytes | memoryview) -> bool:
    """Whether a file that starts with `head` is text: no NUL in its first 8 KiB."""
    return b"\0" not in bytes(head[:_BINARY_PROBE_SIZE])


class GrammarCollector:
    """Collects whole files, or one file at a time in pieces; binary files are left out and listed."""

    def __init__(self, builder: GrammarBuilder) -> None:
        self._builder = builder
        self._batch: list[tuple[int, bytes | memoryview]] = []
        self._batch_size = 0
        self._ino = 0
        self._head: bytes | None = None
        self._in_text = False
        self.binary_files: list[int] = []

    def add_file(self, ino: int, content: bytes | memoryview) -> None:
        """Take a whole file."""
        if not is_text(content):
            self.binary_files.append(ino)
            return
        self._batch.append((ino, content))
        self._batch_size += len(content)
        if self._batch_size >= _BATCH_BYTES:
            self._flush()

    def leave_out(self, ino: int) -> None:
        """Take a file for binary."""
        self.binary_files.append(ino)

    def begin_file(self, ino: int) -> None:
        """Start a file that comes in pieces."""
        self._flush()
        self._ino = ino
        self._head = b""
        self._in_text = False

    def add_bytes(self, piece: bytes | memoryview) -> None:
        """The next piece of the file."""
        if self._head is not None:
            self._head += piece
            if len(self._head) < _BINARY_PROBE_SIZE:
                return
            piece = self._judge(self._head)
        if self._in_text:
            self._builder.add_bytes(piece)

    def end_file(self) -> None:
        """The file is complete."""
        if self._head is not None:
            rest = self._judge(self._head)
            if self._in_text:
                self._builder.add_bytes(rest)
        if self._in_text:
            self._builder.end_file()

    def finish(self) -> Iterator[memoryview]:
        """The grammar of all text: its section, in pieces."""
        self._flush()
        return self._builder.finish()

    def take(self) -> Grammar:
        """What came since the last call, without rules: see GrammarBuilder.take."""
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
