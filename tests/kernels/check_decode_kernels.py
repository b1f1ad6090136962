"""Compares what kernels on the host decode with what the C++ core decodes, for sound, crafted and damaged payloads.

Usage: check_decode_kernels.py LIBRARY CASE NUM_DAMAGED, where LIBRARY is built from host_kernels.cpp with sanitizers.
Payloads, outputs, heads and workspaces have memory of their own, exactly as large as the kernels require, so that
AddressSanitizer finds any access beyond it.
"""

from __future__ import annotations

import ctypes
import random
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import tadoc_blocks
import tadoc_heads
from host_device import HostDevice
from mutations import mutate
from numpy.typing import NDArray
from oracle.payload import read_payload
from payload_builder import build_bit
from payloads import CORPUS, contents, decode_natively, encode
from tadoc_blocks import TadocBlock
from tadoc_heads import TadocHead
from test_dictionary_payloads import TEXT, random_dictionary_payload
from test_dictionary_payloads import decode as decode_with_dictionary
from test_dictionary_payloads import encode as encode_with_dictionary
from tool_modules import tool_module

from gompfs._native import codec as native
from gompfs.codec import BLOCK_HEADER_SIZE, BlockStatus, Codec, CodecOptions
from gompfs.engine import select_engine
from gompfs.gpu.decode.head_memory import head_memory
from gompfs.gpu.decode.head_store import pack_head, pack_words
from gompfs.gpu.device.kernel_sources import SHARED_BYTES

_NUM_CTAS, _NUM_WARPS, _HEAD_THREADS = 2, 2, 128
_PAYLOAD_PADDING, _HEAD_PADDING, _OUTPUT_PADDING = 64, 256, 256  # bytes that kernels may read after each
_ALIGNMENT = 256
_BASE = np.uint64(_ALIGNMENT)  # a pointer to which offsets are added; that to a null pointer would be an error
_STRATEGY_BYTES_PER_WARP = 128
_MAX_JUMPS = 21  # no chain of a block is longer than the block: each round halves it, and one finds nothing to do
_LEVELS = ((1, True), (6, True), (6, False), (8, True))
_LIBC = ctypes.CDLL(None)

Payloads = Sequence[tuple[bytes, int]]
"""Payloads, and the sizes of their contents."""


def allocate(size: int, content: bytes = b"") -> NDArray[np.uint8]:
    """Returns aligned memory of exactly `size` bytes: `content`, and then bytes 0xee."""
    pointer = ctypes.c_void_p()
    assert _LIBC.posix_memalign(ctypes.byref(pointer), ctypes.c_size_t(_ALIGNMENT), ctypes.c_size_t(size)) == 0
    assert pointer.value is not None
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(pointer.value))
    weakref.finalize(memory, _LIBC.free, pointer)
    memory[: len(content)] = np.frombuffer(content, np.uint8)
    memory[len(content) :] = 0xEE
    return memory


def addresses(arrays: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint64]:
    return np.array([array.ctypes.data for array in arrays], np.uint64)


class Batch:
    """Payloads that one launch decodes. With `has_padding`, the kernel may read bytes after the outputs."""

    def __init__(self, payloads: Payloads, *, has_padding: bool = True) -> None:
        self._padding = _OUTPUT_PADDING if has_padding else 0
        self._inputs = [allocate(len(payload) + _PAYLOAD_PADDING, payload) for payload, _ in payloads]
        self.outputs = [allocate(size + self._padding) for _, size in payloads]
        self._statuses = np.full(len(payloads), 255, np.uint8)
        self._input_sizes = np.array([len(payload) for payload, _ in payloads], np.uint32)
        self._sizes = np.array([size for _, size in payloads], np.uint32)

    def decode(
        self,
        device: HostDevice,
        kernel: str,
        shared: tuple[int, int],
        *counters: NDArray[np.generic],
        heads: Sequence[NDArray[np.uint8]] = (),
    ) -> list[bytes | None]:
        """Returns the contents, or None for each payload that the kernel refuses.

        `shared` is the shared memory per CTA and per warp. `heads` has the head or dictionary of each payload.
        """
        if counters:  # they have items for the bytes of the output from its start on
            output, targets = self.outputs[0], np.zeros(1, np.uint64)
        else:
            output, targets = _BASE, addresses(self.outputs) - _BASE
        arguments = (
            _BASE, addresses(self._inputs) - _BASE, self._input_sizes, output, targets, self._sizes, self._statuses,
            np.zeros(1, np.uint32), *([addresses(heads)] if heads else []), np.uint32(self._sizes.size), *counters,
        )  # fmt: skip
        device.launch_exactly(kernel, _NUM_CTAS, 32 * _NUM_WARPS, shared[0] + _NUM_WARPS * shared[1], arguments)
        return self.contents()

    def contents(self) -> list[bytes | None]:
        assert all((output[size:] == 0xEE).all() for output, size in zip(self.outputs, self._sizes, strict=True))
        assert set(self._statuses.tolist()) <= {BlockStatus.OK, BlockStatus.BAD_PAYLOAD}
        return [
            None if status else output[:size].tobytes()
            for status, output, size in zip(self._statuses, self.outputs, self._sizes, strict=True)
        ]


def decode(device: HostDevice, codec: Codec, payloads: Payloads) -> list[bytes | None]:
    kernel = "decode_bit" if codec is Codec.GOMPRESSO_BIT else "decode_byte"
    return Batch(payloads).decode(device, kernel, SHARED_BYTES[f"codec/{kernel}"])


def check_codec(device: HostDevice, codec: Codec, num_damaged: int) -> None:
    made = [
        (content, encode(content, codec, level, eliminates))
        for content in contents().values()
        for level, eliminates in _LEVELS
    ]
    encoded = [(content, payload) for content, (coded_as, payload) in made if coded_as is codec]
    assert len(encoded) > 100
    decoded = decode(device, codec, [(payload, len(content)) for content, payload in encoded])
    assert decoded == [content for content, _ in encoded]
    check_rounds(device, codec)
    num_refused = 0
    rng = random.Random(codec)
    for content, payload in samples(codec, num_damaged // 20, rng):
        check_strategies(device, codec, payload, content)
        mutants = [(mutate(payload, rng), len(content)) for _ in range(20)]
        expected = [decode_natively(codec, *mutant) for mutant in mutants]
        assert decode(device, codec, mutants) == expected, mutants
        num_refused += expected.count(None)
    assert num_damaged / 4 < num_refused < num_damaged


def samples(codec: Codec, count: int, rng: random.Random) -> Iterator[tuple[bytes, bytes]]:
    """Yields contents and their payloads, of all levels and group sizes."""
    engine, choices = select_engine("cpu", 1), [content[:2000] for content in contents().values()]
    number = 0
    while number < count:
        content = rng.choice(choices)
        options = CodecOptions(codec, 1 + number % 8, number % 3 != 0, 2 + number % 4)
        (block,) = engine.encode_blocks(content, 1 << 20, options)
        if block.codec is codec:
            number += 1
            yield content, block.data[BLOCK_HEADER_SIZE:]


def run_strategy(
    device: HostDevice, codec: Codec, strategy: str, payload: bytes, size: int
) -> tuple[bytes | None, list[int]]:
    """Returns what a strategy of tools/experiments decodes, and its counters: rows, rounds, and bytes by round."""
    bit = codec is Codec.GOMPRESSO_BIT
    per_cta, per_warp = SHARED_BYTES["codec/decode_bit"] if bit else (0, 0)
    kernel, shared = f"decode_{'bit' if bit else 'byte'}_{strategy}", (per_cta, per_warp + _STRATEGY_BYTES_PER_WARP)
    batch, counters = Batch([(payload, size)]), np.zeros(34, np.uint64)
    if strategy == "jump":
        (decoded,) = batch.decode(device, kernel, shared, counters, np.zeros(size, np.uint32))
    elif strategy != "list":
        (decoded,) = batch.decode(device, kernel, shared, counters)
    else:
        lists, num_listed = np.zeros(size // 2, np.uint64), np.zeros(1, np.uint32)
        batch.decode(device, kernel, shared, lists, num_listed)
        counters[:2] = 1, resolve_rounds(device, batch.outputs[0], lists, num_listed)
        (decoded,) = batch.contents()
    return decoded, counters.tolist()


def resolve_rounds(
    device: HostDevice, output: NDArray[np.uint8], lists: NDArray[np.uint64], num_listed: NDArray[np.uint32]
) -> int:
    """Copies the listed matches of one block. Returns the number of rounds."""
    num_rounds = 0
    while num_listed[0]:
        others, num_others, num_waiting = np.zeros_like(lists), np.zeros(1, np.uint32), np.zeros(1, np.uint64)
        arguments = (
            output, np.zeros(1, np.uint64), np.zeros(1, np.uint32), np.uint32(1), lists, num_listed, others,
            num_others, num_waiting,
        )  # fmt: skip
        device.launch_exactly("resolve_round", 1, 32 * _NUM_WARPS, 0, arguments)
        assert num_waiting[0] == num_others[0] < num_listed[0]
        lists, num_listed = others, num_others
        num_rounds += 1
    return num_rounds


def check_strategies(device: HostDevice, codec: Codec, payload: bytes, content: bytes) -> None:
    """Each strategy decodes the payload, and its counters agree with the header."""
    num_sequences = int.from_bytes(payload[4:8], "little")
    at = 8 if codec is Codec.GOMPRESSO_BIT else 12
    num_rows, num_literals = -(-num_sequences // 32), int.from_bytes(payload[at : at + 4], "little")
    rounds = {"sc": [32 * num_rows], "de": [(32 >> payload[1]) * num_rows], "mrr": range(32 * num_rows + 1)}
    for strategy in ("sc", "sc_bytes", "mrr", "mrr_bytes", "de", "de_bytes", "list", "jump"):
        rule = strategy.removesuffix("_bytes")
        if rule == "de" and not payload[0] & 1:
            continue
        decoded, (rows, rounds_taken, *num_bytes) = run_strategy(device, codec, strategy, payload, len(content))
        assert decoded == content, strategy
        if rule in rounds:
            assert (rows, sum(num_bytes)) == (num_rows, len(content) - num_literals), strategy
            assert rounds_taken in rounds[rule], strategy
        else:
            assert rows == 1, strategy
            assert rounds_taken <= (_MAX_JUMPS if strategy == "jump" else len(content)), strategy


def check_rounds(device: HostDevice, codec: Codec) -> None:
    """Multi-round resolution counts the same rows, rounds and bytes as its model in Python."""
    nested = tool_module("experiments.nested")
    texts = [(CORPUS / "carroll" / "alice29.txt").read_bytes()[: 1 << 15], bytes(5000)]
    for text in texts + [nested.make_nested(depth, 1 << 14) for depth in nested.DEPTHS]:
        payload = encode(text, codec, 6, False)[1]
        rows = nested.count_rounds(read_payload(codec, payload, len(text)).sequences)
        bytes_of_round = [sum(row[number] for row in rows if number < len(row)) for number in range(32)]
        _, counted = run_strategy(device, codec, "mrr", payload, len(text))
        assert counted == [len(rows), sum(map(len, rows)), *bytes_of_round]


def check_byte(device: HostDevice, num_damaged: int) -> None:
    check_codec(device, Codec.GOMPRESSO_BYTE, num_damaged)


def check_bit(device: HostDevice, num_damaged: int) -> None:
    check_codec(device, Codec.GOMPRESSO_BIT, num_damaged)


def check_dictionary(device: HostDevice, num_damaged: int) -> None:
    def decoded(dictionary: bytes, payloads: Payloads) -> list[bytes | None]:
        packed = pack_head(native.Dictionary(dictionary).table).tobytes()
        memory = allocate(len(packed), packed)
        kernel, heads = "decode_bit_dictionary", [memory] * len(payloads)
        return Batch(payloads).decode(device, kernel, SHARED_BYTES[f"codec/{kernel}"], heads=heads)

    whole = [TEXT[:20_000], TEXT[:100] * 3, TEXT[1000:1500], bytes(5000)]
    for level, eliminates in _LEVELS:
        encoded = [encode_with_dictionary(content, TEXT[70_000:], level, eliminates=eliminates)[1] for content in whole]
        assert decoded(TEXT[70_000:], list(zip(encoded, map(len, whole), strict=True))) == whole
    rng = random.Random(9)
    num_refused = 0
    for _ in range(25):  # payloads that the encoder never writes, with addresses that end after the dictionary
        crafted, size = random_dictionary_payload(rng)
        payload = build_bit(crafted, rng)
        if len(payload) > size:
            continue
        for dictionary in (crafted.dictionary, crafted.dictionary[: len(crafted.dictionary) // 2]):
            expected = decode_with_dictionary(payload, size, dictionary)
            assert decoded(dictionary, [(payload, size)]) == [expected]
            num_refused += expected is None
    assert num_refused > 5
    num_refused = 0
    for number in range(num_damaged // 20):
        content = rng.choice(whole[1:])[: rng.randint(100, 2000)]
        dictionary = TEXT[-rng.randint(1, 3000) :] + content[: rng.randrange(len(content))]
        _, payload = encode_with_dictionary(content, dictionary, 1 + number % 8, eliminates=number % 3 != 0)
        mutants = [(mutate(payload, rng)[: len(content)], len(content)) for _ in range(20)]
        answers = [decode_with_dictionary(*mutant, dictionary) for mutant in mutants]
        assert decoded(dictionary, mutants) == answers, mutants
        num_refused += answers.count(None)
    assert num_damaged / 4 < num_refused < num_damaged


def compare_blocks(device: HostDevice, blocks: Sequence[TadocBlock]) -> int:
    """Compares the kernel of gompresso-tadoc with the core. Returns how many blocks both refuse."""
    out = memoryview(bytearray(sum(block.size for block in blocks)))
    symbols = [block.symbols for block in blocks]
    statuses = select_engine("cpu").decode_blocks([block.block for block in blocks], out, symbols=symbols)
    opened = {each.number: pack_head(each).tobytes() for each in symbols}
    heads = {number: allocate(len(head), head) for number, head in opened.items()}
    batch = Batch([(block.payload, block.size) for block in blocks], has_padding=False)
    in_order = [heads[each.number] for each in symbols]
    end = 0
    kernel = "decode_tadoc"
    decoded = batch.decode(device, kernel, SHARED_BYTES[f"codec/{kernel}"], heads=in_order)
    for block, status, ours in zip(blocks, statuses, decoded, strict=True):
        assert status in {BlockStatus.OK, BlockStatus.BAD_PAYLOAD}
        assert ours == (None if status else bytes(out[end : end + block.size])), block
        end += block.size
    return decoded.count(None)


def check_tadoc(device: HostDevice, num_damaged: int) -> None:
    rng = random.Random(6)
    assert compare_blocks(device, tadoc_blocks.blocks_of_texts()) == 0
    blocks = list(tadoc_blocks.random_blocks(15, rng))
    rng.shuffle(blocks)  # warps change from head to head
    assert compare_blocks(device, blocks) == 0
    crafted = list(tadoc_blocks.crafted().values())
    assert len(crafted) / 2 < compare_blocks(device, crafted) < len(crafted)
    assert compare_blocks(device, list(tadoc_blocks.highest_ranks())) == 4
    intact = [*tadoc_blocks.random_blocks(10, rng), *tadoc_blocks.blocks_of_texts()]
    small = [block for block in intact if block.size <= 600]
    num_refused = compare_blocks(device, list(tadoc_blocks.damaged(small, num_damaged, rng)))
    assert num_damaged / 4 < num_refused < num_damaged


def open_by_kernel(
    device: HostDevice, heads: Sequence[TadocHead], less_workspace: int = 0
) -> list[NDArray[np.uint8] | None]:
    """Returns each head as the kernel opens it, all in one launch, or None if it refuses the head."""
    sections = {
        section: pack_words(tadoc_heads.part_heads([], section).words(0)).tobytes()
        for section in tadoc_heads.by_section(heads)
    }
    words = {section: allocate(len(packed), packed) for section, packed in sections.items()}
    memories = [head_memory(memoryview(head.payload), head.pool_size) for head in heads]
    possible = [(head, memory) for head, memory in zip(heads, memories, strict=True) if memory is not None]
    payloads = [allocate(len(head.payload) + _HEAD_PADDING, head.payload) for head, _ in possible]
    opened = [allocate(memory.packed_size) for _, memory in possible]
    workspaces = [allocate(memory.workspace_size - less_workspace) for _, memory in possible]
    in_order = [words[head.section] for head, _ in possible]
    tasks = np.zeros((len(possible), 6), np.uint64)
    tasks[:, :4] = np.stack([addresses(each) for each in (payloads, opened, workspaces, in_order)], 1)
    tasks[:, 4:] = np.array(
        [(len(head.payload), head.pool_size, memory.num_symbols, memory.workspace_size - less_workspace)
         for head, memory in possible], np.uint32,
    ).view(np.uint64)  # fmt: skip
    statuses = np.full(len(possible), 255, np.uint8)
    arguments = (tasks, statuses, np.zeros(1, np.uint32), np.uint32(len(possible)))
    device.launch_exactly("open_heads", _NUM_CTAS, _HEAD_THREADS, SHARED_BYTES["codec/open_heads"][0], arguments)
    assert set(statuses.tolist()) <= {BlockStatus.OK, BlockStatus.BAD_PAYLOAD}
    results = iter([head if status == BlockStatus.OK else None for head, status in zip(opened, statuses, strict=True)])
    return [None if memory is None else next(results) for memory in memories]


def compare_heads(device: HostDevice, heads: Sequence[TadocHead]) -> int:
    """Compares the kernel with the core. Returns how many heads both refuse."""
    expected = tadoc_heads.open_on_cpu(heads)
    for head, ours, theirs in zip(heads, open_by_kernel(device, heads), expected, strict=True):
        assert tadoc_heads.are_same(ours, theirs), head
    return sum(opened is None for opened in expected)


def check_heads(device: HostDevice, num_damaged: int) -> None:
    rng = random.Random(1)
    assert compare_heads(device, tadoc_heads.heads_of_texts()) == 0
    heads = list(tadoc_heads.random_heads(40, rng))
    assert compare_heads(device, heads) == 0
    assert all(opened is None for opened in open_by_kernel(device, heads[:20], less_workspace=1))
    crafted = list(tadoc_heads.crafted_heads().values())
    assert compare_heads(device, crafted) == len(crafted) - 8
    intact = [*heads, *(head for head in tadoc_heads.heads_of_texts() if len(head.payload) < 1000)]
    num_refused = compare_heads(device, list(tadoc_heads.damaged_heads(intact, num_damaged, rng)))
    assert num_damaged / 4 < num_refused < num_damaged


CASES: dict[str, Callable[[HostDevice, int], None]] = {
    "byte": check_byte,
    "bit": check_bit,
    "dictionary": check_dictionary,
    "tadoc": check_tadoc,
    "heads": check_heads,
}


if __name__ == "__main__":
    CASES[sys.argv[2]](HostDevice(Path(sys.argv[1])), int(sys.argv[3]))
