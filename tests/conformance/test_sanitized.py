"""10,000 damaged inputs to each decoder of the C++ core, under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NUM_MUTATIONS = 10_000
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]


@pytest.mark.timeout(400)
def test_no_damage_reaches_out_of_bounds(tmp_path: Path) -> None:
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    assert compiler is not None, "the tests need a C++ compiler"
    sources = [
        *(path for path in sorted((ROOT / "kernels" / "cpu").glob("*/*.cpp")) if path.name != "module.cpp"),
        Path(__file__).with_name("fuzz.cpp"),
    ]
    includes = [f"-I{ROOT / 'kernels' / 'cpu'}", f"-I{ROOT / 'kernels' / 'shared'}"]
    objects = [tmp_path / f"{number}.o" for number in range(len(sources))]
    flags = ["-std=c++20", "-O1", "-g1", *SANITIZERS]
    running = []
    for source, target in zip(sources, objects, strict=True):
        running.append(subprocess.Popen([compiler, *flags, *includes, "-c", source, "-o", target]))
        if len(running) >= 2:
            assert running.pop(0).wait() == 0
    assert all(process.wait() == 0 for process in running)
    program = tmp_path / "fuzz"
    subprocess.run([compiler, *SANITIZERS, "-o", program, *objects, "-pthread"], check=True)
    result = subprocess.run([program, str(NUM_MUTATIONS)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    refused = [int(count) for count in re.findall(r"(\d+) of", result.stdout)]
    assert len(refused) == 4
    assert min(refused) > NUM_MUTATIONS / 4
