"""Finds the CUDA sources and says how they are compiled."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

SHARED_BYTES = {"decode_byte": (0, 1792), "decode_bit": (1024, 6064)}
"""Shared memory of each kernel in bytes: (per CTA, per warp of the CTA)."""

STRATEGY_BYTES_PER_WARP = 128
"""Shared memory in bytes per warp of the experimental kernels.

The kernels of bit_strategies need it in addition to that of decode_bit; the kernels of byte_strategies need only this.
"""

_PACKAGE = Path(__file__).parents[1]


def kernel_folder() -> Path:
    """Returns the folder with `cuda` and `shared`: in an installed package, or next to the package in a source tree."""
    installed = _PACKAGE / "kernels"
    return installed if installed.is_dir() else _PACKAGE.parent / "kernels"


def read_source(kernel: str) -> str:
    """Returns the text of `kernel`.cu, followed by a digest of all headers that it may include.

    CuPy caches compiled kernels by source text and options, but not by the text of included headers. The digest makes
    sure that an edited header is compiled again.
    """
    folder = kernel_folder()
    digest = sha256()
    for header in sorted((*folder.rglob("*.cuh"), *folder.glob("shared/*.h"))):
        digest.update(header.read_bytes())
    return f"{(folder / 'cuda' / f'{kernel}.cu').read_text()}\n// {digest.hexdigest()}\n"


def compile_options() -> tuple[str, ...]:
    """Returns the options for NVRTC: the C++ standard and the include folders."""
    folder = kernel_folder()
    return ("-std=c++17", f"-I{folder / 'cuda'}", f"-I{folder / 'shared'}")
