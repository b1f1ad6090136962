"""Decoding if the system permits no more threads."""

from __future__ import annotations

import subprocess
import sys

_DECODE = """
import resource
from pathlib import Path
from gompfs.codec import BlockStatus, Codec, CodecOptions
from gompfs.engine import select_engine

content = bytes(range(256)) * 256
engine = select_engine("cpu", 64)
block = select_engine("cpu", 1).encode_blocks(content, len(content), CodecOptions(Codec.GOMPRESSO_BYTE))[0].data
out, expected = memoryview(bytearray(64 * len(content))), content * 64
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (20 << 20),) * 2)  # room for two stacks
statuses = engine.decode_blocks([block] * 64, out, verify=True)
print(set(statuses) == {BlockStatus.OK}, out == expected)
"""


def test_decoding_with_fewer_threads_than_requested() -> None:
    """Decoding failed if a pool thread could not be started, as under a limit of processes or of address space."""
    done = subprocess.run([sys.executable, "-P", "-c", _DECODE], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True True\n", "")
