"""What was written is read back before it becomes visible."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tree_helpers import list_archive, list_directory, write_files

from gompfs.archive import Archive
from gompfs.cli.application import run
from gompfs.codec import BLOCK_HEADER_SIZE, Codec, CodecOptions, EncodedBlock
from gompfs.codec.block import Buffer
from gompfs.engine.cpu import CpuEngine
from gompfs.errors import PackError
from gompfs.model import WrittenBlock
from gompfs.options import PackOptions
from gompfs.pack import PackReport, add_to_archive, open_source, pack_archive
from gompfs.pack.stream import BlockWriter
from gompfs.pack.text_parts import TextParts
from gompfs.verify import verify_archive


class _WrongEngine(CpuEngine):
    """Encodes every third block to a block of other bytes, which is valid by itself."""

    def encode_blocks(
        self, stream: Buffer, block_size: int, options: CodecOptions, dictionary: object = None
    ) -> list[EncodedBlock]:
        """See Engine.encode_blocks."""
        content = bytearray(stream)
        for start in range(0, len(content), 3 * block_size):
            content[start] ^= 1
        return super().encode_blocks(content, block_size, options)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Text of several parts, and binary files of several blocks."""
    rng = random.Random(5)
    words = [b"read", b"it", b"back", b"\n", b"first"]
    text = {f"text/{number}": b" ".join(rng.choices(words, k=60_000)) for number in range(4)}
    noise = {f"noise/{number}": b"\0" + rng.randbytes(50_000) * 6 for number in range(3)}
    write_files(tmp_path / "tree", text | noise)
    return tmp_path / "tree"


def _pack(tree: Path, target: Path, engine: CpuEngine | None = None, **options: object) -> PackReport:
    chosen = PackOptions(block_size=1 << 14, **options)  # type: ignore[arg-type]
    return pack_archive([open_source(tree)], target, chosen, engine=engine or CpuEngine())


@pytest.mark.parametrize("codec", [Codec.GOMPRESSO_TADOC, Codec.GOMPRESSO_BIT, Codec.GOMPRESSO_BYTE])
def test_an_encoder_that_is_wrong(codec: Codec, tree: Path, tmp_path: Path) -> None:
    """Blocks that do not decode to their content are stored, with a warning."""
    archive = tmp_path / "a.gomp"
    report = _pack(tree, archive, _WrongEngine(), codec=codec)
    assert [warning for warning in report.warnings if "blocks did not decode to their content" in warning]
    expected = {path: item.content for path, item in list_directory(tree).items()}
    with Archive(archive) as opened:
        assert {path: item.content for path, item in list_archive(opened).items()} == expected
        assert verify_archive(opened).is_sound
    if codec is not Codec.GOMPRESSO_TADOC:  # without the check, readers would get the wrong bytes
        _pack(tree, archive, _WrongEngine(), codec=codec, check=False, force=True)
        with Archive(archive) as opened:
            assert {path: item.content for path, item in list_archive(opened).items()} != expected


def _flip(blocks: Sequence[EncodedBlock]) -> Sequence[EncodedBlock]:
    """Returns blocks of which the last has a wrong bit."""
    data = bytearray(blocks[-1].data)
    data[-1 if len(data) > BLOCK_HEADER_SIZE else 0] ^= 1
    return [*blocks[:-1], blocks[-1]._replace(data=bytes(data))]


def _break_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    write = BlockWriter.write

    def write_wrongly(self: BlockWriter, blocks: Sequence[EncodedBlock]) -> list[WrittenBlock]:
        return write(self, _flip(blocks))

    monkeypatch.setattr(BlockWriter, "write", write_wrongly)


def _break_words(monkeypatch: pytest.MonkeyPatch) -> None:
    words = TextParts.word_section
    monkeypatch.setattr(TextParts, "word_section", lambda self: words(self) + b"!")


def _break_head(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = TextParts.encoded

    def wrong(self: TextParts) -> object:
        for kind, size, head, blocks in encoded(self):
            yield kind, size, _flip([head])[0] if head else None, blocks

    monkeypatch.setattr(TextParts, "encoded", wrong)


def _break_index(monkeypatch: pytest.MonkeyPatch) -> None:
    append = BlockWriter.append

    def append_wrongly(self: BlockWriter, data: bytes) -> int:
        return append(self, data[:100] + b"?" + data[101:] if len(data) > 200 else data)

    monkeypatch.setattr(BlockWriter, "append", append_wrongly)


_BREAKS = [_break_blocks, _break_words, _break_head, _break_index]


@pytest.mark.parametrize("damage", _BREAKS)
def test_nothing_replaces_an_archive(
    damage: Callable[[pytest.MonkeyPatch], None], tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If what was written cannot be read back, the old archive stays, whatever was to happen to it."""
    archive = tmp_path / "a.gomp"
    _pack(tree / "noise", archive)
    before = archive.read_bytes()
    damage(monkeypatch)
    with pytest.raises(PackError, match="what was written cannot be read back"):
        _pack(tree, tmp_path / "new.gomp")
    assert not (tmp_path / "new.gomp").exists()
    with pytest.raises(PackError, match="what was written cannot be read back"):
        _pack(tree, archive, force=True)
    with pytest.raises(PackError, match="what was written cannot be read back"):
        add_to_archive(archive, [open_source(tree / "text")], PackOptions(), engine=CpuEngine())
    assert archive.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.gomp", "tree"]


def test_the_commands(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`pack`, `add` and `repack` have the status 1 and one line; with --no-check they do not look."""
    archive, other = tmp_path / "a.gomp", tmp_path / "b.gomp"
    assert run(["pack", "-q", str(tree), str(archive)]) == 0
    _break_head(monkeypatch)
    capfd.readouterr()
    for command in (["pack", str(tree), str(other)], ["repack", str(archive), str(other)]):
        assert run([*command, "-q"]) == 1
        assert not other.exists()
    (tree / "text/new").write_bytes((tree / "text/0").read_bytes()[1000:])  # what is there is not written again
    assert run(["add", "-q", str(tree), str(archive)]) == 1
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all("what was written cannot be read back: block " in line for line in lines)
    assert run(["verify", "-q", str(archive)]) == 0
    assert run(["pack", "-q", "--no-check", str(tree), str(other)]) == 0
    assert run(["add", "-q", "--no-check", str(tree), str(archive)]) == 0
    assert run(["verify", "-q", str(other)]) == run(["verify", "-q", str(archive)]) == 1
