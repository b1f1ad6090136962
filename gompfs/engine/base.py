"""What every engine does: whole batches of blocks in, one status per block out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from gompfs.codec import BlockStatus, CodecOptions, EncodedBlock
from gompfs.codec.block import Buffer
from gompfs.engine.decode_work import DecodeWork

if TYPE_CHECKING:  # these need NumPy, and blocks are decoded without it
    from gompfs.engine.array_device import ArrayDevice
    from gompfs.engine.text_device import TextDevice
    from gompfs.grammar import RuleBuilder


class Engine(Protocol):
    """A way to run the codecs. Methods may be called by several threads at once."""

    @property
    def name(self) -> str:
        """`reference`, `cpu` or `gpu`."""

    @property
    def reason(self) -> str:
        """Why this engine was chosen, for people."""

    @property
    def num_threads(self) -> int:
        """Host threads that one batch may use."""

    @property
    def batch_bytes(self) -> int:
        """Bytes of output that one call of decode_blocks should be about, where there is a choice."""

    @property
    def decode_work(self) -> Mapping[str, DecodeWork]:
        """What was decoded so far, by the name of the engine that did it: this one, and others that it makes use of."""

    @property
    def build_rules(self) -> RuleBuilder | None:
        """How the engine's device builds the rules of grammars; None: that is left to the grammar builder's threads."""

    def decodes_on_cpu(self, num_bytes: int) -> bool:
        """Whether the CPU decodes a batch of so much output: then threads without the interpreter may do it as well.

        They count it in `decode_work["cpu"]`.
        """

    def allocate(self, size: int) -> memoryview:
        """Memory for the `out` of decode_blocks, `size` bytes; the engine writes to any, but to this the fastest."""

    def array_device(self, num_symbols: int) -> ArrayDevice | None:
        """What traverses grammars of so many symbols, if not the CPU.

        Raises EngineUnavailableError where the engine is to use a device for that, and cannot.
        """

    def text_device(self, num_bytes: int) -> TextDevice | None:
        """Where so much text is cut into words, if not on the CPU.

        Raises EngineUnavailableError where the engine is to use a device for that, and cannot.
        """

    def encode_blocks(self, stream: Buffer, block_size: int, options: CodecOptions) -> list[EncodedBlock]:
        """Cut `stream` into blocks of `block_size` bytes (the last may be shorter) and compress each.

        A block that does not shrink comes back as `stored`.
        """

    def decode_blocks(self, blocks: Sequence[Buffer], out: memoryview, *, verify: bool = False) -> list[BlockStatus]:
        """Decode whole blocks (header and payload) one after another into `out`, a writable byte view.

        Block i lands behind the uncompressed sizes of the blocks before it; a block whose header cannot be
        read takes no place. Damage never raises: the block's status says what is wrong, and its place in
        `out` is zeros. `verify` also checks the decoded bytes against their checksum.
        Raises ValueError when `out` is too small.
        """
