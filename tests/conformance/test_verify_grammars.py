"""Grammars that can be read but contradict the index or themselves."""

from __future__ import annotations

import stat
from pathlib import Path

from archive_builder import ArchiveBuilder, grammar_part, grammar_section

from gompfs.archive import Archive
from gompfs.codec import Codec, build_block
from gompfs.verify import verify_archive


def test_grammars_that_contradict_the_index(tmp_path: Path) -> None:
    """Grammars of files that do not exist, that occur twice or that continue nothing, and words that contain spaces."""
    part = grammar_part(3, 1, [0], [[1, 0]])
    builder = ArchiveBuilder()
    builder.add_entry(b"folder", stat.S_IFDIR | 0o755)
    builder.add_file(b"sparse", 0, 0)
    builder.statements.append("UPDATE inode SET size = 5 WHERE ino = 3")
    parts = [part, part, grammar_part(99, 0, [], [[0]]), grammar_part(2, 0, [], [[0]], continues=True)]
    section = grammar_section([b"a b"], parts)
    builder.sections["grammar"] = [(build_block(Codec.STORED, section, section).data, len(section))]
    (tmp_path / "a.gomp").write_bytes(builder.build())
    with Archive(tmp_path / "a.gomp") as archive:
        assert [(problem.reason, problem.ino) for problem in verify_archive(archive).problems] == [
            ("segment 0: the grammar has words with separators in them", None),
            ("segment 0: part 3 of the grammar does not continue the last file of the part before", None),
            ("segment 0: the grammar has 1 files that never existed; the first is inode 99", None),
            ("segment 0: the grammar has 1 files twice; the first is inode 3", None),
            ("it is in a grammar and is not a regular file", 2),
            ("it is in a grammar and has holes", 3),
        ]
