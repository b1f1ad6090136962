"""A search in the daemon of a mount ends when the program that asked for it does, and with the mount."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from asked_daemon import Asked, wait_until_answered
from tree_helpers import pack

from gompfs.codec import Codec
from gompfs.search.query import SearchQuery

if TYPE_CHECKING:
    from conftest import Mount

MountArchive = Callable[..., "Mount"]

SEARCHES_AT_ONCE = 4
SLOW = [
    SearchQuery((rb"((a{0,1000}){0,1000})b",)),  # with callouts
    SearchQuery((rb"\p{L}{5000}\p{N}",)),  # in many calls of PCRE2
    SearchQuery((rb"\p{L}{5000}\p{N}",), multiline=True),
    SearchQuery((rb"([ab]+)+[!,]$",), word_regexp=True),
    SearchQuery((rb"((a{0,1000}){0,1000})b|a",), only_matching=True, replace=b"$1"),
    SearchQuery((rb"a",), replace=b"$0" * 30_000),
]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of long lines: a file that is searched on one thread, and one that all threads search."""
    root = tmp_path_factory.mktemp("slow")
    (root / "tree").mkdir()
    (root / "tree" / "line").write_text("a" * 2_000_000 + "\n")
    (root / "tree" / "lines").write_text(("a" * 2_999_999 + "\n") * 6)
    pack(root / "tree.gomp", root / "tree", codec=Codec.GOMPRESSO_TADOC)
    return root / "tree.gomp"


@pytest.mark.parametrize("query", SLOW, ids=[str(number) for number in range(len(SLOW))])
def test_a_search_ends_with_its_client(mounted: Path, query: SearchQuery) -> None:
    """All turns are free soon after those who hold them have gone."""
    clients = [Asked(mounted) for _ in range(SEARCHES_AT_ONCE)]
    for client in clients:
        client.send(query)
    time.sleep(0.5)  # until they search
    for client in clients:
        client.connection.close()
    wait_until_answered(mounted)


def test_a_search_ends_with_the_mount(archive: Path, mount: MountArchive) -> None:
    mounted = mount(archive)
    clients = [Asked(mounted.path) for _ in range(SEARCHES_AT_ONCE)]
    for client in clients:
        client.send(SLOW[0])
    time.sleep(0.5)
    assert mounted.stop() == 0
    for client in clients:
        client.connection.close()
