"""The blocks that the tables about codecs measure, and the codecs of our peers."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

_RUN = 16  # blocks that follow each other in a sample


@dataclass(frozen=True)
class Peer:
    """A codec of others: compress(block), and decompress(compressed, uncompressed size)."""

    name: str
    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes, int], bytes]


def read_blocks(path: Path, block_size: int, every: int) -> list[bytes]:
    """The blocks of a file, or of all files of a directory in a row; one of `every` runs of blocks."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    content = b"".join(file.read_bytes() for file in files if not file.is_symlink())
    starts = range(0, len(content), block_size)
    return [content[start : start + block_size] for number, start in enumerate(starts) if number // _RUN % every == 0]


def peers() -> tuple[list[Peer], list[str]]:
    """The peers that are installed, and the names of the packages that are not."""
    found = [Peer("zlib -6", lambda block: zlib.compress(block, 6), lambda block, _: zlib.decompress(block))]
    missing = []
    for package, make in (("lz4.block", _lz4_peers), ("zstandard", _zstd_peers), ("deflate", _deflate_peers)):
        try:
            found += make(import_module(package))
        except ImportError:
            missing.append(package)
    return found, missing


def _lz4_peers(lz4: Any) -> list[Peer]:
    def compress(block: bytes) -> bytes:
        return bytes(lz4.compress(block, mode="high_compression", compression=9, store_size=False))

    return [Peer("lz4hc -9", compress, lambda block, size: lz4.decompress(block, uncompressed_size=size))]


def _zstd_peers(zstandard: Any) -> list[Peer]:
    def peer(level: int) -> Peer:
        compressor = zstandard.ZstdCompressor(level=level)
        # A decompressor serves one thread at a time, and making one takes little beside a block.
        return Peer(
            f"zstd -{level}", compressor.compress, lambda block, _: zstandard.ZstdDecompressor().decompress(block)
        )

    return [peer(3), peer(19)]


def _deflate_peers(deflate: Any) -> list[Peer]:
    return [
        Peer(
            "libdeflate -6",
            lambda block: bytes(deflate.deflate_compress(block, 6)),
            lambda block, size: bytes(deflate.deflate_decompress(block, size)),
        )
    ]


def total(blocks: Sequence[bytes]) -> int:
    """Their size together."""
    return sum(map(len, blocks))
