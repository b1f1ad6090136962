"""What tests of `read_many` share: the files, archives of them, and where they are read to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from dictionary_trees import OPTIONS
from numpy.typing import NDArray

from gompfs.arrays import Arrays
from gompfs.codec import Codec
from gompfs.files import ArchiveFiles

BLOCK_SIZE = 16 << 10


@dataclass
class Place:
    """Where a test reads files to."""

    name: str
    make: Callable[..., Any]
    """Makes the device, in place of the one before."""

    def read(self, files: ArchiveFiles, wanted: Any, **arguments: Any) -> Arrays:
        return files.read_many(wanted, self.name, **arguments)

    @property
    def is_cpu(self) -> bool:
        return self.name == "cpu"


KINDS: dict[str, dict[str, object]] = {
    "bit": {"codec": Codec.GOMPRESSO_BIT, "dictionary_size": 0},
    "byte": {"codec": Codec.GOMPRESSO_BYTE},
    "parts": {"codec": Codec.GOMPRESSO_BIT, "part_size": 5 * BLOCK_SIZE + 1000, "dictionary_size": 0},
    "text": {"codec": Codec.GOMPRESSO_TADOC},
    "dictionary": OPTIONS,
}


def on_host(data: Any) -> NDArray[np.uint8]:
    return data.get() if hasattr(data, "get") else np.asarray(data)


def check(arrays: Arrays, expected: list[bytes]) -> None:
    data = on_host(arrays.data)
    assert arrays.offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert [data[start:end].tobytes() for start, end in pairwise(arrays.offsets)] == expected
