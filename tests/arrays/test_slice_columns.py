"""The arrays that a GPU gets for a slice of a plan: compared with loops that say what each value is."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from gompfs._native.blocks import BlockReader, RangePlan, SliceColumns, WholeBlocks
from gompfs.codec import BlockStatus, Codec
from gompfs.codec.headers import FACTS

BLOCK_SIZE = 4096
NUM_BLOCKS = 300
TYPES = [np.uint64, np.uint64, np.uint8, np.uint32, np.uint64, np.uint32, np.uint32, np.uint32, np.uint64]
CODECS = [
    Codec.STORED,
    Codec.GOMPRESSO_BYTE,
    Codec.GOMPRESSO_BIT,
    Codec.GOMPRESSO_TADOC,
    Codec.GOMPRESSO_BIT_DICTIONARY,
]
CONTENT, BASE = 1 << 40, 64


@pytest.fixture
def reader() -> BlockReader:
    """Reads files of any sizes, one after another in the stream; some have a hole at their end."""
    rng = random.Random(5)
    reader = BlockReader(NUM_BLOCKS, BLOCK_SIZE, 1)
    stream_offset = 0
    for ino in range(1, 100):
        size = rng.choice([1, 100, BLOCK_SIZE, rng.randrange(1, 5 * BLOCK_SIZE)])
        reader.add_file(ino, size + rng.choice([0, 1000]), [(0, stream_offset, size)])
        stream_offset += size
    assert stream_offset <= NUM_BLOCKS * BLOCK_SIZE
    return reader


@pytest.fixture
def plan(reader: BlockReader) -> RangePlan:
    inos = np.array(random.Random(6).choices(range(1, 100), k=150), np.uint64)
    plan = RangePlan(reader, inos, np.zeros_like(inos), np.full_like(inos, 1 << 40))
    assert plan.failure is None
    assert plan.locate(1 << 30) is None
    return plan


def random_blocks(rng: random.Random, count: int) -> dict[str, Any]:
    """Returns the arguments of SliceColumns for each block but the plan and the indexes."""
    facts = np.zeros(count, FACTS)
    for record in facts:
        if rng.random() < 0.1:
            record["status"] = BlockStatus.BAD_PAYLOAD
        else:
            numbers = [rng.randrange(1, 5000) for _ in range(4)]
            record["codec"] = rng.choice(CODECS)
            record["payload_size"], record["uncompressed_size"], record["content_xxh3"], record["block_xxh3"] = numbers
    return {
        "facts": facts,
        "head_statuses": np.array(rng.choices([0, 0, 0, BlockStatus.BAD_HEADER], k=count), np.uint8),
        "heads": np.array([rng.randrange(1 << 50) for _ in range(count)], np.uint64),
        "payloads": np.array([rng.randrange(1 << 50) for _ in range(count)], np.uint64),
    }


def columns_in(columns: SliceColumns) -> list[list[int]]:
    memory = np.full(columns.size, 0xA5, np.uint8)
    columns.write(memory.data, CONTENT, BASE)
    begins = [begin for begin, _ in columns.bounds]
    assert not any(begin % 16 for begin in begins)
    assert begins == sorted(begins)
    return [memory[begin:end].view(kind).tolist() for (begin, end), kind in zip(columns.bounds, TYPES, strict=True)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [1, 7, 60])
def test_columns(seed: int, count: int, plan: RangePlan) -> None:
    rng = random.Random(seed)
    indexes = np.array(sorted(rng.sample(range(plan.blocks.size), count)), np.int64)
    blocks = random_blocks(rng, count)
    columns = SliceColumns(plan, indexes, **(blocks | {"facts": blocks["facts"].data}), in_place=False)

    facts, heads, payloads = blocks["facts"], blocks["heads"].tolist(), blocks["payloads"].tolist()
    statuses = [int(of_head or own) for of_head, own in zip(blocks["head_statuses"], facts["status"], strict=True)]
    codecs = facts["codec"].tolist()
    decoded = [block for block in range(count) if not statuses[block] and codecs[block] != Codec.STORED]
    decoded.sort(key=lambda block: codecs[block])
    order = decoded + [block for block in range(count) if block not in decoded]
    offsets, content_size = [], 0
    for block in decoded:
        offsets.append(content_size)
        content_size += -(-int(facts["uncompressed_size"][block]) // 32) * 32
    assert columns.indexes.tolist() == indexes[order].tolist()
    assert columns.content_size == content_size
    assert columns.num_decoded == [sum(codecs[block] == codec for block in decoded) for codec in range(max(Codec) + 1)]
    assert columns.has_checksums == facts["content_xxh3"].any()

    sizes = np.concatenate([facts["payload_size"][decoded], facts["uncompressed_size"][decoded]])
    tasks = [payloads[block] for block in decoded] + offsets + [heads[block] for block in decoded]
    tasks += [*sizes.view(np.uint64).tolist(), *(0 for _ in decoded)]
    sources = [CONTENT + offset for offset in offsets] + [payloads[block] for block in order[len(decoded) :]]
    pieces = [
        (position, plan.begins[piece], plan.sizes[piece], (int(plan.targets[piece]) - BASE) % (1 << 64))
        for position, block in enumerate(order)
        for piece in range(plan.first_pieces[indexes[block]], plan.first_pieces[indexes[block] + 1])
    ]
    of_blocks = [[values[block] for block in order] for values in (
        statuses, facts["uncompressed_size"].tolist(), facts["content_xxh3"].tolist()
    )]  # fmt: skip
    assert columns.num_pieces == len(pieces)
    assert columns_in(columns) == [tasks, sources, *of_blocks, *([*column] for column in zip(*pieces, strict=True))]


def test_blocks_decoded_in_place() -> None:
    """Only stored and damaged blocks have pieces. A decoded block goes to the target of its piece."""
    rng = random.Random(8)
    blocks = random_blocks(rng, 30)
    facts = blocks["facts"]
    sizes = np.where(facts["status"] == 0, facts["uncompressed_size"], 77).astype(np.uint32)
    targets = np.arange(30, dtype=np.uint64) * 8192 + BASE
    values = blocks | {"facts": facts.data}
    columns = SliceColumns(WholeBlocks(sizes, targets), np.arange(30), **values, in_place=True)
    tasks, sources, statuses, *_, of_blocks, begins, piece_sizes, piece_targets = columns_in(columns)
    order, num_decoded = columns.indexes.tolist(), sum(columns.num_decoded)
    assert columns.content_size == 0
    assert tasks[num_decoded : 2 * num_decoded] == [8192 * block for block in order[:num_decoded]]
    assert sources[:num_decoded] == [CONTENT + 8192 * block for block in order[:num_decoded]]
    assert not any(statuses[:num_decoded])
    others = order[num_decoded:]
    assert of_blocks == [*range(num_decoded, 30)]
    assert (begins, piece_sizes) == ([0] * len(others), sizes[others].tolist())
    assert piece_targets == [8192 * block for block in others]
    for wrong_sizes, wrong_targets in ((sizes + np.uint32(1), targets), (sizes, targets + np.uint64(8))):
        with pytest.raises(ValueError, match="in place"):
            SliceColumns(WholeBlocks(wrong_sizes, wrong_targets), np.arange(30), **values, in_place=True)
    with pytest.raises(ValueError, match="a size and a target"):
        WholeBlocks(sizes[1:], targets)


def test_mistakes(plan: RangePlan) -> None:
    indexes = np.arange(10)
    blocks = random_blocks(random.Random(1), 10)

    def columns(indexes: Any = indexes, **others: Any) -> SliceColumns:
        values = blocks | others
        return SliceColumns(plan, indexes, **(values | {"facts": values["facts"].data}), in_place=False)

    memory = np.zeros(columns().size + 16, np.uint8)
    for start, end in ((0, -8), (0, memory.size), (1, -15)):
        with pytest.raises(ValueError, match="size or alignment"):
            columns().write(memory[start:end].data, 0, 0)
    for name in blocks:
        with pytest.raises(ValueError, match="each column"):
            columns(**{name: blocks[name][1:]})
    for wrong in (-1, plan.blocks.size, 1 << 40):
        with pytest.raises(ValueError, match="no such block"):
            columns(np.append(indexes[1:], wrong))
    facts = np.zeros(10, FACTS)
    facts["codec"] = max(Codec) + 1
    with pytest.raises(ValueError, match="no such block or codec"):
        columns(facts=facts)


def test_overrun_block(plan: RangePlan) -> None:
    """The first block that is shorter than what is read of it."""
    sizes = np.full(NUM_BLOCKS, BLOCK_SIZE, np.uint32)
    assert plan.overrun_block(sizes) is None
    for number in (17, 9):
        index = plan.blocks.tolist().index(number)
        pieces = slice(plan.first_pieces[index], plan.first_pieces[index + 1])
        sizes[number] = (plan.begins[pieces] + plan.sizes[pieces]).max()
        before = plan.overrun_block(sizes)
        sizes[number] -= 1
        assert plan.overrun_block(sizes) == number != before
    with pytest.raises(ValueError, match="a size"):
        plan.overrun_block(sizes[:-1])
