"""The blocks for the tables about codecs, and the codecs of our peers."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click

_RUN = 16  # consecutive blocks in a sample
BATCH_SIZE = 8 << 20  # bytes for one call of an engine, about as many as a mount gives it
RUN_SIZE = 1 << 20  # bytes that each thread of a mount that reads ahead decodes at once


@dataclass(frozen=True)
class Peer:
    """A peer's codec: compress(block) and decompress(compressed, uncompressed size); both None if not installed."""

    name: str
    compress: Callable[[bytes], bytes] | None = None
    decompress: Callable[[bytes, int], bytes] | None = None


def read_batches(path: Path, block_size: int, every: int) -> Iterator[list[bytes]]:
    """Yields batches of blocks of a file, or of a directory's concatenated files; one of `every` runs of blocks."""
    batch: list[bytes] = []
    for number, block in enumerate(_cut(_pieces(path), block_size)):
        if number // _RUN % every == 0:
            batch.append(block)
        if len(batch) * block_size >= BATCH_SIZE:
            yield batch
            batch = []
    if batch:
        yield batch


def read_blocks(path: Path, block_size: int, every: int) -> list[bytes]:
    """Returns all blocks that read_batches yields; raises a click error if there are none."""
    blocks = [block for batch in read_batches(path, block_size, every) for block in batch]
    if not blocks:
        raise click.ClickException(f"{path} holds no data")
    return blocks


def regular_files(path: Path) -> Iterator[Path]:
    """Yields the file itself, or all regular files below a directory in a fixed order."""
    if not path.is_dir():
        yield path
        return
    for directory, names, files in os.walk(path):
        names.sort()
        for name in sorted(files):
            file = Path(directory, name)
            if file.is_file() and not file.is_symlink():
                yield file


def _pieces(path: Path) -> Iterator[bytes]:
    for file in regular_files(path):
        with file.open("rb") as opened:
            while piece := opened.read(BATCH_SIZE):
                yield piece


def _cut(pieces: Iterator[bytes], block_size: int) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        rest += piece
        whole = len(rest) - len(rest) % block_size
        yield from (rest[start : start + block_size] for start in range(0, whole, block_size))
        rest = rest[whole:]
    if rest:
        yield rest


def peer(name: str) -> Peer:
    """Returns a codec by name and level, such as zstd-3; raises KeyError if the name is unknown."""
    codec, _, level = name.partition("-")
    package, make = _PACKAGES[codec]
    try:
        return make(name, import_module(package), int(level or 1))
    except ImportError:
        return Peer(name)


def _zlib(name: str, library: Any, level: int) -> Peer:
    return Peer(
        name,
        lambda block: bytes(library.compress(block, level)),
        lambda block, size: bytes(library.decompress(block, bufsize=size)),
    )


def _lz4(name: str, library: Any, _: int) -> Peer:
    return Peer(
        name,
        lambda block: bytes(library.compress(block, store_size=False)),
        lambda block, size: library.decompress(block, uncompressed_size=size),
    )


def _lz4hc(name: str, library: Any, level: int) -> Peer:
    def compress(block: bytes) -> bytes:
        return bytes(library.compress(block, mode="high_compression", compression=level, store_size=False))

    return Peer(name, compress, lambda block, size: library.decompress(block, uncompressed_size=size))


def _zstd(name: str, library: Any, level: int) -> Peer:
    # One of each per thread: threads must not share one, and creating one takes half the time of decoding a block.
    local = threading.local()

    def compress(block: bytes) -> bytes:
        if not hasattr(local, "compressor"):
            local.compressor = library.ZstdCompressor(level=level, write_content_size=False, write_checksum=False)
        return local.compressor.compress(block)  # type: ignore[no-any-return]

    def decompress(block: bytes, size: int) -> bytes:
        if not hasattr(local, "decompressor"):
            local.decompressor = library.ZstdDecompressor()
        return local.decompressor.decompress(block, max_output_size=size)  # type: ignore[no-any-return]

    return Peer(name, compress, decompress)


def _libdeflate(name: str, library: Any, level: int) -> Peer:
    return Peer(
        name,
        lambda block: bytes(library.deflate_compress(block, level)),
        lambda block, size: library.deflate_decompress(block, size),
    )


_PACKAGES: dict[str, tuple[str, Callable[[str, Any, int], Peer]]] = {
    "zlib": (zlib.__name__, _zlib),
    "lz4": ("lz4.block", _lz4),
    "lz4hc": ("lz4.block", _lz4hc),
    "zstd": ("zstandard", _zstd),
    "libdeflate": ("deflate", _libdeflate),
    "isal": ("isal.isal_zlib", _zlib),
    "zlibng": ("zlib_ng.zlib_ng", _zlib),
}
