"""Finds the CUDA sources and says how they are compiled."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

SHARED_BYTES = {
    "codec/decode_byte": (0, 1792),
    "codec/decode_bit": (1024, 6144),
    "codec/decode_bit_dictionary": (1024, 6144),
    "codec/decode_tadoc": (0, 2752),
    "codec/open_heads": (14832, 0),
    "encode/encode_bit": (19488, 0),
    "encode/encode_byte": (16, 0),
}
"""Shared memory of each kernel in bytes: (per CTA, per warp of the CTA)."""

STANDARD = "-std=c++17"
"""The option of NVRTC that names the version of C++."""

_PACKAGE = Path(__file__).parents[2]


def kernel_folder() -> Path:
    """Returns the folder of the CUDA sources: in an installed package, or next to the package in a source tree."""
    installed = _PACKAGE / "kernels"
    return installed if installed.is_dir() else _PACKAGE.parent / "kernels"


def read_source(kernel: str, folder: Path | None = None) -> str:
    """Returns the text of `kernel`.cu in `folder` (default: `kernel_folder()`), and a digest of all headers.

    If `kernel` is an absolute path, `folder` does not matter.

    CuPy caches compiled kernels by source text and options, but not by the text of included headers. The digest makes
    sure that an edited header is compiled again.
    """
    folder = folder or kernel_folder()
    return f"{(folder / f'{kernel}.cu').read_text()}\n// {digest_of_headers(kernel_folder(), folder)}\n"


@cache
def digest_of_headers(*folders: Path) -> str:
    """Returns a digest of all headers in folders, except those in `host`, which are for tests and not installed."""
    files = {path for folder in folders for path in folder.rglob("*") if path.suffix in (".cuh", ".h")}
    digest = sha256()
    for header in sorted(files):
        if header.parent.name != "host":
            digest.update(header.read_bytes())
    return digest.hexdigest()


def compile_options() -> tuple[str, ...]:
    """Returns the options for NVRTC: the C++ standard and the include folder."""
    return (STANDARD, f"-I{kernel_folder()}")
