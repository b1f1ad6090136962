"""Triples: the kernels give the bytes of the serial programs, and these obey the rules of the format."""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from host_device import HostDevice
from hypothesis import given, settings
from hypothesis import strategies as st
from native_builds import kernel_library
from tool_modules import ROOT, tool_module

# Nothing but changes of tools/experiments/wesley can break them; test_experiments_on_host.py runs the whole experiment.
pytestmark = pytest.mark.slow
serial = tool_module("experiments.wesley.serial")
encoder = tool_module("experiments.wesley.encoder")
decoder = tool_module("experiments.wesley.decoder")
graphs = tool_module("experiments.wesley.graphs")
made_data = tool_module("experiments.wesley.made_data")
ROOTS = (decoder.find_by_jumping, decoder.find_by_tiles)
MARKS = (encoder.mark_by_chains, encoder.mark_by_maps)
PIECES = (b"a", b"b", b"ab", b"abcabc", bytes(40), bytes(range(200)))
ALICE = Path(ROOT, "examples", "corpus", "carroll", "alice29.txt")


@pytest.fixture(scope="module")
def device() -> HostDevice:
    return HostDevice(kernel_library())


@functools.cache
def texts() -> dict[str, bytes]:
    rng = random.Random(1)
    return {
        "empty": b"",
        "one byte": b"a",
        "two bytes": b"ab",
        "three bytes": b"aaa",
        "zeros": bytes(5000),
        "random": rng.randbytes(2049),
        "two letters": bytes(rng.choices(b"ab", k=4097)),
        "periods of 255 and 256": (once := rng.randbytes(255)) * 3 + (twice := rng.randbytes(256)) * 3 + once + twice,
        "text": ALICE.read_bytes()[:12_000],
        "graph": graphs.grid_graph(24),
        "genome": made_data.genome(3000),
        "bitmap": made_data.bitmap(24, num_discs=3),
        "more than a group of tiles": made_data.genome(4096) * 65 + b"end",
    }


def encode_slowly(text: bytes) -> bytes:
    """The encoder's rules, from the definition."""
    triples = bytearray(struct.pack("<Q", len(text)))
    position = 0
    while position < len(text):
        best = (1, 0)
        limit = min(255, len(text) - position - 1)
        for distance in range(1, min(255, position) + 1):
            length = 0
            while length < limit and text[position + length] == text[position + length - distance]:
                length += 1
            best = max(best, (length, distance))
        length, distance = best
        if length >= 2:
            triples += bytes([distance, length, text[position + length]])
            position += length + 1
        else:
            triples += bytes([0, *text[position + 1 : position + 2].ljust(1, b"\0"), text[position]])
            position += 2
    return bytes(triples)


def encode(device: HostDevice, text: bytes, marks: Callable[..., object]) -> bytes:
    triples = encoder.encode(device, np.frombuffer(text, np.uint8), marks)
    return struct.pack("<Q", len(text)) + triples.tobytes()


def decode(device: HostDevice, encoded: bytes) -> bytes:
    """Decodes in both ways, which must agree."""
    size, triples = serial.split(encoded)
    texts = []
    for roots in ROOTS:
        try:
            texts.append(decoder.decode(device, triples, size, roots).tobytes())
        except serial.BadTriplesError as error:
            texts.append(error)
    if all(isinstance(text, serial.BadTriplesError) for text in texts):
        raise texts[0]
    assert texts[0] == texts[1]
    return texts[0]


@pytest.mark.parametrize("name", texts())
def test_serial_and_parallel(device: HostDevice, name: str) -> None:
    text = texts()[name]
    encoded = serial.encode(text)
    assert encoded == encode_slowly(text)
    assert serial.decode(encoded) == text
    for marks in MARKS:
        assert encode(device, text, marks) == encoded
    assert decode(device, encoded) == text


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map(b"".join))
def test_any_text(device: HostDevice, text: bytes) -> None:
    encoded = serial.encode(text)
    assert encoded == encode_slowly(text)
    for marks in MARKS:
        assert encode(device, text, marks) == encoded
    assert serial.decode(encoded) == decode(device, encoded) == text


def test_hand_made_triples(device: HostDevice) -> None:
    """Two bytes, the second one first; a match of six bytes that overlaps itself; a last byte alone."""
    encoded = struct.pack("<Q", 10) + bytes([0, *b"ba", 2, 6, *b"c", 0, 0, *b"d"])
    assert serial.decode(encoded) == decode(device, encoded) == b"ababababcd"
    assert serial.encode(b"ababababcd") == encoded


def test_damaged_triples(device: HostDevice) -> None:
    """The decoders refuse the same triples, and agree on all others."""
    rng = random.Random(2)
    encoded = serial.encode(ALICE.read_bytes()[:3000])
    refused = 0
    for _ in range(300):
        damaged = bytearray(encoded)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(damaged)) if rng.random() < 0.8 else 0] = rng.randrange(256)
        results = []
        for each in (serial.decode, lambda data: decode(device, data)):
            try:
                results.append(each(bytes(damaged)))
            except serial.BadTriplesError:
                results.append(None)
        assert results[0] == results[1]
        refused += results[0] is None
    assert 20 < refused < 280
    for cut in (0, 7, len(encoded) - 1, len(encoded) - 3):
        with pytest.raises(serial.BadTriplesError):
            serial.decode(encoded[:cut])


def test_graphs() -> None:
    """Each edge is there in both directions; rows are sorted."""
    for graph in (graphs.grid_graph(8), graphs.random_geometric_graph(9)):
        numbers = np.frombuffer(graph, np.int32)
        num_nodes, num_edges = numbers[:2].tolist()
        starts, targets = numbers[2 : num_nodes + 3], numbers[num_nodes + 3 :]
        assert starts[0] == 0
        assert starts[-1] == num_edges == targets.size > 2 * num_nodes
        sources = np.repeat(np.arange(num_nodes), np.diff(starts))
        edges = list(zip(sources.tolist(), targets.tolist(), strict=True))
        assert edges == sorted(set(edges))
        assert {(target, source) for source, target in edges} == set(edges)
        assert all(source != target for source, target in edges)
