"""Where the CUDA sources are, and how they are compiled."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

SHARED_BYTES = {"decode_byte": (0, 1792), "decode_bit": (1024, 6064)}
"""Shared memory of each kernel: bytes for a CTA, and for each of its warps."""

STRATEGY_BYTES_PER_WARP = 128
"""Shared memory that kernels of bit_strategies take beside that of decode_bit, and those of byte_strategies alone."""

_PACKAGE = Path(__file__).parents[1]


def kernel_folder() -> Path:
    """The folder that holds `cuda` and `shared`: in the package, or beside it in a source tree."""
    installed = _PACKAGE / "kernels"
    return installed if installed.is_dir() else _PACKAGE.parent / "kernels"


def read_source(kernel: str) -> str:
    """The text of the file `kernel`.cu of a kernel, and a digest of all that it may include.

    CuPy finds a kernel that it compiled before by this text and the options: without the digest, it would take one
    that was compiled from older headers.
    """
    folder = kernel_folder()
    digest = sha256()
    for header in sorted((*folder.rglob("*.cuh"), *folder.glob("shared/*.h"))):
        digest.update(header.read_bytes())
    return f"{(folder / 'cuda' / f'{kernel}.cu').read_text()}\n// {digest.hexdigest()}\n"


def compile_options() -> tuple[str, ...]:
    """Options for NVRTC: the language, and where the sources include from."""
    folder = kernel_folder()
    return ("-std=c++17", f"-I{folder / 'cuda'}", f"-I{folder / 'shared'}")
