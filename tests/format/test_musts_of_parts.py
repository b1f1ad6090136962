"""The requirements ("must") of docs/format.md for parts and sections: archives that break them, and reactions.

As in test_musts.py: a broken must is `refused` by the commands that read the affected part, or section 17 permits
readers not to notice it (`excused`), or both, if some commands notice it all the same. `verify` reports each, except
those that show only when words are counted. Requirements for the index that every command refuses are in
tests/archive/test_hostile_index.py.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from forged_index import forge_index
from test_musts import answers
from tree_helpers import add, pack

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.model import PartKind

FORMAT = " ".join((Path(__file__).parents[2] / "docs" / "format.md").read_text().split())
EXCUSES = FORMAT.partition("**Readers need not notice**")[2]
OPTIONS = {
    "codec": Codec.GOMPRESSO_TADOC,
    "block_size": 1 << 14,
    "part_size": 40_000,
}
# The first extent of the file `damaged`
BEGINNING = "file_offset = 0 AND ino = (SELECT ino FROM dirent WHERE name = x'64616d61676564')"
PIECES = "where they and their files begin and end"


class Must(NamedTuple):
    """A requirement: SQL that breaks it, and the commands that refuse it or the sentence that excuses it."""

    statements: tuple[str, ...]
    refused: tuple[str, ...] = ()
    excused: str = ""


def kind_of_first_text(kind: PartKind) -> str:
    return f"UPDATE segment SET part_kinds = CAST(x'{kind:02x}' || substr(part_kinds, 2) AS BLOB) WHERE number = 1"


def dictionary_with(columns: str, *, segment: int) -> str:
    """Returns SQL that makes a dictionary of the section `words` of a segment."""
    return f"INSERT INTO section SELECT {columns} FROM section WHERE segment = {segment}"


MUSTS = {
    "a head in a part of kind 0": Must(
        (kind_of_first_text(PartKind.DATA),), ("stats",), "a part whose kind does not fit its head"
    ),
    "a head in a part of kind 1": Must(
        (kind_of_first_text(PartKind.TEXT),), excused="a part whose kind does not fit its head"
    ),
    "no head in a part of kind 2": Must(
        ("UPDATE segment SET part_kinds = CAST(x'02' || substr(part_kinds, 2) AS BLOB) WHERE number = 0",),
        excused="a part whose kind does not fit its head",
    ),
    "a part of kind 3 in an archive without a dictionary": Must(
        ("UPDATE segment SET part_kinds = CAST(x'03' || substr(part_kinds, 2) AS BLOB) WHERE number = 0",),
        ("extract",),
    ),
    "a dictionary of segment 1": Must(
        (dictionary_with("segment, 'dictionary', uncompressed_size, archive_offset, compressed_sizes", segment=1),),
        excused="a section `dictionary` of another segment than 0",
    ),
    "a dictionary of another size than its blocks": Must(
        (dictionary_with("segment, 'dictionary', uncompressed_size + 1, archive_offset, compressed_sizes", segment=0),),
        excused="a size of the dictionary that is not that of its blocks",
    ),
    "a section that has the bytes of another": Must(
        ("INSERT INTO section SELECT segment, 'more', 1, archive_offset + 16, x'20000000' FROM section",),
        excused="overlaps of blocks of different segments, sections and heads",
    ),
    "an extent over two parts": Must(
        (f"UPDATE extent SET stream_offset = stream_offset + 1 WHERE {BEGINNING}",),
        ("cat", "extract", "stats"),
    ),
    "an extent that is not a piece": Must(
        (f"UPDATE extent SET stream_offset = stream_offset + 1, size = size - 1 WHERE {BEGINNING}",),
        ("stats",),
        PIECES,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive whose segment 0 has data, and segment 1 text: the file `damaged` over more than one part."""
    path = tmp_path_factory.mktemp("musts")
    rng = random.Random(3)
    (path / "data").mkdir()
    (path / "text").mkdir()
    (path / "data/sound").write_bytes(bytes(rng.randbytes(5000)))
    words = [rng.randbytes(3).hex().encode() for _ in range(200)]
    (path / "text/damaged").write_bytes(b" ".join(rng.choices(words, k=10_000)))
    (path / "text/other").write_bytes(b" ".join(rng.choices(words, k=500)) + b"\n")
    pack(path / "a.gomp", path / "data", **OPTIONS)
    add(path / "a.gomp", path / "text", **OPTIONS)
    return path / "a.gomp"


def test_the_sound_archive_passes(sound: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Archive(sound) as archive:
        data, text = archive.segments
        assert set(data.parts.kinds) == {PartKind.DATA}
        assert list(text.parts.kinds) == [PartKind.GRAMMAR] * 2
        assert [section.kind for section in archive.sections] == ["words", "words"]
    found = answers(sound, tmp_path / "out", capfd)
    assert {command: status for command, (status, _, _) in found.items() if status} == {}


@pytest.mark.parametrize("name", MUSTS)
def test_must(name: str, sound: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    must = MUSTS[name]
    path = Path(shutil.copy(sound, tmp_path))
    forge_index(path, *must.statements)
    found = answers(path, tmp_path / "out", capfd)
    for command, (status, _, errors) in found.items():
        assert "internal error" not in errors
        assert "Traceback" not in errors
        if command != "verify" or must.excused != PIECES:
            assert (command in must.refused or command == "verify") == (status == 1), (command, errors)
        assert command == "verify" or errors.count("\n") == status
    assert must.excused in EXCUSES
    assert must.refused or must.excused
