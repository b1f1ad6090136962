"""Checks of an index in C++ (native/index), before SQLite reads it. The GIL is released."""

from collections.abc import Sequence

from typing_extensions import Buffer

def check_pages(image: Buffer, roots: Sequence[tuple[int, int]]) -> None:
    """Checks that the pages of a SQLite image form b-trees whose keys ascend, and that no page is used twice.

    `roots` are the root page and the number of key fields of each b-tree other than that of the schema. Raises
    ValueError, naming what is wrong. See native/index/pages.h.
    """
