"""Archives whose stream is cut into parts: every part ends with a block that may be short."""

from __future__ import annotations

import base64
import random
from pathlib import Path

import pytest
from tool_modules import ROOT
from tree_helpers import add, list_archive, list_directory, pack

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import Codec, CodecOptions
from gompfs.engine import select_engine
from gompfs.model import PartKind
from gompfs.options import PackOptions
from gompfs.pack import open_source, pack_archive
from gompfs.pack.stream import BlockWriter, StreamWriter
from gompfs.verify import verify_archive

BLOCK_SIZE = 16 << 10
CORPUS = Path(ROOT, "examples", "corpus")
# Bytes of a part: less than a block; not whole blocks; whole blocks; more than any file.
PART_SIZES = [777, BLOCK_SIZE + 1, 2 * BLOCK_SIZE, 1 << 30]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text and noise, in files that are smaller and larger than the parts, and files with the same content."""
    root = tmp_path_factory.mktemp("parts") / "tree"
    (root / "more").mkdir(parents=True)
    rng = random.Random(3)
    words = [b"part", b"block", b"kind", b"stream", b"\n"]
    for number in range(40):
        (root / f"more/{number}").write_bytes(b" ".join(rng.choices(words, k=rng.randrange(400))))
    (root / "more/same").write_bytes((root / "more/7").read_bytes())
    (root / "noise").write_bytes(rng.randbytes(100_000))
    (root / "text").write_bytes(b" ".join(rng.choices(words, k=30_000)))
    (root / "text-again").write_bytes((root / "text").read_bytes())
    with open(root / "sparse", "wb") as file:
        for place in (0, 5):
            file.seek(place * 100_000)
            file.write(rng.randbytes(40_000))
    return root


@pytest.mark.parametrize("part_size", PART_SIZES)
def test_readers(part_size: int, tree: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """All ways to read give the files as they were, also after an add."""
    archive = tmp_path / "a.gomp"
    pack(archive, tree, part_size=part_size, block_size=BLOCK_SIZE)
    add(archive, tree / "more", part_size=part_size)
    expected = list_directory(tree)
    with Archive(archive, verify=True) as opened:
        seen = list_archive(opened)
        assert {path: seen[path].content for path in expected} == {
            path: item.content for path, item in expected.items()
        }
        text = opened.resolve("text")
        out = bytearray(text.size - 100)
        opened.decode_into(text.ino, 100, memoryview(out))
        assert out == expected[b"text"].content[100:]
        assert len(opened.segments[0].parts) == -(-opened.segments[0].blocks.uncompressed_size // part_size)
        assert verify_archive(opened).is_sound
    capfdbinary.readouterr()
    assert run(["cat", str(archive), "text", "noise"]) == 0
    assert capfdbinary.readouterr().out == expected[b"text"].content + expected[b"noise"].content
    assert run(["extract", str(archive), "-C", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out/sparse").read_bytes() == expected[b"sparse"].content


@pytest.mark.parametrize("part_size", PART_SIZES)
def test_statistics(part_size: int, tree: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Words are counted as in an archive of one part."""
    answers = []
    for size in (None, part_size):
        archive = tmp_path / f"{size}.gomp"
        codec, words = Codec.GOMPRESSO_BIT, "whitespace"
        options = PackOptions(codec, words=words, block_size=BLOCK_SIZE, part_size=size)
        pack_archive([open_source(tree)], archive, options, engine=select_engine("cpu"))
        assert run(["stats", str(archive), "wordcount"]) == 0
        answers.append(capfdbinary.readouterr().out)
    assert answers[0] == answers[1]
    assert answers[0].count(b"\n") == 4


def test_a_caller_ends_parts(tmp_path: Path) -> None:
    """Addresses of a part begin at a new block, and parts without bytes are not written."""
    engine = select_engine("cpu")
    with open(tmp_path / "blocks", "wb") as file:
        stream = StreamWriter(BlockWriter(file, 0), engine, BLOCK_SIZE, CodecOptions())
        stream.end_part(PartKind.TEXT)
        stream.append(b"a" * 100)
        stream.end_part(PartKind.TEXT)
        stream.append(b"b" * BLOCK_SIZE)
        stream.end_part()
        stream.end_part(PartKind.TEXT)
        stream.append(b"c")
        runs = [(0, 100), (BLOCK_SIZE, BLOCK_SIZE), (2 * BLOCK_SIZE, 1)]
        assert list(stream.runs(0, 101 + BLOCK_SIZE)) == runs
        assert list(stream.runs(50, 60)) == [(50, 50), (BLOCK_SIZE, 10)]
        assert list(stream.runs(100, 1)) == [(BLOCK_SIZE, 1)]
        blocks = stream.finish()
    assert stream.parts == [(PartKind.TEXT, 100), (PartKind.DATA, BLOCK_SIZE), (PartKind.DATA, 1)]
    assert len(blocks) == 3
    assert stream.size == 101 + BLOCK_SIZE


def test_text_goes_where_it_takes_less_space(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Prose becomes grammars, and base64 blocks. Statistics count the words of both."""
    rng = random.Random(8)
    (tmp_path / "tree").mkdir()
    prose = (CORPUS / "carroll" / "alice29.txt").read_bytes()
    for name, content in (("prose", prose[:120_000]), ("base64", base64.encodebytes(rng.randbytes(90_000)))):
        (tmp_path / "tree" / name).write_bytes(content)
        alone = {}
        for codec in (Codec.GOMPRESSO_TADOC, Codec.GOMPRESSO_BIT):
            report = pack(tmp_path / f"{name}.gomp", tmp_path / "tree" / name, codec=codec, force=True)
            alone[codec] = report.archive_size
            if codec is Codec.GOMPRESSO_TADOC:
                with Archive(tmp_path / f"{name}.gomp") as archive:
                    kinds = set(archive.segments[0].parts.kinds)
                assert kinds == {PartKind.GRAMMAR if name == "prose" else PartKind.TEXT}
        assert alone[Codec.GOMPRESSO_TADOC] < alone[Codec.GOMPRESSO_BIT] * (0.9 if name == "prose" else 1.01)
    counts = []
    for codec in (Codec.GOMPRESSO_TADOC, Codec.GOMPRESSO_BIT):
        pack(tmp_path / "a.gomp", tmp_path / "tree", codec=codec, part_size=120_000, force=True)
        assert run(["stats", str(tmp_path / "a.gomp"), "sort"]) == 0
        counts.append(capfdbinary.readouterr().out)
    assert counts[0] == counts[1]
    assert b"\nAlice\t" in counts[0]
