"""The constants of the format that Python needs. kernels/shared/format_constants.h holds the same values."""

from __future__ import annotations

BLOCK_HEADER_SIZE = 32
MAX_BLOCK_SIZE = 1 << 20
MAX_EXPANSION = 341  # the most output bytes per payload byte: a match of 426 bytes takes 10 bits

MIN_GROUP_SIZE_LOG2 = 2
MAX_GROUP_SIZE_LOG2 = 5

NUM_SUB_BLOCKS = 32

BIT_PADDING = 8
NUM_LITERAL_SYMBOLS = 256
NUM_TOKEN_SYMBOLS = 256
NUM_OFFSET_SYMBOLS = 40

MAX_DICTIONARY_SIZE = 1 << 20

TADOC_MAX_OVERHEAD = 64  # the most bytes by which a payload of gompresso-tadoc exceeds its content
HEAD_HEADER_SIZE = 40
MAX_HEAD_PAYLOAD = 2 << 20
MAX_POOL_SIZE = 4 << 20
MAX_PART_SYMBOLS = 1 << 20  # a part has fewer
MAX_CLASS_BITS = 11
