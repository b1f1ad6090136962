"""C++ programs and libraries of the tests. Each is built once and kept in build/tests, for later runs as well.

The name of a file there is a digest of everything that it was made from: the compiler, the flags, the source and all
headers. So a changed source gives another file. Test processes that need the same file wait for each other. Files that
no test has used for a week are deleted. As a program, this module builds all of them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CACHE = ROOT / "build" / "tests"
_SECONDS_KEPT = 7 * 24 * 3600
_INCLUDES = [
    ROOT / "native",
    ROOT / "kernels",
    ROOT / "tools" / "experiments" / "kernels",
    ROOT / "tests" / "native",
    ROOT / "tests" / "kernels",
]
_FLAGS = ["-std=c++20", "-O1", "-g1", "-fPIC", *(f"-I{folder}" for folder in _INCLUDES)]
_SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
_TESTS_OF_KERNELS = ROOT / "tests" / "kernels"
_CUDA_ON_HOST = ROOT / "kernels" / "host" / "cuda_on_host.cpp"
_PART_READERS = ("head_arrays", "head_reader", "symbol_pool", "word_section")
_HOST_KERNELS = [_TESTS_OF_KERNELS / "host_kernels.cpp", _CUDA_ON_HOST]


def fuzz_program() -> Path:
    """Returns fuzz.cpp as a program with AddressSanitizer and UndefinedBehaviorSanitizer."""
    core = _core_sources("codec", "common")
    return _link([*core, Path(__file__).with_name("fuzz.cpp")], ["-pthread"], sanitized=True)


def tadoc_program() -> Path:
    """Returns tadoc_outcomes.cpp, which decodes parts of text, as a program with the same sanitizers."""
    readers = [ROOT / "native/text" / f"{name}.cpp" for name in _PART_READERS]
    sources = [*_core_sources("codec", "common"), *readers, Path(__file__).with_name("tadoc_outcomes.cpp")]
    return _link(sources, ["-pthread"], sanitized=True)


def item_rows_program() -> Path:
    """Returns item_rows_check.cpp, which decodes random items in two ways, as a program with the same sanitizers."""
    sources = [*_core_sources("codec"), Path(__file__).with_name("item_rows_check.cpp")]
    return _link(sources, [], sanitized=True)


def sha256_program() -> Path:
    """Returns sha256_check.cpp, which prints SHA-256 of prefixes of its input, with the same sanitizers."""
    sources = [ROOT / "native/common/sha256.cpp", Path(__file__).with_name("sha256_check.cpp")]
    return _link(sources, [], sanitized=True)


def wrong_encoder_program() -> Path:
    """Returns wrong_encoder_check.cpp, which builds parts with a wrong encoder, with the same sanitizers."""
    core = _core_sources("codec", "common", "text")
    sources = [path for path in core if path.name != "tadoc_encoder.cpp"]
    return _link([*sources, Path(__file__).with_name("wrong_encoder_check.cpp")], ["-pthread"], sanitized=True)


def kernel_mistakes_program() -> Path:
    """Returns kernel_mistakes.cpp, whose kernels have mistakes, with the same sanitizers."""
    return _link([_CUDA_ON_HOST, _TESTS_OF_KERNELS / "kernel_mistakes.cpp"], [], sanitized=True)


def kernel_library(*, sanitized: bool = False) -> Path:
    """Returns the shared library of host_kernels.cpp, which runs CUDA kernels on the CPU.

    With `sanitized`, its process needs `sanitizer_environment`.
    """
    return _link(_HOST_KERNELS, ["-shared"], sanitized=sanitized)


def sanitizer_environment() -> dict[str, str]:
    """Returns the environment for a Python process that loads a sanitized library."""
    found = subprocess.run([_compiler(), "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return {**os.environ, "LD_PRELOAD": found.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0"}


def _core_sources(*folders: str) -> list[Path]:
    """Returns the sources in folders of the C++ core."""
    return [path for folder in folders for path in sorted((ROOT / "native" / folder).rglob("*.cpp"))]


def _link(sources: Sequence[Path], options: Sequence[str], *, sanitized: bool) -> Path:
    sanitizers = _SANITIZERS if sanitized else []
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as executor:
        objects = list(executor.map(lambda source: _compile(source, sanitizers), sources))
    command = [_compiler(), *sanitizers, *map(str, objects), *options]
    return _cached(command, [], lambda target: subprocess.run([*command, "-o", target], check=True))


def _compile(source: Path, sanitizers: Sequence[str]) -> Path:
    command = [_compiler(), *_FLAGS, *sanitizers, "-c", str(source)]
    files = [source.read_bytes(), _headers(), _compiler_version()]
    return _cached(command, files, lambda target: subprocess.run([*command, "-o", target], check=True))


def _cached(command: Sequence[str], files: Sequence[bytes], make: Callable[[Path], object]) -> Path:
    """Returns the file that `make(path)` writes for a command and the content of its input files."""
    digest = sha256("\0".join(command).encode())
    for content in files:
        digest.update(sha256(content).digest())
    target = _CACHE / digest.hexdigest()
    _CACHE.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _delete_unused()
            partial = target.with_suffix(".o")  # the linker tells by the name what the file is
            make(partial)
            partial.rename(target)
        os.utime(target)
    return target


def _delete_unused() -> None:
    now = time.time()
    for path in _CACHE.iterdir():
        try:
            if now - path.stat().st_mtime > _SECONDS_KEPT:
                path.unlink()
        except FileNotFoundError:
            pass  # another process has deleted it


@cache
def _compiler() -> str:
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    assert compiler is not None, "the tests need a C++ compiler"
    return compiler


@cache
def _compiler_version() -> bytes:
    return subprocess.run([_compiler(), "--version"], capture_output=True, check=True).stdout


@cache
def _headers() -> bytes:
    """Returns a digest of all files that a source may include."""
    paths = {path for folder in _INCLUDES for suffix in ("h", "cuh", "cu") for path in folder.rglob(f"*.{suffix}")}
    digest = sha256()
    for path in sorted(paths):
        digest.update(str(path).encode() + path.read_bytes())
    return digest.digest()


def run_cases_sanitized(module: str, *arguments: str) -> str:
    """Runs a module of the tests with the sanitized `kernel_library` and returns what it prints."""
    path = os.pathsep.join(path for path in sys.path if path)
    environment = {**sanitizer_environment(), "PYTHONMALLOC": "malloc", "PYTHONPATH": path}
    program = [sys.executable, "-P", "-m", module, kernel_library(sanitized=True), *arguments]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


if __name__ == "__main__":
    kernel_library()
    kernel_library(sanitized=True)
    kernel_mistakes_program()
    fuzz_program()
    tadoc_program()
    item_rows_program()
    sha256_program()
