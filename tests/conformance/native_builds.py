"""C++ programs and libraries of the tests, which are built with sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
_INCLUDES = [
    ROOT / "native",
    ROOT / "kernels",
    ROOT / "tools" / "experiments" / "kernels",
    Path(__file__).parent,
]
_SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]


def core_sources(folders: str = "*") -> list[Path]:
    """Returns the sources of the C++ core, without the Python modules."""
    return [path for path in sorted((ROOT / "native").glob(f"{folders}/*.cpp")) if path.parent.name != "bindings"]


def _compiler() -> str:
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    assert compiler is not None, "the tests need a C++ compiler"
    return compiler


def build_sanitized(program: Path, sources: Sequence[Path]) -> Path:
    """Compiles and links `program` with AddressSanitizer and UndefinedBehaviorSanitizer."""
    compiler = _compiler()
    objects = [program.with_name(f"{program.name}-{number}.o") for number in range(len(sources))]
    flags = ["-std=c++20", "-O1", "-g1", *_SANITIZERS, *(f"-I{folder}" for folder in _INCLUDES)]
    running: list[subprocess.Popen[bytes]] = []
    for source, target in zip(sources, objects, strict=True):
        running.append(subprocess.Popen([compiler, *flags, "-c", source, "-o", target]))
        if len(running) >= 2:
            assert running.pop(0).wait() == 0
    assert all(process.wait() == 0 for process in running)
    subprocess.run([compiler, *_SANITIZERS, "-o", program, *objects, "-pthread"], check=True)
    return program


def build_library(library: Path, source: Path, *, sanitized: bool = False) -> Path:
    """Compiles a shared library of kernels for the host.

    With `sanitized`, its process needs `sanitizer_environment`.
    """
    flags = ["-std=c++20", "-O1", "-g1", "-fPIC", "-shared", *(_SANITIZERS if sanitized else [])]
    sources = [source, ROOT / "kernels" / "host" / "cuda_on_host.cpp"]
    subprocess.run([_compiler(), *flags, *(f"-I{folder}" for folder in _INCLUDES), *sources, "-o", library], check=True)
    return library


def sanitizer_environment() -> dict[str, str]:
    """Returns the environment for a Python process that loads a sanitized library."""
    found = subprocess.run([_compiler(), "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return {**os.environ, "LD_PRELOAD": found.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0"}
