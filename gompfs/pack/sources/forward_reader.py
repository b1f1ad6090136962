"""Reads a possibly compressed stream forward. Positions count uncompressed bytes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from typing import BinaryIO, Protocol, cast

import zstandard

from gompfs.errors import PackError

__all__ = ["ForwardReader", "uncompressed"]

_PIECE_SIZE = 1 << 20
# A header that claims to be longer is damaged or hostile. The longest valid ones contain extended attributes.
_MAX_HEADER_SIZE = 16 << 20
_DECODER_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes | None: ...


def uncompressed(stream: BinaryIO) -> _Readable:
    """Returns a decoder for `stream`, chosen by its first bytes (gzip, bzip2, xz, zstd), or `stream` itself.

    `stream` is a `BufferedReader`.
    """
    magic = cast(io.BufferedReader, stream).peek(6)[:6]
    if magic.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=stream)
    if magic.startswith(b"BZh"):
        return bz2.BZ2File(stream)
    if magic.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile(stream)
    if magic.startswith((b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18")):
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(stream, read_across_frames=True)
        return cast(_Readable, reader)
    return stream


class ForwardReader:
    """The part of the file interface that tarfile needs, plus `read_data`. It can only seek forward.

    `is_at_end` is True after a read has reached the end of the stream. Methods raise PackError, with `name`, if the
    stream is damaged or cannot be read.
    """

    def __init__(self, stream: _Readable, name: str) -> None:
        self._stream = stream
        self.name = name
        self._piece = b""
        self._piece_offset = 0
        self._position = 0
        self.is_at_end = False

    def tell(self) -> int:
        """Returns the number of bytes read or skipped so far."""
        return self._position

    def read(self, size: int) -> bytes:
        """Returns up to `size` bytes of a header, fewer only at the end of the stream."""
        if not 0 <= size <= _MAX_HEADER_SIZE:
            raise PackError(f"a header of {size} bytes is too large", path=self.name)
        return self.read_data(size)

    def read_data(self, size: int) -> bytes:
        """Returns up to `size` bytes of content, fewer only at the end of the stream."""
        start = self._piece_offset
        end = start + size
        if end <= len(self._piece):
            self._piece_offset = end
            self._position += size
            return self._piece[start:end]
        pieces = []
        missing = size
        while missing and (piece := self._take(missing)):
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def seek(self, position: int) -> int:
        """Skip the bytes up to `position`, or to the end of the stream. Returns the new position."""
        if position < self._position:
            raise PackError("a stream cannot be read backwards", path=self.name)
        while self._position < position and self._take(min(_PIECE_SIZE, position - self._position)):
            pass
        return self._position

    def drain(self) -> None:
        """Read to the end, so that the process that writes the stream does not fail on a closed pipe."""
        while self._take(_PIECE_SIZE):
            pass

    def _take(self, size: int) -> bytes:
        """Returns 1 to `size` of the next bytes, or none at the end of the stream."""
        if self._piece_offset == len(self._piece):
            try:
                self._piece = self._stream.read(_PIECE_SIZE) or b""
            except _DECODER_ERRORS as error:
                raise PackError(f"cannot read: {error}", path=self.name) from error
            self._piece_offset = 0
            self.is_at_end = not self._piece
        piece = self._piece[self._piece_offset : self._piece_offset + size]
        self._piece_offset += len(piece)
        self._position += len(piece)
        return piece
