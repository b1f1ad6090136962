"""Writes the type stubs of gompfs._native, which CMake has built. Usage: stubs.py FOLDER_OF_THE_MODULE STUBS.

nanobind has all signatures and docstrings in the module. The stubs are installed beside it, as gompfs/_native/*.pyi.
"""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path

from nanobind.stubgen import StubGen


def main() -> None:
    """Imports the module from the folder, and writes a stub for it and for each of its submodules."""
    built, stubs = Path(sys.argv[1]), Path(sys.argv[2])
    package = types.ModuleType("gompfs")  # not the package of the sources, which needs its dependencies
    package.__path__ = [str(built), str(Path(__file__).parents[1] / "gompfs")]
    sys.modules["gompfs"] = package
    native = importlib.import_module("gompfs._native")
    submodules = {name: module for name, module in vars(native).items() if isinstance(module, types.ModuleType)}
    stubs.mkdir(parents=True, exist_ok=True)
    for name, module in {"__init__": native, **submodules}.items():
        generator = StubGen(module)
        generator.put(module)
        (stubs / f"{name}.pyi").write_text(generator.get())


if __name__ == "__main__":
    main()
