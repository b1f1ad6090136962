"""The codec `gompresso` of Zarr 3, found by its entry point."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from zarr.abc.codec import BytesBytesCodec

from gompfs.arrays import BufferCodec

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer

_NAME = "gompresso"


@dataclass(frozen=True)
class GompressoCodec(BytesBytesCodec):
    """Compresses chunks with the codecs of gompfs. The arguments are those of BufferCodec."""

    codec: str = "gompresso-bit"
    level: int = 6
    block_size: int = 1 << 16

    is_fixed_size: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Raise OptionError (a ValueError) for arguments that BufferCodec does not accept."""
        object.__setattr__(self, "_buffers", BufferCodec(self.codec, self.level, block_size=self.block_size))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> GompressoCodec:
        """Returns the codec that the metadata of an array describe."""
        return cls(**data.get("configuration", {}))

    def to_dict(self) -> dict[str, Any]:
        """Returns the codec as the metadata of an array describe it."""
        configuration = {"codec": self.codec, "level": self.level, "block_size": self.block_size}
        return {"name": _NAME, "configuration": configuration}

    async def _encode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        compressed = await asyncio.to_thread(self._buffers.compress, chunk_bytes.as_numpy_array())
        return chunk_spec.prototype.buffer.from_bytes(compressed)

    async def _decode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        content = await asyncio.to_thread(self._buffers.decompress, chunk_bytes.as_numpy_array())
        return chunk_spec.prototype.buffer.from_array_like(content)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Raise NotImplementedError, by which a codec tells Zarr that the size depends on the content."""
        raise NotImplementedError
