"""Heads of parts in device memory, as the kernel of gompresso-tadoc reads them (kernels/codec/tadoc_block.cuh).

Dictionaries are kept like heads, as the kernel of gompresso-bit-dictionary reads them
(kernels/codec/dictionary_rows.cuh).

Symbols that the host has opened are copied to the device. Heads that are not opened yet are copied as the archive
stores them, many at once, and the device opens them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gompfs._native import codec as _codec
from gompfs._native.text import SymbolTable
from gompfs.codec import BlockStatus, Codec
from gompfs.codec.constants import MAX_CLASS_BITS
from gompfs.codec.headers import read_headers
from gompfs.codec.stored_head import StoredHead, StoredWords
from gompfs.gpu.decode.head_memory import FIELDS_SIZE, MAX_CLASSES, START_SIZE, HeadMemory, head_memory
from gompfs.gpu.device.arrays import Array

if TYPE_CHECKING:
    from gompfs.codec.stored_head import Tokens

PAYLOAD_ALIGNMENT = 16
_ALLOCATION_UNIT = 512  # of CuPy
_DICTIONARY_START = 16
_DICTIONARY_PADDING = 256
_WORDS_HEADER = np.dtype(
    [("num_words", "<u4"), ("num_separators", "<u4"), ("words", "<u8"), ("separator_starts", "<u8"),
     ("separators", "<u8")]
)  # fmt: skip


def pack_head(symbols: SymbolTable) -> NDArray[np.uint8]:
    """Returns the symbols of a part in the layout of TadocHead: fields, class code, expansions by rank, pool.

    Returns a dictionary in the layout of GpuDictionary: its size, its bytes, and space that may be read.
    """
    if symbols.is_dictionary:
        packed = np.zeros(packed_size(symbols), np.uint8)
        packed[:4].view(np.uint32)[:] = symbols.pool.size
        packed[_DICTIONARY_START : _DICTIONARY_START + symbols.pool.size] = symbols.pool
        return packed
    expansions, pool, code = symbols.expansions, symbols.pool, symbols.code
    packed = np.zeros(packed_size(symbols), np.uint8)
    pool_offset = START_SIZE + expansions.nbytes
    lengths, classes = (code & 255).astype(np.uint8), (code >> 24 & 255).astype(np.uint8)
    # with an empty code no rank is valid
    num_ranks = expansions.size if lengths.any() else 0
    packed[:8].view(np.uint32)[:] = num_ranks, pool_offset
    packed[FIELDS_SIZE + classes] = lengths
    # the code may have shorter codewords, and less entries
    packed[FIELDS_SIZE + MAX_CLASSES : START_SIZE] = np.tile(classes, (1 << MAX_CLASS_BITS) // classes.size)
    packed[START_SIZE:pool_offset].view(np.uint64)[:] = expansions
    packed[pool_offset:] = pool
    return packed


def packed_size(symbols: SymbolTable) -> int:
    """Returns the size of `pack_head(symbols)` in bytes."""
    if symbols.is_dictionary:
        return _DICTIONARY_START + symbols.pool.size + _DICTIONARY_PADDING
    return START_SIZE + symbols.expansions.nbytes + symbols.pool.nbytes


def pack_words(tokens: Tokens) -> NDArray[np.uint8]:
    """Returns the words and separators of a section in the layout of StoredTokens (kernels/codec/head.cuh)."""
    word_starts, words, separator_starts, separators = tokens
    header = np.zeros(1, _WORDS_HEADER)
    padding = np.zeros(-words.size % 4, np.uint8)
    header["num_words"], header["num_separators"] = word_starts.size - 1, separator_starts.size - 1
    header["words"] = header.nbytes + word_starts.nbytes
    header["separator_starts"] = header["words"] + words.nbytes + padding.nbytes
    header["separators"] = header["separator_starts"] + separator_starts.nbytes
    pieces = (header, word_starts, words, padding, separator_starts, separators)
    return np.concatenate([piece.view(np.uint8) for piece in pieces])


def packed_words_size(tokens: Tokens) -> int:
    """Returns the size of `pack_words(tokens)` in bytes."""
    return _WORDS_HEADER.itemsize + sum(column.nbytes for column in tokens) + -tokens[1].size % 4


class HeadTask(NamedTuple):
    """A head to open: its payload and its pool, its memory in the device, and the address of its words."""

    payload_offset: int
    payload_size: int
    pool_size: int
    memory: HeadMemory
    target: Array
    words: int


class HeadDevice(Protocol):
    """The parts of a device that a HeadStore uses."""

    @property
    def workspace_bytes(self) -> int:
        """The largest workspace that a head may need."""

    def wait_for_readers(self) -> None:
        """Waits until no kernel reads a head. Called before heads are dropped."""

    def pinned_payloads(self, size: int) -> NDArray[np.uint8]:
        """Returns host memory for the payloads of heads, valid until the next call."""

    def reserve(self, size: int) -> None:
        """Prepares many small allocations of `size` bytes in all, which take longer otherwise. Raises MemoryError."""

    def allocate_head(self, size: int) -> Array:
        """Returns device memory, possibly the memory of a head that was dropped. Raises MemoryError."""

    def upload_head(self, packed: NDArray[np.uint8]) -> Array:
        """Copies bytes to device memory, possibly the memory of a head that was dropped. Raises MemoryError."""

    def open_heads(self, payloads: NDArray[np.uint8], tasks: Collection[HeadTask]) -> NDArray[np.uint8]:
        """Opens heads on the device, and returns a BlockStatus for each. Raises MemoryError.

        `payloads` was returned by pinned_payloads.
        """


class _Obstacle(Enum):
    """Why a head cannot be opened on the device: the memory is too small for the opened head, or to open it."""

    SPACE = 1
    OPENING = 2


class _Prepared(NamedTuple):
    """A stored head whose checksum was compared: the position of its payload, and the memory that it needs."""

    status: BlockStatus
    payload_offset: int = 0
    payload_size: int = 0
    pool_size: int = 0
    memory: HeadMemory | None = None


class HeadStore:
    """Heads that stay in device memory until newer ones need the space. For one thread at a time."""

    def __init__(self, capacity: int, device: HeadDevice, num_threads: int = 1) -> None:
        """Keeps at most `capacity` bytes in `device`: heads, and sections `words`.

        `num_threads` host threads compare the checksums of stored heads.
        """
        self._capacity = capacity
        self._device = device
        self._num_threads = num_threads
        self._heads: dict[int, Array] = {}  # by the number of the symbols, the head or the words; last used last
        self.num_bytes = 0
        self.num_losses = 0
        """How often heads were dropped. Addresses are valid as long as this number stays."""

    def load(self, heads: Iterable[SymbolTable | StoredHead]) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
        """Returns the device address of each head, and a BlockStatus. Loads heads that are not in the store.

        The address is 0 for damaged heads, and for those that do not fit beside the heads before them. All others stay
        in the store until the next call. The host opens heads that take too much memory to open on the device.
        """
        heads = list(heads)
        wanted = {head.number: head for head in heads}
        absent = [head for head in wanted.values() if isinstance(head, StoredHead) and head.number not in self._heads]
        payloads, prepared = self._prepare(absent)
        statuses = {number: each.status for number, each in prepared.items()}
        self._reserve_memory([each.memory.packed_size for each in prepared.values() if each.memory is not None])
        addresses: dict[int, int] = {}
        tasks: dict[int, HeadTask] = {}
        held: set[int] = set()  # what must stay in the store until the end of the call
        for number, head in wanted.items():
            if isinstance(head, SymbolTable):
                addresses[number] = self._load(head, held)
            elif number in prepared and prepared[number].status is BlockStatus.OK:
                task = self._reserve(head, prepared[number], held)
                if isinstance(task, HeadTask):
                    tasks[number] = task
                    addresses[number] = int(task.target.data.ptr)
                elif task is _Obstacle.OPENING:
                    addresses[number], statuses[number] = self._load_from_host(head, held)
            else:
                addresses[number] = self._find(number)  # 0 if it was dropped for one of the heads before
            held.add(number)
        for number, status in self._open(payloads, tasks).items():
            statuses[number] = status
            if number not in self._heads:
                addresses[number] = 0
        numbers = [head.number for head in heads]
        return (
            np.array([addresses.get(number, 0) for number in numbers], np.uint64),
            np.array([statuses.get(number, BlockStatus.OK) for number in numbers], np.uint8),
        )

    def _prepare(self, heads: list[StoredHead]) -> tuple[NDArray[np.uint8], dict[int, _Prepared]]:
        """Reads heads, compares their checksums, and returns their payloads and what each needs."""
        if not heads:
            return np.zeros(0, np.uint8), {}
        blocks = [head.read() for head in heads]
        facts = read_headers(blocks).copy()
        facts["status"] = np.where(facts["codec"] == Codec.HEAD, BlockStatus.OK, BlockStatus.BAD_HEADER)
        padded = -(-facts["payload_size"].astype(np.int64) // PAYLOAD_ALIGNMENT) * PAYLOAD_ALIGNMENT
        offsets = (np.cumsum(padded) - padded).astype(np.uint64)
        payloads = self._device.pinned_payloads(int(padded.sum()))
        checks = _codec.gather_payloads(blocks, facts.data, offsets.data, payloads.data, self._num_threads)
        rows = zip(
            heads, checks, offsets.tolist(), facts["payload_size"].tolist(), facts["uncompressed_size"].tolist(),
            strict=True,
        )  # fmt: skip
        prepared = {}
        for head, check, offset, payload_size, pool_size in rows:
            status = BlockStatus(check)
            memory = None
            if status is BlockStatus.OK:
                memory = head_memory(payloads[offset : offset + payload_size].data, pool_size)
                status = BlockStatus.BAD_PAYLOAD if memory is None else status
            prepared[head.number] = _Prepared(status, offset, payload_size, pool_size, memory)
        return payloads, prepared

    def _reserve_memory(self, sizes: Sequence[int]) -> None:
        """Has the device prepare memory for heads of these sizes, if there is space for all."""
        size = sum(-(-each // _ALLOCATION_UNIT) * _ALLOCATION_UNIT for each in sizes)
        if len(sizes) > 1 and self.num_bytes + size <= self._capacity:
            with suppress(MemoryError):
                self._device.reserve(size)

    def _reserve(self, head: StoredHead, prepared: _Prepared, held: set[int]) -> HeadTask | _Obstacle:
        """Returns the task that opens a head on the device. Adds the words of its segment to `held`."""
        memory = prepared.memory
        assert memory is not None
        if memory.workspace_size > self._device.workspace_bytes:
            return _Obstacle.OPENING
        held.add(head.words.number)
        words = self._load_words(head.words, held)
        if not words:
            return _Obstacle.OPENING
        target = self._allocate(head.number, memory.packed_size, held, self._device.allocate_head)
        if target is None:
            return _Obstacle.SPACE
        return HeadTask(prepared.payload_offset, prepared.payload_size, prepared.pool_size, memory, target, words)

    def _load_from_host(self, head: StoredHead, held: Collection[int]) -> tuple[int, BlockStatus]:
        """Returns the address of a head that the host opens, and its status."""
        symbols, status = head.open_on_host()
        return (0, status) if symbols is None else (self._upload_symbols(head.number, symbols, held), status)

    def _open(self, payloads: NDArray[np.uint8], tasks: dict[int, HeadTask]) -> dict[int, BlockStatus]:
        """Opens the heads of tasks, and returns their statuses. Drops damaged heads, and all if memory is missing."""
        if not tasks:
            return {}
        try:
            statuses = [BlockStatus(status) for status in self._device.open_heads(payloads, tasks.values()).tolist()]
            damaged = [number for number, status in zip(tasks, statuses, strict=True) if status is not BlockStatus.OK]
        except MemoryError:
            statuses, damaged = [BlockStatus.OK] * len(tasks), list(tasks)
        except BaseException:
            self._drop(tasks)
            raise
        self._drop(damaged)
        return dict(zip(tasks, statuses, strict=True))

    def _find(self, number: int) -> int:
        """Returns the address of a head, or of words, or 0 if they are not in the store. They become the last used."""
        array = self._heads.pop(number, None)
        if array is None:
            return 0
        self._heads[number] = array
        return int(array.data.ptr)

    def _load(self, symbols: SymbolTable, held: Collection[int]) -> int:
        """Returns the address of symbols, or 0 if they do not fit. They do not replace what is in `held`."""
        return self._find(symbols.number) or self._upload_symbols(symbols.number, symbols, held)

    def _upload_symbols(self, number: int, symbols: SymbolTable, held: Collection[int]) -> int:
        return self._upload(number, packed_size(symbols), lambda: pack_head(symbols), held)

    def _load_words(self, words: StoredWords, held: Collection[int]) -> int:
        """Returns the address of words, or 0 if they do not fit. They do not replace what is in `held`."""
        address = self._find(words.number)
        if address:
            return address
        tokens = words.read()
        return self._upload(words.number, packed_words_size(tokens), lambda: pack_words(tokens), held)

    def _upload(self, number: int, size: int, pack: Callable[[], NDArray[np.uint8]], held: Collection[int]) -> int:
        """Uploads the `size` bytes that `pack` returns, unless they do not fit. Returns their address, or 0."""
        array = self._allocate(number, size, held, lambda _: self._device.upload_head(pack()))
        return 0 if array is None else int(array.data.ptr)

    def _allocate(
        self, number: int, size: int, held: Collection[int], allocate: Callable[[int], Array]
    ) -> Array | None:
        """Adds what `allocate(size)` returns to the store, after heads that it replaces were dropped."""
        if not self._make_space(size, held):
            return None
        try:
            array = allocate(size)
        except MemoryError:
            return None
        self._heads[number] = array
        self.num_bytes += array.nbytes
        return array

    def _drop(self, numbers: Collection[int]) -> None:
        if numbers:
            self._device.wait_for_readers()
        for number in numbers:
            self.num_losses += 1
            self.num_bytes -= self._heads.pop(number).nbytes

    def _make_space(self, size: int, held: Collection[int]) -> bool:
        """Drops heads until `size` bytes are free. Returns False, and drops nothing, if that is not possible."""
        dropped = []
        free = self._capacity - self.num_bytes
        for number, head in self._heads.items():
            if free >= size:
                break
            if number not in held:
                dropped.append(number)
                free += head.nbytes
        if free < size:
            return False
        self._drop(dropped)
        return True
