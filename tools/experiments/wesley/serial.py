"""The serial encoder and decoder of triples, in C++."""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gompfs.errors import GompfsError
from tools.experiments.shared_library import build_library

SIZE_BYTES = 8
_SOURCE = Path(__file__).with_name("triples.cpp")


class BadTriplesError(GompfsError):
    """Triples that no encoder makes."""


def encode(text: bytes) -> bytes:
    """Returns the size and the triples of a text."""
    triples = np.empty(3 * (-(-len(text) // 2)), np.uint8)
    count = _library().encode_triples(text, ctypes.c_size_t(len(text)), _address(triples))
    return struct.pack("<Q", len(text)) + triples[: 3 * count].tobytes()


def decode(encoded: bytes) -> bytes:
    """Returns the text. Raises BadTriplesError if `encoded` is not valid."""
    size, triples = split(encoded)
    text = np.empty(size, np.uint8)
    if not _library().decode_triples(
        _address(triples), ctypes.c_size_t(triples.size // 3), _address(text), ctypes.c_size_t(size)
    ):
        raise BadTriplesError("the triples do not stand for a text of that size")
    return text.tobytes()


def split(encoded: bytes) -> tuple[int, NDArray[np.uint8]]:
    """Returns the size of the text and the bytes of the triples. Raises BadTriplesError if their number is wrong."""
    if len(encoded) < SIZE_BYTES or (len(encoded) - SIZE_BYTES) % 3:
        raise BadTriplesError("the triples are cut off")
    (size,) = struct.unpack_from("<Q", encoded)
    triples = np.frombuffer(encoded, np.uint8)[SIZE_BYTES:]
    if not -(-size // 256) <= triples.size // 3 <= -(-size // 2):
        raise BadTriplesError("there are too few or too many triples")
    return size, triples


def _address(array: NDArray[np.uint8]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@cache
def _library() -> ctypes.CDLL:
    library = build_library([_SOURCE])
    library.encode_triples.restype = ctypes.c_size_t
    library.decode_triples.restype = ctypes.c_bool
    return library
