"""Golden archives through a mount: names, metadata, bytes and word counts are those of their manifests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from manifests import GOLDEN, entry_lines, num_links, read_manifest
from tree_helpers import list_directory


@pytest.mark.parametrize("name", ["tree", "parts", "generations"])
def test_mounted(mount: Callable[..., Any], name: str) -> None:
    mounted = mount(GOLDEN / f"{name}.gomp")
    seen = list_directory(mounted.path)
    assert entry_lines(seen) == [line for line in read_manifest(GOLDEN / f"{name}.manifest") if line.startswith(".")]
    for path, num in num_links(seen).items():
        assert (mounted.path / path.decode("utf-8", "surrogateescape")).lstat().st_nlink == num, path
    assert (mounted / "stats/wordcount").read_bytes() == (GOLDEN / f"{name}.wordcount").read_bytes()
