"""The codec `gompresso` of numcodecs, which Zarr 2, Kerchunk, Zarr 3 (as `numcodecs.gompresso`) and others use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numcodecs.abc import Codec

from gompfs.arrays import BufferCodec


class Gompresso(Codec):
    """Compresses chunks with the codecs of gompfs. `config` and the arguments are those of BufferCodec."""

    codec_id = "gompresso"

    def __init__(self, codec: str = "gompresso-bit", level: int = 6, block_size: int = 1 << 16) -> None:
        self.codec, self.level, self.block_size = codec, level, block_size
        self._buffers = BufferCodec(codec, level, block_size=block_size)

    def encode(self, buf: Any) -> bytes:
        """Returns a compressed chunk. `buf` is any contiguous buffer or array."""
        return self._buffers.compress(_in_c_order(buf))

    def decode(self, buf: Any, out: Any = None) -> Any:
        """Returns the content of a chunk, in `out` if it is given. Raises as BufferCodec.decompress does."""
        return self._buffers.decompress(buf, _in_c_order(out))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, and the name of the codec."""
        return {"id": self.codec_id, "codec": self.codec, "level": self.level, "block_size": self.block_size}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Gompresso:
        """Returns the codec with the arguments that `get_config` returns, without the name."""
        return cls(**config)


def _in_c_order(buf: Any) -> Any:
    """Returns an array whose bytes are contiguous: a Fortran array as its transpose, as the codecs of numcodecs do."""
    return buf.T if isinstance(buf, np.ndarray) and buf.flags.f_contiguous and not buf.flags.c_contiguous else buf
