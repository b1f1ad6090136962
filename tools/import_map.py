"""Which package of gompfs imports which, as a table for the documentation, read from the sources."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1] / "gompfs"
_NATIVE = "_native"


def import_map() -> str:
    """Returns a table: each package and module in gompfs/, the others that it imports, and its parts of the C++ core.

    Imports for type checking alone are left out.
    """
    imports: dict[str, set[str]] = defaultdict(set)
    native: dict[str, set[str]] = defaultdict(set)
    for path in sorted(_PACKAGE.rglob("*.py")):
        own = path.relative_to(_PACKAGE).parts[0].removesuffix(".py")
        for names in _imported(ast.parse(path.read_text())):
            imports[own].add(names[0])
            if names[0] == _NATIVE and len(names) > 1:
                native[own].add(names[1])
    rows = ["| package | imports | of `gompfs._native` |", "|---|---|---|"]
    for own in sorted(imports):
        others = imports[own] - {own, _NATIVE, "__version__"}
        if not own.startswith("__") and (others or native[own]):
            rows.append(f"| `{own}` | {', '.join(sorted(others))} | {', '.join(sorted(native[own]))} |")
    return "\n".join(rows)


def _imported(node: ast.AST) -> Iterator[list[str]]:
    """Yields the names below gompfs of everything that a module imports."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return
    if isinstance(node, ast.ImportFrom) and node.module == "gompfs":
        yield from ([alias.name] for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("gompfs."):
        names = node.module.split(".")[1:]
        yield from ([*names, alias.name] for alias in node.names)
    for child in ast.iter_child_nodes(node):
        yield from _imported(child)
