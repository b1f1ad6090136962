from collections.abc import Sequence

from typing_extensions import Buffer

def check_pages(image: Buffer, roots: Sequence[tuple[int, int]]) -> None: ...
