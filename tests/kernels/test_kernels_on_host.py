"""Runs the CUDA kernels on the CPU under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from native_builds import run_kernels_program
from oracle.payload import read_payload
from payloads import CODECS, CORPUS, contents, encode
from tool_modules import tool_module

from gompfs.codec import Codec


@pytest.fixture(scope="session")
def run_kernels() -> Path:
    """The program that decodes with the kernels."""
    return run_kernels_program()


def run(program: Path, command: str, codec: Codec, payloads: Sequence[tuple[bytes, int]]) -> bytes:
    """Returns the output of the program for payloads and the sizes of their contents."""
    request = b"".join(struct.pack("<II", len(payload), size) + payload for payload, size in payloads)
    done = subprocess.run([program, command, str(int(codec))], input=request, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def decode(program: Path, codec: Codec, payloads: Sequence[tuple[bytes, int]]) -> list[bytes | None]:
    """Returns what the kernels decode from each payload, or None if they refuse it."""
    output = run(program, "decode", codec, payloads)
    answers: list[bytes | None] = []
    place = 0
    for _, size in payloads:
        content = output[place + 1 : place + 1 + size]
        answers.append(content if output[place] == 0 else None)
        place += 1 + size
    assert place == len(output)
    return answers


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_kernels_give_the_content(run_kernels: Path, codec: Codec) -> None:
    expected = []
    payloads = []
    for content in contents().values():
        for level, dependency_elimination in ((1, True), (6, True), (6, False), (8, True)):
            coded_as, payload = encode(content, codec, level, dependency_elimination)
            if coded_as is codec:
                expected.append(content)
                payloads.append((payload, len(content)))
    assert len(payloads) > 100
    assert decode(run_kernels, codec, payloads) == expected


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("num_mutations", [240, pytest.param(20_000, marks=pytest.mark.slow)])
def test_kernels_and_core_agree_on_damage(run_kernels: Path, num_mutations: int) -> None:
    done = subprocess.run([run_kernels, "fuzz", str(num_mutations)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    refused = [int(count) for count in re.findall(r"(\d+) of", done.stdout)]
    assert len(refused) == len(CODECS)
    assert min(refused) > num_mutations / 4


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_rounds_are_counted(run_kernels: Path, codec: Codec) -> None:
    """Multi-round resolution counts the same rows, rounds and bytes as its model in Python."""
    nested = tool_module("experiments.nested")
    texts = [(CORPUS / "carroll" / "alice29.txt").read_bytes()[: 1 << 15], bytes(5000)]
    texts += [nested.make_nested(depth, 1 << 14) for depth in nested.DEPTHS]
    payloads = [(encode(text, codec, 6, False)[1], len(text)) for text in texts]
    lines = run(run_kernels, "rounds", codec, payloads).decode().splitlines()
    for line, (payload, size) in zip(lines, payloads, strict=True):
        rows = nested.count_rounds(read_payload(codec, payload, size).sequences)
        bytes_of_round = [sum(row[number] for row in rows if number < len(row)) for number in range(32)]
        assert [int(number) for number in line.split()] == [len(rows), sum(map(len, rows)), *bytes_of_round]
