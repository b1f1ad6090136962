"""What the format leaves room for: required features, reserved bytes, and an archive that begins later in its file."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from test_trailers import links_of, names
from tree_helpers import add, list_archive
from xxhash import xxh3_64_intdigest as xxh3

from gompfs.archive import Archive
from gompfs.engine import select_engine
from gompfs.errors import ArchiveFormatError, UnsupportedFormatError
from gompfs.format import Footer, LocalFile
from gompfs.pack.repair import repair_archive
from gompfs.verify import verify_archive


@pytest.mark.parametrize(("copies", "feature"), [((0,), 7), ((1,), 0), ((0, 1), 31)])
def test_a_feature_that_is_needed(added: Path, copies: tuple[int, ...], feature: int) -> None:
    """Nothing shows an earlier generation instead, or takes the footer for damaged."""
    position = links_of(added)[-1].position
    for copy in (0, 1):
        content = bytearray(added.read_bytes())
        at = position.footer_offset(copy)
        if copy in copies:
            content[at : at + 96] = Footer.from_bytes(content[at : at + 96])._replace(features=1 << feature).to_bytes()
        else:
            content[at] ^= 1
        added.write_bytes(content)

    def read() -> None:
        with Archive(added) as archive:
            verify_archive(archive)

    uses = read, lambda: add(added, added.parent / "file-2"), lambda: list(repair_archive(added))
    for use in uses:
        with pytest.raises(UnsupportedFormatError) as caught:
            use()
        needed = f"needs feature {feature}, which this gompfs does not have; a newer gompfs reads it"
        assert str(caught.value) == f"{added}: {needed}"
    assert added.read_bytes() == content


@pytest.mark.parametrize("start", [1, 64, 100_003])
def test_an_archive_that_begins_later_in_its_file(added: Path, start: int) -> None:
    added.write_bytes(bytes(start) + added.read_bytes())
    for engine in ("cpu", "auto"):
        with Archive(added, file=LocalFile.open(added, start), engine=select_engine(engine)) as archive:
            assert archive.warnings == []
            assert verify_archive(archive).is_sound
            assert list_archive(archive)[b"file-3"].content == random.Random(3).randbytes(50_000)
    for other, reason in ((start - 1, "not a gompfs archive"), (1 << 70, f"the file ends before offset {1 << 70}")):
        with pytest.raises(ArchiveFormatError, match=reason):
            Archive(added, file=LocalFile.open(added, other))


def test_reserved_bytes_without_a_feature(added: Path) -> None:
    """A later release may use those of the superblock and of headers, and says so by a feature if readers must know."""
    content = bytearray(added.read_bytes())
    for start, field in ((0, 48), (links_of(added)[-1].start, 12), (links_of(added)[-1].start, 55)):
        content[start + field] ^= 1
        content[start + 56 : start + 64] = xxh3(content[start : start + 56]).to_bytes(8, "little")
    added.write_bytes(content)
    assert names(added) == {b"file-2", b"file-3"}
