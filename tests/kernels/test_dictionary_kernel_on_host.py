"""Runs the kernel of gompresso-bit-dictionary on the CPU under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import random
import re
import struct
import subprocess

import pytest
from native_builds import run_dictionary_kernel_program
from payload_builder import build_bit
from test_dictionary_payloads import TEXT, decode, encode, random_dictionary_payload

from gompfs._native import codec as native
from gompfs.gpu.decode.head_store import pack_head


def decode_by_kernel(dictionary: bytes, payloads: list[tuple[bytes, int]]) -> list[bytes | None]:
    """Returns what the kernel decodes from payloads with the sizes of their contents, or None if it refuses one."""
    packed = pack_head(native.Dictionary(dictionary).table).tobytes()
    request = [struct.pack("<I", len(packed)), packed]
    for payload, size in payloads:
        request += [struct.pack("<II", len(payload), size), payload]
    program = [run_dictionary_kernel_program(), "decode"]
    done = subprocess.run(program, input=b"".join(request), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    answers: list[bytes | None] = []
    position = 0
    for _, size in payloads:
        content = done.stdout[position + 1 : position + 1 + size]
        answers.append(None if done.stdout[position] else content)
        position += 1 + size
    assert position == len(done.stdout)
    return answers


@pytest.mark.timeout(1200)
def test_the_kernel_gives_the_content() -> None:
    dictionary = TEXT[70_000:]
    contents = [TEXT[:20_000], TEXT[:100] * 3, TEXT[1000:1500], bytes(5000)]
    for level, eliminates in ((1, True), (6, True), (6, False), (8, True)):
        payloads = [
            (encode(content, dictionary, level, eliminates=eliminates)[1], len(content)) for content in contents
        ]
        assert decode_by_kernel(dictionary, payloads) == contents


@pytest.mark.timeout(1200)
def test_the_kernel_decodes_payloads_that_the_encoder_never_writes() -> None:
    """Among them are addresses that end after the dictionary."""
    rng = random.Random(9)
    num_refused = 0
    for _ in range(25):
        decoded, size = random_dictionary_payload(rng)
        payload = build_bit(decoded, rng)
        if len(payload) > size:
            continue
        for dictionary in (decoded.dictionary, decoded.dictionary[: len(decoded.dictionary) // 2]):
            expected = decode(payload, size, dictionary)
            assert decode_by_kernel(dictionary, [(payload, size)]) == [expected]
            num_refused += expected is None
    assert num_refused > 5


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("num_mutations", [200, pytest.param(20_000, marks=pytest.mark.slow)])
def test_the_kernel_and_the_core_agree_on_damage(num_mutations: int) -> None:
    program = [run_dictionary_kernel_program(), "fuzz", str(num_mutations)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    refused = re.search(r"(\d+) of", done.stdout)
    assert refused is not None
    assert int(refused[1]) > num_mutations / 4
