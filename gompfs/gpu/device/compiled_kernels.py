"""Kernels that were compiled before gompfs was installed: a zip archive for each architecture of GPUs.

`tools/compile_kernels.py` writes the archives into `compiled` in the folder of the sources. The name of a member has a
digest of the source, of all headers and of the options, so a kernel that was changed since then is not found. Whatever
is not found, CuPy compiles when it is first used.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

from gompfs.gpu.device.kernel_sources import STANDARD, kernel_folder, read_source
from gompfs.log import Logger

_ARCHIVE_NAME = re.compile(r"sm_(\d+)\.zip")

log = Logger(__name__)


def compiled_folder() -> Path:
    """Returns the folder of the archives, which need not exist."""
    return kernel_folder() / "compiled"


def archive_name(architecture: int) -> str:
    """Returns the file name of the archive for an architecture, which is ten times its major number plus its minor."""
    return f"sm_{architecture}.zip"


def member_name(kernel: str) -> str:
    """Returns the name of a kernel in the archives, such as codec/decode_bit-DIGEST.cubin."""
    digest = sha256(f"{STANDARD}\n{read_source(kernel)}".encode())
    return f"{kernel}-{digest.hexdigest()[:32]}.cubin"


def read_compiled(kernel: str, architecture: int) -> bytes | None:
    """Returns a kernel as a cubin that a GPU of this architecture can execute, or None if there is none.

    A GPU executes cubins for its own architecture, and for those with the same major and a lower minor number.
    """
    found = compiled_folder().glob("sm_*.zip")
    numbers = [int(match[1]) for path in found if (match := _ARCHIVE_NAME.fullmatch(path.name))]
    fitting = [number for number in numbers if number // 10 == architecture // 10 and number <= architecture]
    if not fitting:
        log.debug("%s: there is no compiled kernel for sm_%d", kernel, architecture)
        return None
    path = compiled_folder() / archive_name(max(fitting))
    try:
        with ZipFile(path) as archive:
            return archive.read(member_name(kernel))
    except KeyError:
        log.debug("%s: the compiled kernel in %s is of another version", kernel, path)
    except Exception as error:  # a damaged archive makes zipfile raise many kinds, of struct, zlib and lzma too
        log.warning("%s: the compiled kernel in %s cannot be read: %s", kernel, path, error)
    return None
