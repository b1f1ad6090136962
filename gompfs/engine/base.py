"""The interface of all engines: they decode batches of whole blocks and return one status per block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gompfs.codec import BlockStatus, CodecOptions, EncodedBlock
from gompfs.codec.block import Buffer
from gompfs.codec.decode_work import DecodeWork
from gompfs.light_types import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # imported for types only: most uses of an engine need no accelerator
    from typing import TypeAlias

    from gompfs._native.codec import Dictionary
    from gompfs._native.text import SymbolTable
    from gompfs.codec.stored_head import StoredHead
    from gompfs.gpu.accelerator import Accelerator
    from gompfs.gpu.decode.archive_source import StoredBlocks

    PartSymbols: TypeAlias = SymbolTable | StoredHead
    """The symbols of a part, or the dictionary of an archive. A StoredHead is for engines that open heads."""


class Engine(Protocol):
    """One implementation of the codecs. Several threads may call the methods at once."""

    @property
    def name(self) -> str:
        """The engine's name: `cpu`, `gpu`, or `cpu and gpu` if `auto` uses both."""

    @property
    def reason(self) -> str:
        """Why this engine was chosen, as text for users."""

    @property
    def num_threads(self) -> int:
        """The number of host threads that one batch may use."""

    @property
    def batch_bytes(self) -> int:
        """The output size in bytes that callers of decode_blocks should aim for if they can choose the batch size."""

    @property
    def encode_batch_bytes(self) -> int:
        """The size in bytes that callers of encode_blocks should aim for if they can choose the batch size."""

    @property
    def num_encode_batches(self) -> int:
        """The number of encode_blocks calls that should run at once, each on a thread of its own."""

    @property
    def num_reencoded(self) -> int:
        """The number of blocks that a device encoded to a payload with another content.

        The CPU has encoded these blocks again.
        """

    @property
    def decode_work(self) -> Mapping[str, DecodeWork]:
        """The work done so far, by engine name: that of this engine and of the other engines that it uses."""

    @property
    def accelerator(self) -> Accelerator | None:
        """A device that also computes statistics and builds grammars, or None if the CPU does all of that."""

    def decodes_on_cpu(self, num_bytes: int) -> bool:
        """Returns whether the CPU would decode a batch with `num_bytes` of output.

        If so, C++ threads that do not hold the GIL may decode such a batch themselves. They count that work in
        `decode_work["cpu"]`.
        """

    def archive_decoder(self, stored: StoredBlocks, *, verify: bool) -> ArchiveDecoder:
        """Returns what decodes batches of an archive's blocks for which `decodes_on_cpu` returns False.

        `verify` also compares decoded bytes with their checksums.
        """

    def note_batch(self, num_bytes: int, seconds: float, *, on_cpu: bool) -> None:
        """Reports how long it took until a batch was decoded, so that later ones go to the faster engine."""

    def prepare(self, path: str | None) -> None:
        """Called by programs that will read for a long time, such as mounts. May begin to start a device.

        `path` is an archive that engines may be measured with.
        """

    def allocate(self, size: int) -> memoryview:
        """Returns a buffer of `size` bytes for the `out` of decode_blocks, or the stream of encode_blocks.

        They accept any memory, but are fastest with a buffer from here.
        """

    def encode_blocks(
        self, stream: Buffer, block_size: int, options: CodecOptions, dictionary: Dictionary | None = None
    ) -> list[EncodedBlock]:
        """Cuts `stream` into blocks of `block_size` bytes (the last may be shorter) and compresses each.

        With a `dictionary`, from which blocks may copy, the codec must be gompresso-bit.

        Returns the blocks in order. A block that does not shrink has the codec `stored`.
        """

    def decode_blocks(
        self,
        blocks: Sequence[Buffer],
        out: memoryview,
        *,
        sizes: Sequence[int] | None = None,
        symbols: Sequence[PartSymbols | None] | None = None,
        verify: bool = False,
    ) -> list[BlockStatus]:
        """Decodes whole blocks (header and payload) into `out`, a writable view of bytes, one after another.

        The output of block i begins at the sum of the uncompressed sizes of the blocks before it. Without `sizes`,
        these are in the headers, and a block whose header cannot be read has no output. With `sizes`, block i should
        decode to `sizes[i]` bytes; a header that says otherwise is damaged.

        `symbols[i]` are those of the part that block i belongs to, or the dictionary that its part uses. A block of
        gompresso-tadoc needs symbols, and one of gompresso-bit-dictionary the dictionary; without, it is damaged. A
        block of another codec is damaged if there are symbols, except for a stored block with the dictionary.

        Returns one status per block. Damaged blocks raise no exception: the status says what is wrong, and the block's
        output is zeros. With `verify`, the decoded bytes are also compared with their checksum.

        Raises ValueError if `out` is too small, or if there are not as many sizes or symbols as blocks.
        """


class ArchiveDecoder(Protocol):
    """Decodes blocks of one archive by their numbers, and opens the heads of their parts. Thread-safe."""

    def decode(self, numbers: Sequence[int]) -> tuple[memoryview, list[int], list[int]]:
        """Decodes blocks with ascending numbers.

        Returns memory with the contents, and for each block its offset there and its BlockStatus, as an integer. The
        contents of damaged blocks are undefined. If the head of a part is damaged, so are its blocks.
        """
