"""SHA-256 of the C++ core is that of Python, with the processor's instructions for it and without."""

from __future__ import annotations

import hashlib
import random
import subprocess

from native_builds import sha256_program


def test_all_sizes_and_both_implementations() -> None:
    content = random.Random(1).randbytes(1000)
    done = subprocess.run([sha256_program()], input=content, capture_output=True, check=True)
    expected = [hashlib.sha256(content[:size]).hexdigest() for size in range(len(content) + 1)]
    assert done.stdout.decode().split() == expected
