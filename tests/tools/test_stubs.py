"""The type stubs of gompfs._native that tools/stubs.py writes in the build."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType

import pytest

import gompfs
from gompfs import _native

SUBMODULES = {name: module for name, module in vars(_native).items() if isinstance(module, ModuleType)}
STUBS = Path(gompfs.__file__).parent / "_native"


def test_each_submodule_has_a_stub() -> None:
    assert len(SUBMODULES) > 5
    assert {path.stem for path in STUBS.iterdir()} == {"__init__", *SUBMODULES}


@pytest.mark.parametrize("name", SUBMODULES)
def test_stubs_name_no_type_of_cpp(name: str) -> None:
    """A class must be added to the module before a function whose signature names it."""
    stub = (STUBS / f"{name}.pyi").read_text()
    documented = {node.name for node in ast.walk(ast.parse(stub)) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert {entry for entry in vars(SUBMODULES[name]) if callable(getattr(SUBMODULES[name], entry))} <= documented
    assert "::" not in stub
