"""What `add` needs of an index that comes from an archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gompfs.engine import select_engine
from gompfs.errors import CorruptIndexError
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source

Forge = Callable[..., Path]


def test_a_section_of_the_next_segment(forge: Forge, tmp_path: Path) -> None:
    """`add` would give the segment such a section too."""
    path = forge("INSERT INTO section VALUES (1, 'words', 0, 0, x'')")
    before = path.read_bytes()
    (tmp_path / "more").write_text("more and more")
    with pytest.raises(CorruptIndexError, match="belongs to segment 1, which does not exist"):
        add_to_archive(path, [open_source(tmp_path / "more")], PackOptions(), engine=select_engine("cpu"))
    assert path.read_bytes() == before
