"""Statistics count the files that an archive shows, not files that were replaced."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from gompfs.archive import Archive
from gompfs.engine import select_engine
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source, pack_archive
from gompfs.statistics.tasks import compute


def counts(archive: Path) -> bytes:
    with Archive(archive) as opened:
        return compute(b"wordcount", opened).read()


def test_a_later_member_of_the_same_tar(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in (("f", b"old words"), ("g", b"other words"), ("f", b"new words")):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    (tmp_path / "a.tar").write_bytes(stream.getvalue())
    target = tmp_path / "a.gomp"
    pack_archive([open_source(tmp_path / "a.tar")], target, PackOptions(), engine=select_engine("cpu"))
    assert counts(target) == b"words\t2\nnew\t1\nother\t1\n"


def test_a_later_segment(tmp_path: Path) -> None:
    target = tmp_path / "a.gomp"
    (tmp_path / "f").write_text("old words")
    pack_archive([open_source(tmp_path / "f")], target, PackOptions(), engine=select_engine("cpu"))
    for text in ("newer words here", "newest words there"):
        (tmp_path / "f").write_text(text)
        add_to_archive(target, [open_source(tmp_path / "f")], PackOptions(), engine=select_engine("cpu"))
    assert counts(target) == b"newest\t1\nthere\t1\nwords\t1\n"


def test_segments_count_words_by_the_rule_of_the_archive(tmp_path: Path) -> None:
    target = tmp_path / "a.gomp"
    (tmp_path / "f").write_text("one, two.")
    (tmp_path / "g").write_text("two; three!")
    options = PackOptions(words="letters")
    pack_archive([open_source(tmp_path / "f")], target, options, engine=select_engine("cpu"))
    add_to_archive(target, [open_source(tmp_path / "g")], PackOptions(), engine=select_engine("cpu"))
    assert counts(target) == b"two\t2\none\t1\nthree\t1\n"
