"""The installed package on a processor of 2008, without AVX and SHA instructions, which QEMU emulates.

Archives have the same bytes, and what is read and found in them is the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tree_helpers import PACKAGE_PARENT

QEMU = shutil.which("qemu-x86_64-static") or shutil.which("qemu-x86_64")
SCRIPT = """
import hashlib, os, sys
import gompfs

source, target = sys.argv[1:]
for codec in ("gompresso-bit", "gompresso-byte", "gompresso-tadoc"):
    gompfs.pack_archive([source], target, codec=codec, force=True)
    print(codec, hashlib.sha256(open(target, "rb").read()).hexdigest())
    with gompfs.open(target, verify=True) as files:
        names = [name for name in files.listdir() if files.isfile(name)]
        print(hashlib.sha256(b"".join(map(files.read, names))).hexdigest())
        for patterns in (["decode"], ["block", "bits", "literal"], ["[A-Z][a-z]+Error"]):
            print(len(list(files.grep(*patterns))))
"""


@pytest.mark.slow
@pytest.mark.skipif(QEMU is None, reason="needs qemu-x86_64 (Debian: qemu-user-static)")
def test_same_results(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": PACKAGE_PARENT}
    source = Path(PACKAGE_PARENT) / "gompfs/codec"
    outputs = []
    for emulator in ([], [QEMU, "-cpu", "Nehalem", "-0", sys.executable]):
        python = os.path.realpath(sys.executable) if emulator else sys.executable
        command = [*emulator, python, "-P", "-c", SCRIPT, source, tmp_path / "a.gomp"]
        outputs.append(subprocess.run(command, capture_output=True, check=True, env=environment).stdout)
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 15
