"""Compiles all kernels for all architectures of GPUs, so that gompfs need not compile them when it first uses a GPU.

    python tools/compile_kernels.py [DIRECTORY]

Needs NVRTC, a library without a driver or a GPU: `pip install nvidia-cuda-nvrtc-cu12`. Without DIRECTORY, the archives
are written to where the gompfs that this Python imports looks for them. A build of gompfs runs this program if
GOMPFS_COMPILED_KERNELS=1 is set.
"""

from __future__ import annotations

import argparse
import ctypes
import ctypes.util
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import metadata
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from gompfs.gpu.device.compiled_kernels import archive_name, compiled_folder, member_name
from gompfs.gpu.device.kernel_sources import compile_options, kernel_folder, read_source

# A cubin also runs on GPUs with a higher minor number: that of 10.0 on 10.3, that of 12.0 on 12.1.
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
# Cubins of CUDA 12 run with drivers of CUDA 12 and later, so they are preferred.
_PACKAGES = ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc")


class CompileError(Exception):
    """NVRTC is missing, or refused a kernel; the text says why."""


class Nvrtc:
    """The compiler of CUDA, as a library."""

    def __init__(self) -> None:
        """Loads NVRTC from its Python package, else from the system. Raises CompileError if there is none."""
        path = next(filter(None, map(_library_of, _PACKAGES)), None) or ctypes.util.find_library("nvrtc")
        if path is None:
            raise CompileError(f"there is no NVRTC: pip install {_PACKAGES[0]}")
        self._library = ctypes.CDLL(path)

    @property
    def version(self) -> str:
        """The version of CUDA that it belongs to, such as 12.9."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._check(self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        return f"{major.value}.{minor.value}"

    def compile(self, kernel: str, source: str, options: Sequence[str]) -> bytes:
        """Returns the cubin of a source text. `kernel` is its name in messages. Raises CompileError."""
        library, program = self._library, ctypes.c_void_p()
        name = f"{kernel}.cu".encode()
        self._check(library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name, 0, None, None))
        try:
            arguments = (ctypes.c_char_p * len(options))(*map(str.encode, options))
            if library.nvrtcCompileProgram(program, len(options), arguments) != 0:
                raise CompileError(self._result(program, "ProgramLog").rstrip(b"\0").decode())
            return self._result(program, "CUBIN")
        finally:
            library.nvrtcDestroyProgram(ctypes.byref(program))

    def _result(self, program: ctypes.c_void_p, what: str) -> bytes:
        """Returns the bytes that nvrtcGet`what` gives."""
        size = ctypes.c_size_t()
        self._check(getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        result = ctypes.create_string_buffer(size.value)
        self._check(getattr(self._library, f"nvrtcGet{what}")(program, result))
        return result.raw

    @staticmethod
    def _check(status: int) -> None:
        if status != 0:
            raise CompileError(f"NVRTC fails with status {status}")


def _library_of(package: str) -> str | None:
    """Returns the path of the library in a Python package, or None if that is not installed."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        return None
    return next((str(file.locate()) for file in files if file.name.startswith("libnvrtc.so")), None)


def kernel_names() -> list[str]:
    """Returns the names of all kernel sources, such as codec/decode_bit."""
    folder = kernel_folder()
    return sorted(str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.cu"))


def compile_kernel(kernel: str, architecture: int) -> bytes:
    """Returns the cubin of a kernel. Raises CompileError."""
    options = (*compile_options(), f"--gpu-architecture=sm_{architecture}")
    return Nvrtc().compile(kernel, read_source(kernel), options)


def compile_all(architectures: Sequence[int], directory: Path) -> None:
    """Writes an archive of all kernels for each architecture, on all cores. Raises CompileError."""
    version = Nvrtc().version
    kernels = kernel_names()
    directory.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as processes:  # NVRTC compiles one program at a time
        for architecture in architectures:
            cubins = processes.map(partial(compile_kernel, architecture=architecture), kernels)
            path = directory / archive_name(architecture)
            _write(path, dict(zip(map(member_name, kernels), cubins, strict=True)), version)
            print(f"{path}: {len(kernels)} kernels, {path.stat().st_size / 1e3:.0f} kB, CUDA {version}")


def _write(path: Path, members: dict[str, bytes], version: str) -> None:
    """Writes an archive, with the same bytes for the same members."""
    part = path.with_suffix(".part")
    with ZipFile(part, "w") as archive:
        archive.comment = f"CUDA {version}".encode()
        for name, content in members.items():
            archive.writestr(ZipInfo(name), content, ZIP_DEFLATED, 9)
    part.replace(path)


def main() -> None:
    """Compiles as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path, default=compiled_folder(), metavar="DIRECTORY")
    parser.add_argument(
        "--architecture", action="append", type=int, metavar="NUMBER", help="only for this one, e.g. 90; repeatable"
    )
    arguments = parser.parse_args()
    try:
        compile_all(arguments.architecture or ARCHITECTURES, arguments.directory)
    except CompileError as error:
        sys.exit(f"compile_kernels: {error}")


if __name__ == "__main__":
    main()
